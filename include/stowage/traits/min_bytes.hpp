#pragma once

#include <stowage/formula.hpp>

namespace stowage::inline v0_1 {

/// A floor on the size of a present field, in bytes, that depends on the params: a formula. at_least<N> is
/// the same for a constant. Prevents: a workspace sized by one formula and used by a library that asks for
/// more in some configurations.
template <auto Formula>
  requires detail::operand<decltype(Formula)>
struct min_bytes {
  using stowage_trait = void;
  static constexpr auto minimum_formula = detail::lift(Formula);
};

} // namespace stowage::inline v0_1
