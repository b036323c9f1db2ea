#pragma once

#include <cstdint>

namespace stowage::inline v0_1 {

/// The field is set to `Numerator / Denominator` when the arena is made, so that the rows and columns that a
/// batch does not write hold that value instead of whatever the memory held. Prevents: a scale table whose
/// padded blocks were 0, so that a kernel which reads whole tiles divided by zero or turned its padding into
/// NaN; the pad of a scale must be 1. Needs zero::never, since a zero pass would undo it. The element type
/// must have the value exactly, or it does not compile.
template <std::int64_t Numerator, std::int64_t Denominator = 1>
  requires(Denominator != 0)
struct pad_fill {
  using stowage_trait = void;
  static constexpr std::int64_t fill_numerator = Numerator;
  static constexpr std::int64_t fill_denominator = Denominator;
};

} // namespace stowage::inline v0_1
