#pragma once

#include <stowage/detail/leaves.hpp>

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace stowage::inline v0_1 {

/// The fields that a call of visit_exhaustive has no handler for; never defined, so that the compiler shows
/// them.
template <auto... Members> struct fields_without_a_handler;
/// A field that a call of visit_exhaustive has two handlers for.
template <auto... Members> struct fields_with_two_handlers;

namespace detail {

template <class Action, auto... Path> struct handler {
  Action action;
};

} // namespace detail

/// A handler of one field of visit_exhaustive, with the path through groups: `on<&fields::logits>(action)`,
/// `on<&fields::attention, &attention::queries>(action)`.
template <auto Member, auto... Path, class Action> constexpr auto on(Action action) {
  return detail::handler<Action, Member, Path...>{std::move(action)};
}

namespace detail {

template <class Fields, auto First, auto... Rest> constexpr auto& member_at_path(Fields& fields) {
  if constexpr (sizeof...(Rest) == 0) {
    return fields.*First;
  } else {
    return member_at_path<std::remove_reference_t<decltype(fields.*First)>, Rest...>(fields.*First);
  }
}

template <class Fields, class Handler> struct handled_leaf;
template <class Fields, class Action, auto... Path> struct handled_leaf<Fields, handler<Action, Path...>> {
  static constexpr std::size_t value = leaf_index<Fields, Path...>();
};

template <class Fields, class Action, auto... Path>
constexpr void call_handler(Fields& fields, handler<Action, Path...>& each) {
  each.action(member_at_path<Fields, Path...>(fields));
}

/// The next leaf that has no handler (`missing`), or more than one; `Leaves` where there is none.
template <std::size_t Leaves>
constexpr std::size_t next_with(const std::array<std::size_t, Leaves>& handlers, std::size_t from,
                                bool missing) {
  while (from < Leaves && (missing ? handlers[from] != 0 : handlers[from] < 2)) ++from;
  return from;
}

template <class Fields, const auto& Handlers, bool Missing, std::size_t Leaf, auto... Found>
consteval bool report_leaves() {
  constexpr std::size_t next = next_with(Handlers, Leaf, Missing);
  if constexpr (next < Handlers.size()) {
    return report_leaves<Fields, Handlers, Missing, next + 1, Found...,
                         leaf_for_message<Fields, next, type_at<next, leaf_types<Fields>>>()>();
  } else if constexpr (sizeof...(Found) == 0) {
    return true;
  } else if constexpr (Missing) {
    return sizeof(fields_without_a_handler<Found...>) != 0;
  } else {
    return sizeof(fields_with_two_handlers<Found...>) != 0;
  }
}

/// How many handlers each leaf has.
template <class Fields, class... Handlers>
inline constexpr auto handler_counts = [] {
  std::array<std::size_t, leaf_types<Fields>::size> counts{};
  ((++counts[handled_leaf<Fields, Handlers>::value]), ...);
  return counts;
}();

} // namespace detail

/// Calls each handler with its field, in the order of the handlers. Does not compile until every field of the
/// list has exactly one; the message lists those without. For passes of an engine's own that must not forget
/// a buffer that somebody adds.
template <class Fields, class... Handlers>
constexpr void visit_exhaustive(Fields& fields, Handlers... handlers) {
  using list = std::remove_const_t<Fields>;
  static_assert(detail::check_field_list<list>());
  static_assert(detail::report_leaves<list, detail::handler_counts<list, Handlers...>, true, 0>());
  static_assert(detail::report_leaves<list, detail::handler_counts<list, Handlers...>, false, 0>());
  (detail::call_handler(fields, handlers), ...);
}

} // namespace stowage::inline v0_1
