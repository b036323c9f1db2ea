#pragma once

#include <cstddef>
#include <string_view>

namespace stowage::inline v0_1 {

/// What a row pass over T tokens clears of a field.
enum class row_pass : unsigned char {
  reached_rows, ///< the bytes that the field's formula gives with the token count set to T
  whole,        ///< all of it
  nothing
};

/// Zero policies: each field has exactly one. `slab_group` orders the slab, so that everything that is zeroed
/// is one contiguous range at its beginning.
namespace zero {

/// Cleared row by row, as far as the tokens of a pass reach. Only for token-major fields.
struct rows {
  using stowage_trait = void;
  static constexpr std::string_view name = "rows";
  static constexpr std::size_t slab_group = 0;
  static constexpr bool cleared_by_zero_all = true;
  static constexpr row_pass in_row_pass = row_pass::reached_rows;
};

/// Cleared whole on every pass.
struct full {
  using stowage_trait = void;
  static constexpr std::string_view name = "full";
  static constexpr std::size_t slab_group = 1;
  static constexpr bool cleared_by_zero_all = true;
  static constexpr row_pass in_row_pass = row_pass::whole;
};

/// Never cleared: every byte that is read was written before.
struct never {
  using stowage_trait = void;
  static constexpr std::string_view name = "never";
  static constexpr std::size_t slab_group = 2;
  static constexpr bool cleared_by_zero_all = false;
  static constexpr row_pass in_row_pass = row_pass::nothing;
};

} // namespace zero
} // namespace stowage::inline v0_1
