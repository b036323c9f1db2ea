#pragma once

#include <cstddef>
#include <limits>

namespace stowage::inline v0_1::detail {

inline constexpr std::size_t largest_size = std::numeric_limits<std::size_t>::max();

/// Each function stores the exact result and returns true, or returns false and leaves `result` alone when
/// the result is not representable. Divisions instead of compiler builtins: every front end evaluates them.
constexpr bool checked_add(std::size_t left, std::size_t right, std::size_t& result) {
  if (right > largest_size - left) return false;
  result = left + right;
  return true;
}

constexpr bool checked_multiply(std::size_t left, std::size_t right, std::size_t& result) {
  if (left != 0 && right > largest_size / left) return false;
  result = left * right;
  return true;
}

/// Rounds up to a multiple; `multiple` is not zero.
constexpr bool checked_round_up(std::size_t value, std::size_t multiple, std::size_t& result) {
  const std::size_t remainder = value % multiple;
  if (remainder == 0) {
    result = value;
    return true;
  }
  return checked_add(value, multiple - remainder, result);
}

constexpr std::size_t ceil_divide(std::size_t value, std::size_t divisor) {
  return value / divisor + (value % divisor != 0 ? 1 : 0);
}

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) {
  return ceil_divide(value, multiple) * multiple;
}

constexpr bool is_power_of_two(std::size_t value) { return value != 0 && (value & (value - 1)) == 0; }

} // namespace stowage::inline v0_1::detail
