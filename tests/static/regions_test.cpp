#include <stowage/plan.hpp>
#include <stowage/regions.hpp>
#include <stowage/traits/align.hpp>
#include <stowage/traits/at_least.hpp>
#include <stowage/traits/starts_at.hpp>
#include <stowage/traits/when.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace {

using stowage::alternatives;
using stowage::bf16;
using stowage::buffer;
using stowage::part;
using stowage::regions;
using stowage::shape;
namespace zero = stowage::zero;

struct params {
  stowage::tokens batch{};
  std::size_t width = 0;
  bool second = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::width> width{};

struct odd_parts {
  part<std::uint8_t, shape<M>> flags;
  part<double, shape<M>> sums;
  part<std::uint8_t, shape<3>, stowage::when<&params::second>> extra;
  part<bf16, shape<5>, stowage::align<64>> tail;
};
static_assert(regions<odd_parts>::part_count == 4);
static_assert(regions<odd_parts>::alignment == 64);
static_assert(regions<odd_parts>::nodes == 5);
static_assert(!regions<odd_parts>::token_major);

// Keys, then values at row M; both can be written to ceil16(M) rows.
struct key_value_parts {
  part<bf16, shape<stowage::pad<16>(M), width>> keys;
  part<bf16, shape<stowage::pad<16>(M), width>, stowage::starts_at<M * width>> values;
};
static_assert(regions<key_value_parts>::alignment == 2);
static_assert(regions<key_value_parts>::token_major);

struct nested_parts {
  part<std::uint32_t, shape<M>> head;
  part<regions<odd_parts>> inner;
  part<alternatives<part<float, shape<M>>, key_value_parts>> either;
};
// nested_parts itself, head, inner and its four parts, either, its tensor, and key_value_parts with its two
// parts.
static_assert(regions<nested_parts>::nodes == 1 + 1 + (1 + 4) + (1 + 1 + (1 + 2)));
static_assert(regions<nested_parts>::alignment == 64);

using floats = part<float, shape<M, 2>>;
using halves = part<bf16, shape<stowage::pad<16>(M)>, stowage::when<&params::second>>;
using choice = alternatives<floats, halves, key_value_parts, regions<odd_parts>>;
static_assert(choice::alignment == 64);
static_assert(!choice::token_major);
static_assert(alternatives<floats, halves, key_value_parts>::token_major);

// One element type shared by all alternatives types the common pointer.
static_assert(
    std::is_same_v<decltype(buffer<alternatives<halves, part<bf16, shape<M>>>, zero::full>{}.data()), bf16*>);
static_assert(
    std::is_same_v<decltype(buffer<alternatives<halves, floats>, zero::full>{}.data()), std::byte*>);
static_assert(
    std::is_same_v<decltype(buffer<alternatives<key_value_parts>, zero::full>{}.data()), std::byte*>);

struct fields {
  buffer<regions<odd_parts>, zero::full> odd;
  buffer<regions<key_value_parts>, zero::rows> kv;
  buffer<regions<nested_parts>, zero::never> nested;
  buffer<alternatives<floats, halves>, zero::rows, stowage::at_least<100>> either;
};

inline constexpr auto plan = stowage::make_plan<fields>(params{stowage::tokens{17}, 4, false});
// flags 17, sums from 24 for 17 * 8 = 136 to 160, tail from 192 for 5 * 2.
static_assert(plan.bytes<&fields::odd>() == 192 + 5 * 2);
// Values from 17 * 4 * 2 = 136 for ceil16(17) * 4 * 2 = 256.
static_assert(plan.bytes<&fields::kv>() == 136 + 32 * 4 * 2);
// head 17 * 4 = 68; inner from 128 for 202 to 330; either from 332 for max(17 * 4, 392).
static_assert(plan.bytes<&fields::nested>() == 332 + 392);
static_assert(plan.bytes<&fields::either>() == 17 * 2 * 4);

// With `extra`: 3 bytes from 160, and the tail still from 192.
inline constexpr auto second = stowage::make_plan<fields>(params{stowage::tokens{17}, 4, true});
static_assert(second.bytes<&fields::odd>() == 192 + 5 * 2);
static_assert(second.bytes<&fields::either>() == 17 * 2 * 4);
inline constexpr auto one = stowage::make_plan<fields>(params{stowage::tokens{1}, 4, true});
// flags 1, sums from 8 to 16, extra to 19, tail from 64.
static_assert(one.bytes<&fields::odd>() == 64 + 5 * 2);
static_assert(one.bytes<&fields::either>() == 100); // 8 and 32, with a floor of 100

// Row passes: both regions as far as T tokens reach, padded rows included.
static_assert(plan.zero_bytes<&fields::kv>(stowage::tokens{0}) == 0);
static_assert(plan.zero_bytes<&fields::kv>(stowage::tokens{1}) == 2 * (16 * 4 * 2));
static_assert(plan.zero_bytes<&fields::kv>(stowage::tokens{16}) == 2 * (16 * 4 * 2));
static_assert(plan.zero_bytes<&fields::kv>(stowage::tokens{17}) == 392);
static_assert(plan.zero_bytes<&fields::kv>(stowage::tokens{18}) == 392);
static_assert(second.zero_bytes<&fields::either>(stowage::tokens{1}) == 100);
static_assert(second.zero_bytes<&fields::either>(stowage::tokens{16}) == 16 * 2 * 4);

// One layout whose row ranges overlap: at M = 3 the padded keys reach over the values.
inline constexpr auto three = stowage::make_plan<fields>(params{stowage::tokens{3}, 4, false});
static_assert(three.bytes<&fields::kv>() == 3 * 4 * 2 + 16 * 4 * 2);
static_assert(three.zero_bytes<&fields::kv>(stowage::tokens{1}) == 24 + 128);

} // namespace
