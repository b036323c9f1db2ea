#pragma once

#include <stowage/condition.hpp>

#include <type_traits>

namespace stowage::inline v0_1 {

namespace detail {

template <auto Condition> constexpr auto when_condition() {
  if constexpr (std::is_member_pointer_v<std::remove_cvref_t<decltype(Condition)>>) {
    return dim<Condition>{};
  } else {
    return Condition;
  }
}

} // namespace detail

/// The field exists only where the condition holds; elsewhere it takes no bytes and gives null. The condition
/// is a pointer to a bool member (`when<&params::has_mamba>`) or an expression in parentheses (`when<(experts
/// > 0)>`). Of an absent field no formula is evaluated. Several `when` must all hold.
template <auto Condition>
  requires detail::condition_operand<decltype(Condition)> ||
           detail::member_pointer_to_flag<decltype(Condition)>
struct when {
  using stowage_trait = void;
  static constexpr auto presence_condition = detail::when_condition<Condition>();
};

} // namespace stowage::inline v0_1
