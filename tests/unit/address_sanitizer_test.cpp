// In builds with AddressSanitizer: which memory of an arena is forbidden, and when. tests/address_sanitizer has
// the overruns themselves.

#include <stowage/detail/address_sanitizer.hpp>

#if STOWAGE_ADDRESS_SANITIZER

#include <stowage/backend/failing.hpp>
#include <stowage/guards.hpp>
#include <stowage/stowage.hpp>

#include <cstddef>
#include <cstring>
#include <doctest/doctest.h>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <thread>
#include <utility>

namespace {

using stowage::buffer;
using stowage::shape;
using stowage::tokens;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  bool trace = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};

struct fields {
  buffer<float, shape<M, 3>, zero::rows> keys;
  buffer<float, shape<M, 3>, zero::rows, stowage::zero_at_construction> values;
  buffer<float, shape<M>, zero::full, stowage::copies<2>> sums;
  buffer<float, shape<M>, zero::never, stowage::copies<2>, stowage::pad_fill<1>> scales;
  buffer<std::byte, shape<M>, zero::never, stowage::tail<16>> flags;
  buffer<float, shape<M>, zero::never, stowage::when<&params::trace>> timeline;
};
constexpr auto plan = stowage::make_plan<fields>(params{tokens{7}});

bool forbidden(const void* address) { return __asan_address_is_poisoned(address) != 0; }

/// Whether exactly the bytes outside of the fields and their tails are forbidden.
template <class Arena> bool only_padding_is_forbidden(const Arena& arena) {
  for (std::size_t at = 0; at < arena.plan().slab_bytes(); ++at) {
    bool in_field = false;
    for (std::size_t field = 0; field < Arena::plan_type::field_count; ++field) {
      const stowage::field_layout& layout = arena.plan().layout(field);
      for (std::size_t copy = 0; layout.bytes != 0 && copy < layout.copies; ++copy) {
        const std::size_t begin = layout.offset + copy * layout.stride;
        in_field = in_field || (at >= begin && at < begin + layout.bytes + layout.tail);
      }
    }
    if (forbidden(arena.slab() + at) == in_field) return false;
  }
  return true;
}

TEST_CASE("address sanitizer: padding between fields and copies is forbidden, before and after every pass") {
  stowage::arena arena(plan, stowage::host_backend{});
  // keys take 7 * 3 * 4 = 84 bytes, values begin at 256.
  CHECK_FALSE(forbidden(arena.slab() + 83));
  CHECK(forbidden(arena.slab() + 84));
  CHECK(forbidden(arena.slab() + 255));
  CHECK_FALSE(forbidden(arena.slab() + 256));
  CHECK(only_padding_is_forbidden(arena));
  arena.zero_all();
  CHECK(only_padding_is_forbidden(arena));
  arena.zero_rows({}, tokens{3});
  arena.zero_rows({}, tokens{7}); // one segment through the padding
  arena.zero_rows({}, tokens{2}, tokens{7});
  CHECK(only_padding_is_forbidden(arena));
  auto moved = std::move(arena);
  CHECK(only_padding_is_forbidden(moved));
}

TEST_CASE("address sanitizer: guard zones are forbidden, and a scan reads them") {
  stowage::arena arena(plan.with_guards(64), stowage::host_backend{});
  CHECK(only_padding_is_forbidden(arena));
  CHECK(stowage::scan_guards(arena, {}, [](const stowage::guard_damage&) {}) == 0);
  CHECK(only_padding_is_forbidden(arena));
}

TEST_CASE("address sanitizer: a sink may run a pass while guard zones are scanned") {
  stowage::arena arena(plan.with_guards(64), stowage::host_backend{});
  __asan_unpoison_memory_region(arena.slab(), arena.plan().slab_bytes());
  arena.slab()[0] = std::byte{1};
  CHECK(stowage::scan_guards(arena, {}, [&](const stowage::guard_damage&) { arena.zero_all(); }) == 1);
  CHECK(only_padding_is_forbidden(arena));
}

struct pair_of_fields {
  struct left;
  struct right;
  buffer<float, shape<M, 33>, zero::rows, stowage::copies<2>, stowage::tag<left>> one;
  buffer<float, shape<M, 33>, zero::full, stowage::copies<2>, stowage::tag<right>> other;
};

/// Host memory that calls back, once, when a pass has begun.
struct interrupted_backend : stowage::host_backend {
  std::function<void()> meanwhile;
  void zero(stream_type stream, std::span<const stowage::segment> segments) {
    if (const auto call = std::exchange(meanwhile, {})) call();
    host_backend::zero(stream, segments);
  }
};

TEST_CASE("address sanitizer: passes over different buffers from two threads, both through padding") {
  interrupted_backend backend;
  stowage::arena arena(stowage::make_plan<pair_of_fields>(params{tokens{7}}), backend);
  backend.meanwhile = [&] { // begins later and ends earlier
    std::thread([&] { arena.zero_tagged<pair_of_fields::left>(); }).join();
  };
  arena.zero_tagged<pair_of_fields::right>();
  CHECK(only_padding_is_forbidden(arena));
}

TEST_CASE("address sanitizer: separate allocations have their padding between copies") {
  stowage::arena arena(plan, stowage::host_backend{}, {.where = stowage::placement::separate});
  CHECK_FALSE(forbidden(arena->sums.data() + 6));
  CHECK(forbidden(arena->sums.data() + 7));
  CHECK_FALSE(forbidden(arena->sums.copy(1).data()));
  CHECK(arena.release().ok());
}

/// One block of memory that outlives its arenas.
class block_backend : public stowage::host_backend {
public:
  [[nodiscard]] void* allocate(std::size_t, std::size_t) { return memory_.get(); }
  stowage::status deallocate(void*, std::size_t, std::size_t) noexcept { return {}; }
  [[nodiscard]] std::byte* memory() { return memory_.get(); }

private:
  struct free_block {
    void operator()(std::byte* block) const { ::operator delete(block, std::align_val_t{256}); }
  };
  std::unique_ptr<std::byte, free_block> memory_{
      static_cast<std::byte*>(::operator new(4096, std::align_val_t{256}))};
};

TEST_CASE("address sanitizer: memory that is given back is permitted, also when an arena is not made") {
  block_backend backend;
  {
    stowage::arena arena(plan, backend);
    CHECK(forbidden(backend.memory() + 84));
  }
  std::memset(backend.memory(), 1, 4096);
  stowage::failing_backend<> failing;
  failing.fail(stowage::operation::copy_from_host, 2); // fills the second copy of scales or a guard zone
  CHECK_THROWS_AS(stowage::arena(plan.with_guards(), failing), stowage::backend_error);
  CHECK(failing.outstanding() == 0);
}

TEST_CASE("address sanitizer: what row_segments hands out leaves padding out") {
  stowage::arena arena(plan, stowage::host_backend{});
  const auto segments = arena.row_segments(tokens{7});
  for (const stowage::segment& range : segments.view()) std::memset(range.address, 0, range.bytes);
  CHECK(segments.view().size() == 4); // keys, values, two copies of sums
}

} // namespace

#endif
