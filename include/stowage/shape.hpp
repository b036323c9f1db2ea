#pragma once

#include <stowage/formula.hpp>

#include <array>
#include <cstddef>
#include <type_traits>

namespace stowage::inline v0_1 {

namespace detail {

/// Most extents of one shape.
inline constexpr std::size_t most_extents = 8;

template <auto Value> using formula_type = std::remove_cvref_t<decltype(lift(Value))>;

/// What the types of the extents tell: the leading one may count tokens.
template <auto... Extents> struct shape_traits {
  static constexpr bool uses_tokens = false;
  static constexpr bool token_major = false;
};
template <auto Leading, auto... Inner> struct shape_traits<Leading, Inner...> {
  static constexpr bool inner_uses_tokens = (false || ... || formula_type<Inner>::uses_tokens);
  static constexpr bool uses_tokens = formula_type<Leading>::uses_tokens || inner_uses_tokens;
  static constexpr bool token_major =
      formula_type<Leading>::uses_tokens && formula_type<Leading>::grows_with_tokens && !inner_uses_tokens;
};

} // namespace detail

/// The extents of a tensor, outermost first, each a formula or an integer: `shape<pad<16>(M), 2 * hidden>`.
/// The last extent is contiguous. At most 8; `shape<>` is one element.
template <auto... Extents>
  requires(detail::operand<decltype(Extents)> && ...)
struct shape {
  using stowage_shape = void;
  /// The number of extents.
  static constexpr std::size_t rank = sizeof...(Extents);
  static_assert(rank <= detail::most_extents, "stowage: a shape has at most 8 extents");
  /// Only the leading extent depends on the token count, and it grows with it.
  static constexpr bool token_major = detail::shape_traits<Extents...>::token_major;
  static constexpr bool uses_tokens = detail::shape_traits<Extents...>::uses_tokens;

  /// The programs of all extents, one behind the other.
  template <class Params> static constexpr auto compile() {
    std::array<detail::instruction<Params>, (std::size_t{0} + ... + detail::formula_type<Extents>::length)>
        program{};
    [[maybe_unused]] detail::instruction<Params>* out = program.data();
    (detail::lift(Extents).emit(out), ...);
    return program;
  }
};

namespace detail {

template <class Type>
concept any_shape = requires { typename Type::stowage_shape; };

template <class Shape, class Params>
inline constexpr auto program_of_shape = Shape::template compile<Params>();

} // namespace detail
} // namespace stowage::inline v0_1
