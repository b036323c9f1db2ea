// A pass of one's own over every field of a list: keeps what the fields hold and brings it back. It knows no field
// list and no backend, so it works for all of them, and a field that somebody adds to the list is in it.

#include <stowage/stowage.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string_view>
#include <vector>

// [pass]
/// What the fields with a tag hold, in host memory.
template <class Tag> class snapshot {
public:
  /// Copies the fields of an arena that carry tag<Tag> and have memory. Throws what the backend throws.
  template <class Arena> void keep(Arena& arena, typename Arena::stream_type stream = {}) {
    bytes_.resize(size_in(arena));
    std::byte* to = bytes_.data();
    for_each(arena, [&](std::byte* field, std::size_t bytes) {
      arena.backend().copy_to_host(stream, to, field, bytes);
      to += bytes;
    });
    arena.backend().synchronize(stream);
    layout_ = arena.plan().hash();
  }

  /// Brings it back into an arena of the same layout. Throws std::invalid_argument for another one.
  template <class Arena> void bring_back(Arena& arena, typename Arena::stream_type stream = {}) const {
    if (arena.plan().hash() != layout_) throw std::invalid_argument("the snapshot is of another layout");
    const std::byte* from = bytes_.data();
    for_each(arena, [&](std::byte* field, std::size_t bytes) {
      arena.backend().copy_from_host(stream, field, from, bytes);
      from += bytes;
    });
    arena.backend().synchronize(stream);
  }

  [[nodiscard]] std::size_t size() const { return bytes_.size(); }

private:
  /// Calls visit(address, bytes) for each field of the list, all its copies together.
  template <class Arena, class Visit> static void for_each(Arena& arena, const Visit& visit) {
    const auto& plan = arena.plan();
    for (std::size_t field = 0; field < plan.field_count; ++field) {
      std::byte* const address = arena.address(field); // null where the field takes no memory
      if (plan.template has_tag<Tag>(field) && address != nullptr)
        visit(address, plan.layout(field).extent());
    }
  }
  template <class Arena> static std::size_t size_in(Arena& arena) {
    std::size_t sum = 0;
    for_each(arena, [&](std::byte*, std::size_t bytes) { sum += bytes; });
    return sum;
  }

  std::vector<std::byte> bytes_;
  std::uint64_t layout_ = 0;
};
// [pass]

struct params {
  stowage::tokens max_tokens;
  std::size_t hidden;
  bool trace;
};
inline constexpr stowage::dim<&params::max_tokens> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};

// [tag]
struct state; // any type will do; it is never defined

struct buffers {
  stowage::buffer<float, stowage::shape<M, hidden>, stowage::zero::rows, stowage::tag<state>> sums;
  stowage::buffer<float, stowage::shape<M, hidden>, stowage::zero::never> scratch;
  stowage::buffer<std::uint32_t, stowage::shape<M>, stowage::zero::rows, stowage::tag<state>> counters;
  stowage::buffer<float, stowage::shape<M>, stowage::zero::rows, stowage::tag<state>,
                  stowage::when<&params::trace>>
      timeline;
};
// [tag]

namespace {

bool check(bool right, std::string_view what) {
  if (!right) std::printf("WRONG: %.*s\n", static_cast<int>(what.size()), what.data());
  return right;
}

} // namespace

int main() {
  constexpr auto plan = stowage::make_plan<buffers>(params{stowage::tokens{10}, 64, false});
  // [budget]
  static_assert(plan.zero_rows_bytes(stowage::tokens{1}) < 4 << 20);
  // [budget]
  stowage::arena arena(plan, stowage::host_backend{});
  std::ranges::fill(arena->sums.span(), 1.5F);
  std::ranges::fill(arena->scratch.span(), 7.0F);
  std::ranges::fill(arena->counters.span(), 3U);

  // [use]
  snapshot<state> saved;
  saved.keep(arena);
  // [use]
  std::printf("%zu of %zu bytes kept\n", saved.size(), plan.total_bytes());
  bool right = check(saved.size() == sizeof(float) * 640 + sizeof(std::uint32_t) * 10,
                     "the fields with the tag that are there, and no others");

  // [clear]
  arena.zero_tagged<state>();
  // [clear]
  right &= check(arena->sums.data()[639] == 0.0F && arena->counters.data()[9] == 0U, "the list is cleared");
  std::ranges::fill(arena->scratch.span(), 8.0F);

  saved.bring_back(arena);
  right &= check(arena->sums.data()[639] == 1.5F && arena->counters.data()[9] == 3U, "the list is back");
  right &= check(arena->scratch.data()[0] == 8.0F, "what is not on the list stays");

  // Other params give another layout: refused instead of copied to where it does not belong.
  stowage::arena larger(stowage::make_plan<buffers>(params{stowage::tokens{11}, 64, false}),
                        stowage::host_backend{});
  try {
    saved.bring_back(larger);
    right &= check(false, "a snapshot of another layout is refused");
  } catch (const std::invalid_argument& error) {
    std::puts(error.what());
  }

  std::puts(right ? "right" : "wrong");
  return right ? 0 : 1;
}
