#pragma once

#include <cstddef>

namespace stowage::inline v0_1 {

/// `Bytes` of backing beyond the end of the field (of each of its copies), which bytes() and the passes do
/// not count. Prevents: a copy engine or a vector load that reads in whole lines faulting, or reading the
/// neighbour's data, behind the last row.
template <std::size_t Bytes> struct tail {
  using stowage_trait = void;
  static constexpr std::size_t tail_bytes = Bytes;
};

} // namespace stowage::inline v0_1
