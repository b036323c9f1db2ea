#pragma once

namespace stowage::inline v0_1 {

/// Cleared once, when the arena is made, whatever the zero policy says later.
struct zero_at_construction {
  using stowage_trait = void;
  static constexpr bool cleared_at_construction = true;
};

} // namespace stowage::inline v0_1
