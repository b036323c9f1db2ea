#pragma once

#include <stowage/formula.hpp>

namespace stowage::inline v0_1 {

/// Places a part of a region list at an element offset of its own (in elements of the part, from the start of
/// the region list) instead of after its predecessor. The only way for two parts to overlap: values written
/// at row M of a buffer whose keys may be written to ceil16(M) rows, say.
template <auto Offset>
  requires detail::operand<decltype(Offset)>
struct starts_at {
  using stowage_trait = void;
  static constexpr auto element_offset = detail::lift(Offset);
};

} // namespace stowage::inline v0_1
