// Guard zones: where they lie, what passes leave alone, and what a scan tells.

#include "memory.hpp"

#include <stowage/backend/failing.hpp>
#include <stowage/backend/recording.hpp>
#include <stowage/guards.hpp>
#include <stowage/stowage.hpp>

#include <cstddef>
#include <cstring>
#include <doctest/doctest.h>
#include <string>
#include <vector>

namespace {

using stowage::buffer;
using stowage::guard_damage;
using stowage::shape;
using stowage::tokens;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
};
inline constexpr stowage::dim<&params::batch> M{"M"};

struct fields {
  buffer<float, shape<M, 3>, zero::rows> keys;
  buffer<float, shape<M, 3>, zero::rows> values;
  buffer<float, shape<M>, zero::full, stowage::copies<2>> sums;
  buffer<std::byte, shape<M>, zero::never> flags;
};

std::vector<guard_damage> scan(auto& arena) {
  std::vector<guard_damage> found;
  const std::size_t count =
      stowage::scan_guards(arena, {}, [&](const guard_damage& one) { found.push_back(one); });
  CHECK(count == found.size());
  return found;
}

TEST_CASE("guards: zones of at least the wanted size lie around every field and copy") {
  const auto plan = stowage::make_plan<fields>(params{tokens{7}}).with_guards(64);
  CHECK(plan.guard_bytes() == 64);
  // keys and values take 7 * 3 * 4 = 84 bytes, a copy of sums 28; all start at multiples of 256.
  CHECK(plan.offset<&fields::keys>() == 256);
  CHECK(plan.offset<&fields::values>() == 512);
  CHECK(plan.offset<&fields::sums>() == 768);
  CHECK(plan.layout<&fields::sums>().stride == 256);
  CHECK(plan.offset<&fields::flags>() == 1280);
  CHECK(plan.slab_bytes() == 1280 + 7 + 64);
  CHECK(plan.total_bytes() == 84 + 84 + 2 * 28 + 7);
  CHECK(plan.hash() != stowage::make_plan<fields>(params{tokens{7}}).hash());
  CHECK(plan.with_guards(0).hash() == stowage::make_plan<fields>(params{tokens{7}}).hash());
}

TEST_CASE("guards: no pass damages a zone") {
  stowage::arena arena(stowage::make_plan<fields>(params{tokens{7}}).with_guards(64),
                       stowage::host_backend{});
  CHECK(scan(arena).empty());
  arena.zero_all();
  arena.zero_rows({}, tokens{3});
  arena.zero_rows({}, tokens{3}, tokens{7});
  arena.zero_rows({}, tokens{100});
  CHECK(scan(arena).empty());
}

TEST_CASE("guards: a scan names the fields on both sides and the bytes") {
  stowage::arena arena(stowage::make_plan<fields>(params{tokens{7}}).with_guards(64),
                       stowage::host_backend{});
  test::permit(arena.slab(), arena.plan().slab_bytes());
  std::memset(arena->keys.data() + 21, 1, 12); // past the end of keys
  arena->sums.copy(1).data()[-1] = 3;          // in front of the second copy
  arena->flags.data()[7] = std::byte{1};       // past the last field
  arena.slab()[3] = std::byte{1};              // in front of the first
  const std::vector<guard_damage> found = scan(arena);
  REQUIRE(found.size() == 4);
  CHECK(found[0].field_in_front.empty());
  CHECK(found[0].field_behind == "keys");
  CHECK(found[0].first == 3);
  CHECK(found[1].field_in_front == "keys");
  CHECK(found[1].field_behind == "values");
  CHECK(found[1].first == 0);
  CHECK(found[1].last == 11);
  CHECK(found[1].zone_bytes == 256 - 84);
  CHECK(found[2].field_in_front == "sums");
  CHECK(found[2].field_behind == "sums");
  CHECK(found[2].first == 224);
  CHECK(found[2].last == 227);
  CHECK(found[3].field_in_front == "flags");
  CHECK(found[3].field_behind.empty());
  CHECK(stowage::format(found[1]) ==
        "guard zone behind 'keys' (before 'values'): bytes 0 to 11 of 172 overwritten");
  CHECK(stowage::format(found[0]) ==
        "guard zone at the start of the slab (before 'keys'): bytes 3 to 3 of 256 overwritten");
}

TEST_CASE("guards: refused where there is nothing to scan or no slab") {
  stowage::arena plain(stowage::make_plan<fields>(params{tokens{7}}), stowage::host_backend{});
  CHECK_THROWS_AS(scan(plain), stowage::usage_error);
  stowage::arena guarded(stowage::make_plan<fields>(params{tokens{7}}).with_guards(),
                         stowage::host_backend{});
  CHECK(guarded.release().ok());
  CHECK_THROWS_AS(scan(guarded), stowage::usage_error);
  stowage::recording_backend<> backend;
  const auto plan = stowage::make_plan<fields>(params{tokens{7}}).with_guards();
  CHECK_THROWS_AS(stowage::arena(plan, backend, {.where = stowage::placement::separate}),
                  stowage::usage_error);
  CHECK(backend.calls().empty());
}

TEST_CASE("guards: a copy that fails while they are filled leaves nothing behind") {
  for (std::size_t k = 1; k <= 6; ++k) {
    stowage::failing_backend<> backend;
    backend.fail(stowage::operation::copy_from_host, k);
    const auto plan = stowage::make_plan<fields>(params{tokens{7}}).with_guards();
    CHECK_THROWS_AS(stowage::arena(plan, backend), stowage::backend_error);
    CHECK(backend.outstanding() == 0);
  }
}

} // namespace
