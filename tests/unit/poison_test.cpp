// Poison: what each element type becomes, and what is filled.

#include <stowage/guards.hpp>
#include <stowage/poison.hpp>
#include <stowage/stowage.hpp>
#include <stowage/traits/copies.hpp>
#include <stowage/traits/tail.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <doctest/doctest.h>

namespace {

using stowage::buffer;
using stowage::shape;
using stowage::tokens;
namespace poisons = stowage::poisons;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  bool trace = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};

struct keys_and_counts {
  stowage::part<stowage::f16, shape<M>> keys;
  stowage::part<std::int64_t, shape<M>> counts;
};
struct attention {
  buffer<stowage::bf16, shape<M, 4>, zero::rows> queries;
  buffer<stowage::regions<keys_and_counts>, zero::never> cache;
};
struct fields {
  buffer<float, shape<M, 3>, zero::rows> f32;
  buffer<double, shape<M>, zero::full> f64;
  attention groups;
  buffer<stowage::fp8_e4m3, shape<M>, zero::never> e4m3;
  buffer<stowage::fp8_e5m2, shape<M>, zero::never> e5m2;
  buffer<std::uint32_t, shape<M>, zero::never, stowage::copies<2>> ids;
  buffer<stowage::u4, shape<M>, zero::never, stowage::tail<3>> packed;
  buffer<bool, shape<M>, zero::never> flags;
  buffer<float, shape<M>, zero::never, stowage::when<&params::trace>> timeline;
};

template <class Bits> Bits bits_of(const void* address) {
  Bits bits{};
  std::memcpy(&bits, address, sizeof bits);
  return bits;
}

TEST_CASE("poison: a byte goes everywhere, and a bool stays one") {
  stowage::arena arena(stowage::make_plan<fields>(params{tokens{5}}), stowage::host_backend{});
  stowage::poison(arena, poisons::ones);
  for (const std::byte byte : arena->f32.memory()) CHECK(byte == std::byte{0xff});
  for (const std::byte byte : arena->groups.cache.memory()) CHECK(byte == std::byte{0xff});
  CHECK(arena->ids.copy(1).data()[4] == 0xffffffffU);
  CHECK(bits_of<std::uint8_t>(arena->flags.data()) == 1);
  // 5 packed elements take 3 bytes, and 3 of tail.
  CHECK(bits_of<std::uint8_t>(reinterpret_cast<std::byte*>(arena->packed.data()) + 5) == 0xff);
  stowage::poison(arena, poisons::zeros);
  for (const std::byte byte : arena->f32.memory()) CHECK(byte == std::byte{0});
  CHECK(bits_of<std::uint8_t>(arena->flags.data()) == 0);
  CHECK(arena->timeline.data() == nullptr);
}

TEST_CASE("poison: floats become signalling NaN, in parts of regions too") {
  stowage::arena arena(stowage::make_plan<fields>(params{tokens{5}}), stowage::host_backend{});
  stowage::poison(arena, poisons::signalling_nan);
  // Exponent all ones, a fraction that is not 0, and its first bit, which says quiet, 0.
  CHECK(bits_of<std::uint32_t>(arena->f32.data() + 14) == 0x7fa00000U);
  CHECK(bits_of<std::uint64_t>(arena->f64.data() + 4) == 0x7ff4000000000000U);
  CHECK(bits_of<std::uint16_t>(arena->groups.queries.data() + 19) == 0x7fa0U);
  const auto& cache = arena->groups.cache;
  CHECK(bits_of<std::uint16_t>(cache->keys.data() + 4) == 0x7d00U);
  CHECK(bits_of<std::uint64_t>(cache->counts.data()) == 0xffffffffffffffffU);
  CHECK(arena->e4m3.data()[2].bits == 0x7f);
  CHECK(arena->e5m2.data()[2].bits == 0x7d);
  CHECK(arena->ids.data()[0] == 0xffffffffU);
  float value = 0;
  std::memcpy(&value, arena->f32.data(), sizeof value);
  CHECK((value != value));
}

