#pragma once

#include <cstddef>

namespace stowage::inline v0_1 {

/// `Count` instances of the field, each at the field's alignment: `field.copy(1)`. bytes() are those of one;
/// the passes treat all alike. Prevents: double buffers kept as two fields whose sizes drift apart, or carved
/// by hand out of one at an offset that is not aligned.
template <std::size_t Count>
  requires(Count > 0)
struct copies {
  using stowage_trait = void;
  static constexpr std::size_t copy_count = Count;
};

} // namespace stowage::inline v0_1
