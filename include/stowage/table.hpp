#pragma once

#include <stowage/detail/leaves.hpp>
#include <stowage/field.hpp>

#include <array>
#include <cstddef>
#include <string_view>

// A field list as a table: what plans and passes read instead of a function for each field.

namespace stowage {

/// Start alignment of a field without align<N>, in bytes: what cudaMalloc guarantees, and enough for every
/// vector load and tensor-copy instruction.
inline constexpr std::size_t default_alignment = 256;

namespace detail {

/// Never defined. In a constant expression a size without a value ends here, so that the compiler shows the
/// member; at run time an exception tells it.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-internal" // for structs in anonymous namespaces
#endif
template <auto Member> [[noreturn]] void size_of_field_has_no_value();
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

template <class Fields> constexpr void fail_in_constant_expression(std::size_t field) {
  [&]<class... Types, std::size_t... Indices>(type_list<Types...>, std::index_sequence<Indices...>) {
    ((field == Indices ? size_of_field_has_no_value<leaf_for_message<Fields, Indices, Types>()>() : void()),
     ...);
  }(leaf_types<Fields>{}, std::make_index_sequence<leaf_types<Fields>::size>{});
}

/// All that plans and passes know of one field.
template <class Params> struct field_entry {
  const content_node<Params>* nodes = nullptr;
  std::size_t slab_group = 0;
  bool cleared_by_zero_all = false;
  row_pass in_row_pass = row_pass::nothing;
  std::string_view policy;
  std::size_t copies = 1;
  std::size_t tail_bytes = 0;
  std::size_t handle_bytes = 0;
  fill_pattern fill;
};

template <class Definition, class Params>
inline constexpr auto nodes_of_field = [] {
  std::array<content_node<Params>, Definition::content_type::nodes> nodes{};
  content_node<Params>* out = nodes.data();
  Definition::emit(out, {}, 0, default_alignment);
  return nodes;
}();

template <class Params, class Buffer> constexpr field_entry<Params> entry_of_field() {
  using definition = typename Buffer::definition;
  using policy = typename definition::policy;
  return {nodes_of_field<definition, Params>.data(),
          policy::slab_group,
          policy::cleared_by_zero_all,
          policy::in_row_pass,
          policy::name,
          definition::copies,
          definition::tail_bytes,
          sizeof(typename definition::content_type::handle),
          definition::fill()};
}

/// The table of a field list, in declaration order.
template <class Fields, class Params>
inline constexpr auto field_table = []<class... Types>(type_list<Types...>) {
  return std::array<field_entry<Params>, sizeof...(Types)>{entry_of_field<Params, Types>()...};
}(leaf_types<Fields>{});

/// What the types of a field list tell, without params.
template <class... Types> struct list_traits {
  /// Most nodes of one field, and tensors in all fields that a row pass clears by rows, and in one of them.
  static constexpr std::size_t most_nodes =
      largest_of(std::size_t{Types::definition::content_type::nodes}...);
  /// Fields, with all their copies.
  static constexpr std::size_t instances = (std::size_t{0} + ... + Types::definition::copies);
  template <class Type>
  static constexpr std::size_t ranges_of = Type::definition::policy::in_row_pass == row_pass::reached_rows
                                               ? Type::definition::content_type::row_ranges
                                               : 0;
  static constexpr std::size_t row_ranges = (std::size_t{0} + ... + ranges_of<Types>);
  static constexpr std::size_t most_row_ranges = largest_of(ranges_of<Types>...);
  /// Segments of a pass over one copy of a field: one for a tensor. Several ranges and a floor can stay
  /// apart, and the tail pass takes a live prefix out of each.
  template <class Type>
  static constexpr std::size_t segments_of = Type::definition::policy::in_row_pass == row_pass::whole ? 1
                                             : ranges_of<Type> <= 1 ? ranges_of<Type>
                                                                    : 2 * ranges_of<Type> + 1;
  static constexpr std::size_t row_segments =
      (std::size_t{0} + ... + (Types::definition::copies * segments_of<Types>));
};
template <class... Types> list_traits<Types...> traits_of_list(type_list<Types...>);

/// Whether one field lies before another in the slab: what zeroing everything clears before what it leaves,
/// then the smaller slab group.
template <class Params>
constexpr bool lies_before(const field_entry<Params>& one, const field_entry<Params>& other) {
  if (one.cleared_by_zero_all != other.cleared_by_zero_all) return one.cleared_by_zero_all;
  return one.slab_group < other.slab_group;
}

/// Fields in slab order; declaration order where nothing else decides.
template <class Fields, class Params>
inline constexpr auto slab_order = [] {
  const auto& table = field_table<Fields, Params>;
  std::array<std::size_t, table.size()> order{};
  for (std::size_t field = 0; field < order.size(); ++field) {
    std::size_t place = field;
    for (; place > 0 && lies_before(table[field], table[order[place - 1]]); --place)
      order[place] = order[place - 1];
    order[place] = field;
  }
  return order;
}();

} // namespace detail
} // namespace stowage
