#pragma once

#include <cstddef>

namespace stowage::inline v0_1 {

/// A floor on the size of a present field, in bytes. A row pass clears no less of it either.
template <std::size_t Bytes> struct at_least {
  using stowage_trait = void;
  static constexpr std::size_t minimum_bytes = Bytes;
};

} // namespace stowage::inline v0_1
