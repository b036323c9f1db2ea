// Traits of one's own: a trait is a struct with the hooks that it needs, and the library finds them by name.

#include <stowage/stowage.hpp>

#include <cstddef>
#include <cstdio>
#include <string_view>

struct params {
  stowage::tokens max_tokens;
  std::size_t hidden;
  bool trace;
};
inline constexpr stowage::dim<&params::max_tokens> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};
inline constexpr stowage::dim<&params::trace> trace{};

// [trait]
/// What a tensor-copy descriptor wants of its operand: a start at a multiple of 1024 bytes, and one whole
/// box.
struct copy_operand {
  using stowage_trait = void;
  static constexpr std::size_t start_alignment = 1024;
  static constexpr std::size_t minimum_bytes = 8192;
};

/// There only in runs that trace.
struct traced {
  using stowage_trait = void;
  static constexpr auto presence_condition = trace;
};
// [trait]

// [policy]
/// A zero policy: cleared when everything is, but not on every pass.
struct on_reset {
  using stowage_trait = void;
  static constexpr std::string_view name = "on_reset";
  static constexpr std::size_t slab_group = 1; // beside the fields with zero::full
  static constexpr bool cleared_by_zero_all = true;
  static constexpr stowage::row_pass in_row_pass = stowage::row_pass::nothing;
};
static_assert(stowage::zero_policy<on_reset>);
// [policy]

// [buffers]
struct buffers {
  stowage::buffer<stowage::bf16, stowage::shape<M, hidden>, stowage::zero::rows, copy_operand> states;
  stowage::buffer<float, stowage::shape<hidden>, on_reset> statistics;
  stowage::buffer<float, stowage::shape<M>, stowage::zero::never, traced> timeline;
};

constexpr auto plan = stowage::make_plan<buffers>(params{stowage::tokens{3}, 100, false});
static_assert(plan.bytes<&buffers::states>() == 8192 && plan.layout<&buffers::states>().alignment == 1024);
static_assert(!plan.present<&buffers::timeline>());
static_assert(plan.zero_bytes<&buffers::statistics>(stowage::tokens{3}) == 0);
static_assert(plan.zero_all_bytes() == 8192 + 400);
// [buffers]

namespace {

bool check(bool right, std::string_view what) {
  if (!right) std::printf("WRONG: %.*s\n", static_cast<int>(what.size()), what.data());
  return right;
}

} // namespace

int main() {
  stowage::arena arena(plan, stowage::host_backend{});
  for (std::size_t field = 0; field < plan.field_count; ++field) {
    const std::string_view name = plan.name(field);
    std::printf("%-10.*s %5zu bytes at %5zu, aligned to %4zu, %5zu of them cleared by a pass over 3 tokens\n",
                static_cast<int>(name.size()), name.data(), plan.bytes(field), plan.offset(field),
                plan.layout(field).alignment, plan.zero_bytes(field, stowage::tokens{3}));
  }
  bool right = check(arena->timeline.data() == nullptr, "no timeline in runs that do not trace");

  arena->statistics.data()[0] = 1.0F;
  arena.zero_rows({}, stowage::tokens{3});
  right &= check(arena->statistics.data()[0] == 1.0F, "a pass leaves the statistics alone");
  arena.zero_all();
  right &= check(arena->statistics.data()[0] == 0.0F, "a reset clears them");

  std::puts(right ? "right" : "wrong");
  return right ? 0 : 1;
}
