// Sizes of every kind of element in memory.

#include <stowage/arena.hpp>
#include <stowage/backend/host.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace {

using stowage::buffer;
using stowage::shape;
using stowage::tokens;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  std::size_t width = 0;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::width> width{};

/// 16 elements and a scale in 9 bytes.
struct nvfp4_block {
  static constexpr std::string_view element_name = "nvfp4";
  static constexpr std::size_t elements_per_block = 16;
  std::uint8_t pairs[8];
  std::uint8_t scale;
};
struct slot {
  std::uint64_t address;
  std::uint32_t length;
};

struct fields {
  buffer<stowage::u4, shape<M, width>, zero::never> nibbles;
  buffer<stowage::fp4_e2m1, shape<width>, zero::never> odd;
  buffer<stowage::q8_1, shape<M, width>, zero::never> q8;
  buffer<nvfp4_block, shape<M, stowage::pad<16>(width)>, zero::rows> own;
  buffer<slot, shape<M>, zero::never> slots;
  buffer<stowage::bf16, shape<>, zero::never> scalar;
  buffer<bool, shape<M, width>, zero::full> flags;
};

TEST_CASE("element: odd counts round up to blocks") {
  const auto plan = stowage::make_plan<fields>(params{tokens{3}, 7});
  CHECK(plan.bytes<&fields::nibbles>() == 11); // 21 elements, 2 a byte
  CHECK(plan.bytes<&fields::odd>() == 4);      // 7 elements, 2 a byte
  CHECK(plan.bytes<&fields::q8>() == 36);      // 21 elements, 32 in 36 bytes
  CHECK(plan.bytes<&fields::own>() == 3 * 9);  // 16 a row, 16 in 9 bytes
  CHECK(plan.bytes<&fields::slots>() == 3 * 16);
  CHECK(plan.bytes<&fields::scalar>() == 2);
  CHECK(plan.bytes<&fields::flags>() == 21);
  CHECK(plan.zero_bytes<&fields::own>(tokens{1}) == 9);
  CHECK(plan.zero_bytes<&fields::own>(tokens{2}) == 18);

  const stowage::arena arena(plan, stowage::host_backend{});
  static_assert(std::is_same_v<decltype(arena->own.data()), nvfp4_block*>);
  CHECK(arena->nibbles.size() == 21);
  CHECK(arena->nibbles.span().size() == 11);
  CHECK(arena->own.size() == 48);
  CHECK(arena->own.span().size() == 3);
  CHECK(arena->own.rows(1, 3).data() == arena->own.data() + 1);
  CHECK(arena->own.rows(1, 3).size() == 2);
  CHECK(arena->scalar.size() == 1);
  CHECK(arena->scalar.span().size() == 1);
  CHECK(arena->nibbles.fits(22));
  CHECK_FALSE(arena->nibbles.fits(23));
  CHECK_THROWS_WITH_AS(
      static_cast<void>(arena->nibbles.rows(0, 1)),
      "stowage: field 'nibbles': its rows are not whole blocks of 2 elements; pad the last extent",
      stowage::bounds_error);
  CHECK_THROWS_AS(static_cast<void>(arena->q8.rows(0, 1)), stowage::bounds_error);
  CHECK(arena->q8.fits(32));
  CHECK_FALSE(arena->q8.fits(33));

  // Whole blocks a row.
  const stowage::arena even(stowage::make_plan<fields>(params{tokens{3}, 64}), stowage::host_backend{});
  CHECK(even->q8.bytes() == 3 * 2 * 36);
  CHECK(even->q8.rows(1, 2).data() == even->q8.data() + 2);
  CHECK(even->nibbles.rows(2, 3).size() == 32);
}

struct split_rows {
  buffer<stowage::u4, shape<M, width>, zero::rows> nibbles;
};

TEST_CASE("element: a row policy on rows that are not whole blocks is an error that says so") {
  CHECK(stowage::make_plan<split_rows>(params{tokens{3}, 8}).zero_rows_bytes(tokens{1}) == 4);
  std::string message;
  try {
    static_cast<void>(stowage::make_plan<split_rows>(params{tokens{3}, 7}));
  } catch (const stowage::size_error& error) {
    message = error.what();
  }
  CHECK(
      message.find("stowage: field 'nibbles': 7 % 2 leaves part of a block in each row: pad the row to whole "
                   "blocks, in u4 [M, width]") == 0);
}

} // namespace
