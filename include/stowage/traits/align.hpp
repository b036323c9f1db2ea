#pragma once

#include <stowage/detail/checked.hpp>

#include <cstddef>

namespace stowage::inline v0_1 {

/// The field starts at a multiple of `Bytes`, a power of two no smaller than its element's own alignment.
/// Fields are aligned to 256 without it, parts of a region list to their element.
template <std::size_t Bytes>
  requires(detail::is_power_of_two(Bytes))
struct align {
  using stowage_trait = void;
  static constexpr std::size_t start_alignment = Bytes;
};

} // namespace stowage::inline v0_1
