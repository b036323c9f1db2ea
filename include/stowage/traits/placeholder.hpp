#pragma once

#include <cstddef>

namespace stowage::inline v0_1 {

/// What an absent field keeps instead of being null, in bytes: for engines that hand its address to a kernel
/// whether or not it is used. Its extents are zero.
template <std::size_t Bytes> struct placeholder {
  using stowage_trait = void;
  static constexpr std::size_t absent_bytes = Bytes;
};

} // namespace stowage::inline v0_1
