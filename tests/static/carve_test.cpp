#include <stowage/carve.hpp>
#include <stowage/traits/align.hpp>
#include <stowage/traits/at_least.hpp>
#include <stowage/traits/starts_at.hpp>
#include <stowage/traits/when.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace {

using stowage::bf16;
using stowage::layout_of;
using stowage::part;
using stowage::regions;
using stowage::shape;
using stowage::tokens;

struct params {
  tokens batch{};
  bool second = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::second> second{};

struct odd_parts {
  part<std::uint8_t, shape<M>> flags;
  part<double, shape<M>> sums;
  part<std::uint8_t, shape<3>, stowage::when<second>> extra;
  part<bf16, shape<5>, stowage::align<64>> wide;
};

// The start of the list is aligned for its strictest part.
static_assert(stowage::carving<odd_parts, params>::alignment == 64);
static_assert(std::is_same_v<decltype(layout_of<odd_parts>(params{})), stowage::carving<odd_parts, params>>);

// Seven bytes of flags, then doubles at 8, then bf16 at a multiple of 64.
constexpr auto seven = layout_of<odd_parts>(params{tokens{7}});
static_assert(seven.offset<&odd_parts::flags>() == 0 && seven.bytes<&odd_parts::flags>() == 7);
static_assert(seven.offset<&odd_parts::sums>() == 8 && seven.bytes<&odd_parts::sums>() == 56);
static_assert(seven.bytes<&odd_parts::extra>() == 0);
static_assert(seven.offset<&odd_parts::wide>() == 64 && seven.bytes<&odd_parts::wide>() == 10);
static_assert(seven.bytes() == 74);

// Three more bytes at 64 move the next part to the next multiple of 64.
constexpr auto seven_and_extra = layout_of<odd_parts>(params{tokens{7}, true});
static_assert(seven_and_extra.offset<&odd_parts::extra>() == 64);
static_assert(seven_and_extra.bytes<&odd_parts::extra>() == 3);
static_assert(seven_and_extra.offset<&odd_parts::wide>() == 128);
static_assert(seven_and_extra.bytes() == 138);

// Smaller params, another layout of the same parts.
constexpr auto three = layout_of<odd_parts>(params{tokens{3}, true});
static_assert(three.offset<&odd_parts::sums>() == 8);
static_assert(three.offset<&odd_parts::extra>() == 32);
static_assert(three.offset<&odd_parts::wide>() == 64);
static_assert(three.bytes() == 74);

// Padding lies only in front of what is there.
constexpr auto none = layout_of<odd_parts>(params{});
static_assert(none.bytes<&odd_parts::sums>() == 0);
static_assert(none.offset<&odd_parts::wide>() == 0 && none.bytes() == 10);

// Parts of parts: the inner list keeps its alignment behind an odd-sized neighbour.
struct nested_parts {
  part<std::uint32_t, shape<M>> head;
  part<std::uint8_t, shape<1>> odd;
  part<regions<odd_parts>> inner;
  part<std::uint8_t, shape<1>> last;
};
constexpr auto nested = layout_of<nested_parts>(params{tokens{7}});
static_assert(nested.offset<&nested_parts::odd>() == 28);
static_assert(nested.offset<&nested_parts::inner>() == 64 && nested.bytes<&nested_parts::inner>() == 74);
static_assert(nested.offset<&nested_parts::last>() == 138);
static_assert(nested.bytes() == 139);

// A floor counts; an explicit start lets parts overlap.
struct placed_parts {
  part<float, shape<M>, stowage::at_least<100>> floored;
  part<float, shape<M>, stowage::starts_at<M>> overlapping;
};
constexpr auto placed = layout_of<placed_parts>(params{tokens{2}});
static_assert(placed.bytes<&placed_parts::floored>() == 100);
static_assert(placed.offset<&placed_parts::overlapping>() == 8);
static_assert(placed.bytes() == 100);

} // namespace
