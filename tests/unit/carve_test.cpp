// Carving a field by a region list at the params of the moment.

#include <stowage/arena.hpp>
#include <stowage/backend/recording.hpp>
#include <stowage/carve.hpp>
#include <stowage/regions.hpp>
#include <stowage/traits/align.hpp>
#include <stowage/traits/when.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using stowage::bf16;
using stowage::buffer;
using stowage::part;
using stowage::shape;
using stowage::tokens;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  bool second = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::second> second{};

struct step_parts {
  part<std::uint8_t, shape<M>> flags;
  part<double, shape<M>> sums;
  part<std::uint8_t, shape<3>, stowage::when<second>> extra;
  part<bf16, shape<5>, stowage::align<64>> wide;
};
struct other_parts {
  part<std::uint32_t, shape<M, 2>> pairs;
};

struct fields {
  buffer<std::uint8_t, shape<M>, zero::rows> odd;
  buffer<std::byte, shape<200>, zero::full> scratch;
  buffer<std::byte, shape<64>, zero::full, stowage::align<1>> loose;
  buffer<std::byte, shape<64>, zero::full, stowage::when<second>> absent;
};
constexpr params seven{tokens{7}};

std::size_t at(const void* address, const void* start) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) -
                                  static_cast<const std::byte*>(start));
}

TEST_CASE("carve: parts at the params of the moment, without a call to the backend") {
  stowage::recording_backend<> backend;
  const stowage::arena arena(stowage::make_plan<fields>(seven), backend);
  backend.clear();
  const void* const start = arena->scratch.data();

  const auto all = stowage::carve<step_parts>(arena->scratch, seven);
  CHECK(all.bytes() == 74);
  CHECK(all.data() == arena->scratch.data());
  CHECK(at(all->flags.data(), start) == 0);
  CHECK(all->flags.bytes() == 7);
  CHECK(at(all->sums.data(), start) == 8);
  CHECK(all->sums.extent(0) == 7);
  CHECK(all->sums.name() == "sums");
  CHECK(all->extra.data() == nullptr); // its condition does not hold
  CHECK(all->extra.bytes() == 0);
  CHECK(at(all->wide.data(), start) == 64);

  // Smaller params, and others: the same memory in another cut.
  const auto small = stowage::carve<step_parts>(arena->scratch, params{tokens{3}, true});
  CHECK(at(small->sums.data(), start) == 8);
  CHECK(small->sums.bytes() == 24);
  CHECK(at(small->extra.data(), start) == 32);
  const auto other = stowage::carve<other_parts>(arena->scratch, params{tokens{25}});
  CHECK(other->pairs.rows(24, 25).size() == 2); // 25 * 8 is all of it

  // The same params, the same addresses.
  const auto again = stowage::carve<step_parts>(arena->scratch, seven);
  CHECK(again->wide.data() == all->wide.data());
  CHECK(backend.calls().empty());
}

TEST_CASE("carve: the alignment of a part holds in the slab, behind an odd-sized neighbour too") {
  for (std::size_t batch = 1; batch <= 9; ++batch) {
    const stowage::arena arena(stowage::make_plan<fields>(params{tokens{batch}}), stowage::host_backend{});
    CHECK(at(arena->scratch.data(), arena.slab()) == 256); // behind `batch` bytes
    const auto parts = stowage::carve<step_parts>(arena->scratch, params{tokens{batch}, true});
    CHECK(at(parts->wide.data(), arena.slab()) % 64 == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(parts->wide.data()) % 64 == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(parts->sums.data()) % 8 == 0);
    parts->sums.span().front() = 1.5; // where UndefinedBehaviorSanitizer sees it
    parts->sums.span().back() = 2.5;
  }
}

