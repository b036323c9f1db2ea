#pragma once

#include <stowage/detail/checked.hpp>
#include <stowage/layout.hpp>
#include <stowage/plan.hpp>
#include <stowage/program.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

// How small a slab can be while one number lies anywhere in a range. Interval arithmetic over the plan's own formulas:
// whatever they do between the ends, such as rounding, ladders or quotients, no value in the range takes less.

namespace planner {

/// The values that a formula can have; `high` is the largest number where it may be beyond.
struct interval {
  std::size_t low = 0;
  std::size_t high = 0;
};

/// Evaluates formulas while the member `varied` of the params struct has any value in `range`.
template <class Params> class interval_evaluator {
public:
  interval_evaluator(const Params& params, std::string_view varied, interval range)
      : params_(params), varied_(varied), range_(range) {}

  /// The values of the node at `at`, which is then moved behind it.
  interval take(const stowage::detail::instruction<Params>*& at) const {
    using stowage::opcode;
    const stowage::detail::instruction<Params>& node = *at++;
    switch (node.code) {
      case opcode::constant: return {node.value, node.value};
      case opcode::input: return input(node);
      case opcode::call: {
        const stowage::detail::instruction<Params>* target = node.target;
        return take(target);
      }
      case opcode::choose: {
        const interval condition = take(at);
        const interval yes = take(at);
        const interval no = take(at);
        if (condition.low == 1) return yes;
        if (condition.high == 0) return no;
        return {std::min(yes.low, no.low), std::max(yes.high, no.high)};
      }
      case opcode::negation: {
        const interval operand = take(at);
        return {1 - operand.high, 1 - operand.low};
      }
      case opcode::round_up: {
        const interval operand = take(at);
        return {round_up(operand.low, node.value), round_up(operand.high, node.value)};
      }
      case opcode::at_most: {
        const interval operand = take(at);
        if (operand.low > node.value) return {most, most}; // no plan
        return {operand.low, std::min(operand.high, node.value)};
      }
      default: {
        const interval left = take(at);
        const interval right = take(at);
        return combine(node.code, left, right);
      }
    }
  }

  interval value(const stowage::detail::instruction<Params>* program) const { return take(program); }

  static constexpr std::size_t most = stowage::detail::largest_size;

  static std::size_t add(std::size_t left, std::size_t right) {
    return left > most - right ? most : left + right;
  }
  static std::size_t multiply(std::size_t left, std::size_t right) {
    return left != 0 && right > most / left ? most : left * right;
  }
  static std::size_t round_up(std::size_t value, std::size_t multiple) {
    const std::size_t rest = value % multiple;
    return rest == 0 ? value : add(value, multiple - rest);
  }

private:
  interval input(const stowage::detail::instruction<Params>& node) const {
    if (node.name == varied_) return range_;
    const stowage::detail::reading member = node.read(params_);
    if (member.negative) return {0, most};
    return {member.magnitude, member.magnitude};
  }

  static interval truth(bool certain, bool possible) { return {certain ? 1U : 0U, possible ? 1U : 0U}; }

  static interval combine(stowage::opcode code, interval left, interval right) {
    using stowage::opcode;
    switch (code) {
      case opcode::add: return {add(left.low, right.low), add(left.high, right.high)};
      case opcode::subtract:
        return {left.low > right.high ? left.low - right.high : 0,
                left.high > right.low ? left.high - right.low : 0};
      case opcode::multiply: return {multiply(left.low, right.low), multiply(left.high, right.high)};
      case opcode::divide:
        return {right.high == 0 ? 0 : left.low / right.high, right.low == 0 ? most : left.high / right.low};
      case opcode::ceil_divide:
        return {right.high == 0 ? 0 : stowage::detail::ceil_divide(left.low, right.high),
                right.low == 0 ? most : stowage::detail::ceil_divide(left.high, right.low)};
      case opcode::minimum: return {std::min(left.low, right.low), std::min(left.high, right.high)};
      case opcode::maximum: return {std::max(left.low, right.low), std::max(left.high, right.high)};
      case opcode::equal:
        return truth(left.low == left.high && right.low == right.high && left.low == right.low,
                     left.low <= right.high && right.low <= left.high);
      case opcode::not_equal: {
        const interval equal = combine(opcode::equal, left, right);
        return {1 - equal.high, 1 - equal.low};
      }
      case opcode::less: return truth(left.high < right.low, left.low < right.high);
      case opcode::less_equal: return truth(left.high <= right.low, left.low <= right.high);
      case opcode::greater: return combine(opcode::less, right, left);
      case opcode::greater_equal: return combine(opcode::less_equal, right, left);
      case opcode::conjunction: return {std::min(left.low, right.low), std::min(left.high, right.high)};
      case opcode::disjunction: return {std::max(left.low, right.low), std::max(left.high, right.high)};
      default: return {0, most};
    }
  }

  const Params& params_;
  std::string_view varied_;
  interval range_;
};

/// The fewest bytes of the content at `node`, which is moved behind it.
template <class Params>
std::size_t least_content_bytes(const stowage::detail::content_node<Params>*& node,
                                const interval_evaluator<Params>& evaluate) {
  using stowage::detail::content_kind;
  using arithmetic = interval_evaluator<Params>;
  const stowage::detail::content_node<Params>& self = *node++;
  interval present{1, 1};
  const stowage::detail::instruction<Params>* condition = self.presence;
  for (std::uint32_t index = 0; index < self.conditions; ++index) {
    const interval holds = evaluate.take(condition);
    present = {std::min(present.low, holds.low), std::min(present.high, holds.high)};
  }
  std::size_t bytes = 0;
  if (self.kind == content_kind::tensor) {
    std::size_t elements = 1;
    const stowage::detail::instruction<Params>* at = self.extents;
    for (std::uint32_t axis = 0; axis < self.rank; ++axis)
      elements = arithmetic::multiply(elements, evaluate.take(at).low);
    bytes = arithmetic::multiply(stowage::detail::ceil_divide(elements, self.elements_per_block),
                                 self.block_bytes);
  } else {
    std::size_t cursor = 0;
    for (std::uint32_t child = 0; child < self.children; ++child) {
      const stowage::detail::content_node<Params>& part = *node;
      const std::size_t part_bytes = least_content_bytes(node, evaluate);
      if (self.kind == content_kind::alternatives) {
        bytes = std::max(bytes, part_bytes);
        continue;
      }
      if (part_bytes == 0) continue;
      std::size_t start = arithmetic::round_up(cursor, part.alignment);
      if (part.start != nullptr) {
        const std::size_t elements = evaluate.value(part.start).low;
        start = arithmetic::multiply(stowage::detail::ceil_divide(elements, part.elements_per_block),
                                     part.block_bytes);
      }
      cursor = arithmetic::add(start, part_bytes);
      bytes = std::max(bytes, cursor);
    }
  }
  const std::size_t floor = self.minimum != nullptr ? evaluate.value(self.minimum).low : 0;
  bytes = std::max({bytes, floor, self.minimum_bytes});
  if (present.high == 0) return self.absent_bytes;
  return present.low == 1 ? bytes : std::min(bytes, self.absent_bytes);
}

/// The fewest bytes of the slab while the member `varied` has any value from `first` to `last`; the largest number where
/// there is no plan for any of them.
template <class Fields, class Params>
std::size_t least_slab_bytes(const Params& params, std::string_view varied, std::size_t first,
                             std::size_t last) {
  using arithmetic = interval_evaluator<Params>;
  const arithmetic evaluate(params, varied, {first, last});
  const auto& table = stowage::plan<Fields, Params>::table();
  std::size_t cursor = 0;
  for (const std::size_t field : stowage::detail::slab_order<Fields, Params>) {
    const stowage::detail::content_node<Params>* node = table[field].nodes;
    const std::size_t alignment = node->alignment;
    const std::size_t bytes = least_content_bytes(node, evaluate);
    if (bytes == 0) continue;
    const std::size_t stride =
        arithmetic::round_up(arithmetic::add(bytes, table[field].tail_bytes), alignment);
    cursor = arithmetic::add(arithmetic::round_up(cursor, alignment),
                             arithmetic::add(arithmetic::multiply(table[field].copies - 1, stride),
                                             arithmetic::add(bytes, table[field].tail_bytes)));
  }
  return cursor;
}

} // namespace planner
