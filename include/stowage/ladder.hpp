#pragma once

#include <stowage/condition.hpp>

#include <cstddef>

namespace stowage::inline v0_1 {

/// Rounds a formula up to the next of some rungs, in rising order: `next_rung<2, 4, 8, 12>(N)`. Above the
/// last rung it is the formula itself. For engines that pad a batch to the sizes they captured graphs for.
template <std::size_t First, std::size_t... Rest, formula Operand> constexpr auto next_rung(Operand operand) {
  if constexpr (sizeof...(Rest) == 0) {
    return choose(operand <= c<First>, c<First>, operand);
  } else {
    return choose(operand <= c<First>, c<First>, next_rung<Rest...>(operand));
  }
}

} // namespace stowage::inline v0_1
