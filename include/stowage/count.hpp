#pragma once

#include <stowage/detail/cold.hpp>
#include <stowage/detail/raise.hpp>

#include <compare>
#include <concepts>
#include <cstddef>
#include <limits>
#include <stdexcept>

namespace stowage::inline v0_1 {

namespace detail {

[[noreturn]] STOWAGE_COLD inline void a_count_was_made_from_a_negative_number() {
  raise<std::out_of_range>("stowage: a count was made from a negative number");
}

} // namespace detail

/// A number of things of one kind. Counts of different tags never mix: a pass that wants tokens does not take
/// sequences. Make one from any integer: `tokens{7}`. A negative number throws std::out_of_range; in a
/// constant expression it does not compile.
template <class Tag> struct count {
  /// The number.
  std::size_t value = 0;

  constexpr count() = default;

  /// From any integer but bool. Throws std::out_of_range for a negative one.
  template <std::integral Integer>
    requires(!std::same_as<Integer, bool>)
  explicit constexpr count(Integer number) : value(static_cast<std::size_t>(number)) {
    if constexpr (std::signed_integral<Integer>) {
      if (number < 0) detail::a_count_was_made_from_a_negative_number();
    }
    static_assert(sizeof(Integer) <= sizeof(std::size_t), "stowage: a count holds at most 64 bits");
  }

  friend constexpr auto operator<=>(const count&, const count&) = default;
};

struct tokens_tag;
struct sequences_tag;
struct pages_tag;

/// Tokens of a batch: what row passes count.
using tokens = count<tokens_tag>;
/// Sequences (requests) of a batch.
using sequences = count<sequences_tag>;
/// Pages (blocks) of a paged key-value cache.
using pages = count<pages_tag>;

namespace detail {

template <class Type> inline constexpr bool is_count = false;
template <class Tag> inline constexpr bool is_count<count<Tag>> = true;

} // namespace detail
} // namespace stowage::inline v0_1
