#include <stowage/explain.hpp>
#include <stowage/stowage.hpp>

#include <doctest/doctest.h>

#include <cstddef>

namespace {

using stowage::bf16;
using stowage::buffer;
using stowage::part;
using stowage::shape;
using stowage::tokens;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  std::size_t heads = 0;
  bool gated = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::heads> heads{};
inline constexpr stowage::dim<&params::gated> gated{};

struct width_definition {
  static constexpr std::string_view name = "width";
  static constexpr auto formula = heads * stowage::choose(gated, 2, 1) + 3;
};
inline constexpr stowage::derived<width_definition> width{};

struct parts {
  part<std::byte, shape<M>> first;
  part<float, shape<M>> second;
};
struct fields {
  buffer<bf16, shape<stowage::pad<16>(M), width>, zero::rows> queries;
  buffer<stowage::alternatives<part<float, shape<M>>, part<bf16, shape<3 * M>>>, zero::full,
         stowage::at_least<256>>
      shared;
  buffer<stowage::regions<parts>, zero::never, stowage::when<(heads > 9)>> carved;
};

constexpr auto plan = stowage::make_plan<fields>(params{tokens{7}, 4, true});

TEST_CASE("explain: a tensor, its named formula and every symbol") {
  CHECK(stowage::explain(plan, "queries") ==
        R"(queries: 352 bytes, 57.9 % of all buffers, at 0 of the slab

zero policy  rows: a row pass over T tokens clears the rows that they reach
there        always
alignment    256 bytes

bf16 [ceil16(M), width]
  ceil16(M) = ceil16(7) = 16
  width = 11
  16 * 11 elements * 2 bytes = 352 bytes
together 352 bytes

Symbols
  M = 7  (batch)
  width = heads*(gated ? 2 : 1) + 3 = 4*(true ? 2 : 1) + 3 = 11
  heads = 4
  gated = true
)");
}

TEST_CASE("explain: the alternative that wins, and the floor") {
  CHECK(stowage::explain(plan, 1) ==
        R"(shared: 256 bytes, 42.1 % of all buffers, at 512 of the slab

zero policy  full: every pass clears all of it
there        always
alignment    256 bytes

alternatives that share the bytes: the largest of 2 counts
  1. 28 bytes: f32 [M]
    M = 7
    7 elements * 4 bytes = 28 bytes
  2. 42 bytes, wins: bf16 [3*M]
    3*M = 3*7 = 21
    21 elements * 2 bytes = 42 bytes
  at least 256 bytes: that floor counts
together 256 bytes

Symbols
  M = 7  (batch)
)");
}

TEST_CASE("explain: an absent field is worked out as if it were there") {
  CHECK(stowage::explain(plan, 2) ==
        R"(carved: 0 bytes

zero policy  never: no pass clears it
there        when heads > 9, which does not hold (heads = 4)
alignment    256 bytes

If it were there:
regions, one behind the other: 2 parts
  first: 7 bytes at 0, byte [M]
    M = 7
    7 elements * 1 byte = 7 bytes
  second: 28 bytes at 8 (1 of padding in front), f32 [M]
    M = 7
    7 elements * 4 bytes = 28 bytes
  the last part ends at 36 bytes

Symbols
  heads = 4
  M = 7  (batch)
)");
  CHECK_THROWS_AS(static_cast<void>(stowage::explain(plan, 3)), stowage::bounds_error);
  CHECK_THROWS_AS(static_cast<void>(stowage::explain(plan, "none")), stowage::bounds_error);
}

} // namespace