TEST_CASE("poison: integers can be a number that is a valid index") {
  stowage::arena arena(stowage::make_plan<fields>(params{tokens{5}}), stowage::host_backend{});
  stowage::poison(arena, {.byte = 0x5b, .integer_value = 3});
  CHECK(arena->ids.data()[4] == 3);
  CHECK(arena->groups.cache->counts.data()[4] == 3);
  CHECK(arena->packed.data()[1].pair == 0x33);
  CHECK(bits_of<std::uint32_t>(arena->f32.data()) == 0x5b5b5b5bU);
}

TEST_CASE("poison: the two large patterns are finite in every float format, with opposite signs") {
  CHECK(std::isfinite(std::bit_cast<float>(0x5b5b5b5bU)));
  CHECK(std::bit_cast<float>(0xdbdbdbdbU) < -1e16F);
  CHECK(std::isfinite(std::bit_cast<double>(0x5b5b5b5b5b5b5b5bU)));
  CHECK((0x5b5b & 0x7f80) != 0x7f80); // bf16: the exponent is not all ones
  CHECK((0x5b5b & 0x7c00) != 0x7c00); // f16
  CHECK((0x5b & 0x7f) != 0x7f);       // fp8_e4m3: not the NaN
  CHECK((0x5b & 0x7c) != 0x7c);       // fp8_e5m2
}

TEST_CASE("poison: guard zones stay, more than one chunk is filled, and each chunk fits its element") {
  struct large {
    buffer<double, shape<M>, zero::rows> values; // 20000 * 8 = 160000 bytes: two chunks of 65536 and a rest
    buffer<float, shape<M>, zero::never> others;
  };
  stowage::arena arena(stowage::make_plan<large>(params{tokens{20000}}).with_guards(),
                       stowage::host_backend{});
  stowage::poison(arena, poisons::signalling_nan);
  std::size_t right = 0;
  for (std::size_t row = 0; row < 20000; ++row)
    right += bits_of<std::uint64_t>(arena->values.data() + row) == 0x7ff4000000000000U ? 1 : 0;
  CHECK(right == 20000);
  CHECK(stowage::scan_guards(arena, {}, [](const stowage::guard_damage&) {}) == 0);
}

TEST_CASE("poison: parts of several chunks, none of whose borders is one of a chunk") {
  struct parts {
    stowage::part<stowage::f16, shape<M>> keys;    // 140002 bytes: two chunks and a bit
    stowage::part<std::uint32_t, shape<M>> ids;    // 280004 bytes from 140004 on
    stowage::part<stowage::bf16, shape<M>> values; // 140002 bytes from 420008 on
  };
  struct large {
    buffer<stowage::regions<parts>, zero::never, stowage::tail<100000>> cache;
  };
  stowage::arena arena(stowage::make_plan<large>(params{tokens{70001}}), stowage::host_backend{});
  stowage::poison(arena, {.byte = 0xdb, .signalling_nan = true, .integer_value = 7});
  const auto& cache = arena->cache;
  std::size_t right = 0;
  for (std::size_t row = 0; row < 70001; ++row) {
    const bool row_is_right = bits_of<std::uint16_t>(cache->keys.data() + row) == 0x7d00U &&
                              cache->ids.data()[row] == 7 &&
                              bits_of<std::uint16_t>(cache->values.data() + row) == 0x7fa0U;
    right += row_is_right ? 1 : 0;
  }
  CHECK(right == 70001);
  CHECK(cache.bytes() == 420008 + 140002);
  for (std::size_t at = 0; at < 100000; ++at)
    right += cache.data()[420008 + 140002 + at] == std::byte{0xdb} ? 1 : 0;
  CHECK(right == 70001 + 100000);
}

TEST_CASE("poison: separate allocations are filled, and a released arena refuses") {
  stowage::arena arena(stowage::make_plan<fields>(params{tokens{5}}), stowage::host_backend{},
                       {.where = stowage::placement::separate});
  stowage::poison(arena, poisons::ones);
  CHECK(arena->ids.copy(1).data()[4] == 0xffffffffU);
  CHECK(arena.release().ok());
  CHECK_THROWS_AS(stowage::poison(arena, poisons::ones), stowage::usage_error);
}

} // namespace
