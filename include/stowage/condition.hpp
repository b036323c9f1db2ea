#pragma once

#include <stowage/formula.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

// Every condition is a pure aggregate like a formula, with length, uses_tokens and emit.

namespace stowage::inline v0_1 {

namespace detail {

template <class Type> inline constexpr bool is_flag_dim = false;
template <auto Member>
inline constexpr bool is_flag_dim<dim<Member>> = std::same_as<typename dim<Member>::value_type, bool>;

template <class Type>
concept member_pointer_to_flag =
    std::same_as<typename member_pointer<std::remove_cvref_t<Type>>::value_type, bool>;

/// What `when`, `choose` and the logical operators take: a condition, or a dim over a bool.
template <class Type>
concept condition_operand = condition<Type> || is_flag_dim<std::remove_cvref_t<Type>>;

} // namespace detail

namespace nodes {

/// Compares two formulas, or joins two conditions; the right one is not evaluated where the left one decides.
template <opcode Code, class Left, class Right> struct logical {
  using stowage_condition = void;
  static constexpr std::uint32_t length = 1 + Left::length + Right::length;
  static constexpr bool uses_tokens = Left::uses_tokens || Right::uses_tokens;
  /// The left operand.
  Left left;
  /// The right operand.
  Right right;
  template <class Params> constexpr void emit(detail::instruction<Params>*& out) const {
    detail::emit_node(out, Code, length, uses_tokens);
    left.emit(out);
    right.emit(out);
  }
};

/// Holds where the condition does not.
template <class Operand> struct negation {
  using stowage_condition = void;
  static constexpr std::uint32_t length = 1 + Operand::length;
  static constexpr bool uses_tokens = Operand::uses_tokens;
  /// The condition.
  Operand operand;
  template <class Params> constexpr void emit(detail::instruction<Params>*& out) const {
    detail::emit_node(out, opcode::negation, length, uses_tokens);
    operand.emit(out);
  }
};

} // namespace nodes

namespace detail {

template <opcode Code, class Left, class Right> constexpr auto compare(Left left, Right right) {
  return nodes::logical<Code, lifted<Left>, lifted<Right>>{lift(left), lift(right)};
}

} // namespace detail

/// Condition of two formulas or integers: both are equal.
template <class Left, class Right>
  requires detail::operands<Left, Right>
constexpr auto operator==(Left left, Right right) {
  return detail::compare<opcode::equal>(left, right);
}
/// Condition of two formulas or integers: they differ.
template <class Left, class Right>
  requires detail::operands<Left, Right>
constexpr auto operator!=(Left left, Right right) {
  return detail::compare<opcode::not_equal>(left, right);
}
/// Condition of two formulas or integers: the left one is less.
template <class Left, class Right>
  requires detail::operands<Left, Right>
constexpr auto operator<(Left left, Right right) {
  return detail::compare<opcode::less>(left, right);
}
/// Condition of two formulas or integers: the left one is not greater.
template <class Left, class Right>
  requires detail::operands<Left, Right>
constexpr auto operator<=(Left left, Right right) {
  return detail::compare<opcode::less_equal>(left, right);
}
/// Condition of two formulas or integers: the left one is greater.
template <class Left, class Right>
  requires detail::operands<Left, Right>
constexpr auto operator>(Left left, Right right) {
  return detail::compare<opcode::greater>(left, right);
}
/// Condition of two formulas or integers: the left one is not less.
template <class Left, class Right>
  requires detail::operands<Left, Right>
constexpr auto operator>=(Left left, Right right) {
  return detail::compare<opcode::greater_equal>(left, right);
}

/// Both hold. The right one is not evaluated where the left one does not.
template <detail::condition_operand Left, detail::condition_operand Right>
constexpr auto operator&&(Left left, Right right) {
  return nodes::logical<opcode::conjunction, Left, Right>{left, right};
}
/// One holds. The right one is not evaluated where the left one does.
template <detail::condition_operand Left, detail::condition_operand Right>
constexpr auto operator||(Left left, Right right) {
  return nodes::logical<opcode::disjunction, Left, Right>{left, right};
}
/// Holds where the operand does not.
template <detail::condition_operand Operand> constexpr auto operator!(Operand operand) {
  return nodes::negation<Operand>{operand};
}

/// `yes` where the condition holds, else `no`: `choose(attn_gated, 2, 1)`. The other one is not evaluated.
template <detail::condition_operand Condition, detail::operand Yes, detail::operand No>
constexpr auto choose(Condition when, Yes yes, No no) {
  return nodes::choice<Condition, detail::lifted<Yes>, detail::lifted<No>>{when, detail::lift(yes),
                                                                           detail::lift(no)};
}

/// Whether a condition holds for given params. Throws size_error where one of its formulas has no value; in a
/// constant expression it then does not compile.
template <detail::condition_operand Condition, class Params>
constexpr bool holds(const Condition& condition, const Params& params) {
  return detail::evaluate_now(condition, params) != 0;
}

} // namespace stowage::inline v0_1