TEST_CASE("carve: a part can be carved again") {
  const stowage::arena arena(stowage::make_plan<fields>(seven), stowage::host_backend{});
  const auto parts = stowage::carve<step_parts>(arena->scratch, params{tokens{8}});
  const auto inner = stowage::carve<other_parts>(parts->sums, params{tokens{8}});
  CHECK(static_cast<void*>(inner->pairs.data()) == static_cast<void*>(parts->sums.data()));
  CHECK_THROWS_WITH_AS(
      static_cast<void>(stowage::carve<other_parts>(parts->sums, params{tokens{9}})),
      "stowage: field 'sums': 72 bytes wanted by the carving, 64 are there; plan the field for "
      "larger params",
      stowage::bounds_error);
}

TEST_CASE("carve: larger than its parent is an error with both sizes") {
  const stowage::arena arena(stowage::make_plan<fields>(seven), stowage::host_backend{});
  CHECK_NOTHROW(static_cast<void>(stowage::carve<other_parts>(arena->scratch, params{tokens{25}})));
  CHECK_THROWS_WITH_AS(static_cast<void>(stowage::carve<other_parts>(arena->scratch, params{tokens{26}})),
                       "stowage: field 'scratch': 208 bytes wanted by the carving, 200 are there; plan the "
                       "field for larger params",
                       stowage::bounds_error);
}

TEST_CASE("carve: from a field without memory") {
  stowage::arena arena(stowage::make_plan<fields>(seven), stowage::host_backend{});
  CHECK_THROWS_WITH_AS(
      static_cast<void>(stowage::carve<other_parts>(arena->absent, seven)),
      "stowage: field 'absent': 56 bytes wanted, but the field is absent, released, asleep or not "
      "bound to an arena",
      stowage::usage_error);
  CHECK(arena.release().ok());
  CHECK_THROWS_WITH_AS(
      static_cast<void>(stowage::carve<other_parts>(arena->scratch, seven)),
      "stowage: field 'scratch': 56 bytes wanted, but the field is absent, released, asleep or not "
      "bound to an arena",
      stowage::usage_error);
  const fields unbound{};
  CHECK_THROWS_AS(static_cast<void>(stowage::carve<other_parts>(unbound.scratch, seven)),
                  stowage::usage_error);
}

TEST_CASE("carve: a field that is not aligned for the parts") {
  const stowage::arena arena(stowage::make_plan<fields>(params{tokens{7}, false}), stowage::host_backend{});
  // `loose` begins at 256 + 200, which 8 divides and 64 does not.
  CHECK(at(arena->loose.data(), arena.slab()) == 456);
  CHECK_NOTHROW(static_cast<void>(stowage::carve<other_parts>(arena->loose, params{tokens{1}})));
  CHECK_THROWS_WITH_AS(static_cast<void>(stowage::carve<step_parts>(arena->loose, params{})),
                       "stowage: field 'loose' does not start at a multiple of 64, which a part of the "
                       "carving needs; give the field align<64>",
                       stowage::bounds_error);
}

TEST_CASE("carve: whether a list fits is the same evaluation") {
  stowage::arena arena(stowage::make_plan<fields>(seven), stowage::host_backend{});
  const auto fits = [&](std::size_t batch) {
    return stowage::carving_fits<other_parts>(arena->scratch, params{tokens{batch}});
  };
  CHECK(fits(0));
  CHECK(fits(25));
  CHECK_FALSE(fits(26));
  // A size without a value does not fit; carving by it says why.
  CHECK_FALSE(fits(SIZE_MAX));
  CHECK_THROWS_WITH_AS(
      static_cast<void>(stowage::carve<other_parts>(arena->scratch, params{tokens{SIZE_MAX}})),
      "stowage: field 'scratch': 18446744073709551615 * 2 does not fit in 64 bits, in {pairs u32 [M, 2]}; "
      "check the "
      "values in the params struct",
      stowage::size_error);
  CHECK_FALSE(stowage::carving_fits<other_parts>(arena->absent, seven));
  CHECK(arena.release().ok());
  CHECK_FALSE(fits(1));
}

} // namespace
