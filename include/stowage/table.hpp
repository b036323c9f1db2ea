#pragma once

#include <stowage/detail/leaves.hpp>
#include <stowage/field.hpp>

#include <array>
#include <cstddef>
#include <string_view>

// A field list as a table: what plans and passes read instead of a function for each field.

namespace stowage::inline v0_1 {

/// Start alignment of a field without align<N>, in bytes: what cudaMalloc guarantees, and enough for every
/// vector load and tensor-copy instruction.
inline constexpr std::size_t default_alignment = 256;

namespace detail {

/// Never defined. In a constant expression a size without a value ends here, so that the compiler shows the
/// member; at run time an exception tells it.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-internal" // for structs in anonymous namespaces
#pragma clang diagnostic ignored "-Wundefined-func-template"
#endif
template <auto Member> [[noreturn]] void size_of_field_has_no_value();

template <class Fields> constexpr void fail_in_constant_expression(std::size_t field) {
  [&]<class... Types, std::size_t... Indices>(type_list<Types...>, std::index_sequence<Indices...>) {
    ((field == Indices ? size_of_field_has_no_value<leaf_for_message<Fields, Indices, Types>()>() : void()),
     ...);
  }(leaf_types<Fields>{}, std::make_index_sequence<leaf_types<Fields>::size>{});
}
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

/// All that plans and passes know of one field.
template <class Params> struct field_entry {
  const content_node<Params>* nodes = nullptr;
  std::size_t slab_group = 0;
  bool cleared_by_zero_all = false;
  bool cleared_at_construction = false;
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
          definition::cleared_at_construction,
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

/// Which fields carry tag<Tag>, by their number in declaration order.
template <class Fields, class Tag>
inline constexpr auto fields_with_tag = []<class... Types>(type_list<Types...>) {
  return std::array<bool, sizeof...(Types)>{Types::definition::traits::template has_tag<Tag>...};
}(leaf_types<Fields>{});

/// How much room plans and passes of a field list need.
struct list_sizes {
  /// Most nodes of one field.
  std::size_t most_nodes = 0;
  /// Fields, with all their copies.
  std::size_t instances = 0;
  /// Tensors in all fields that a row pass clears by rows, and most in one of them.
  std::size_t row_ranges = 0;
  std::size_t most_row_ranges = 0;
  /// Segments of a row pass at most.
  std::size_t row_segments = 0;
};

/// Segments of a row pass over one copy of a field: one for a tensor. Several ranges and a floor can stay apart, and the
/// tail pass takes a live prefix out of each.
constexpr std::size_t row_segments_of(row_pass pass, std::size_t row_ranges) {
  if (pass == row_pass::whole) return 1;
  return row_ranges <= 1 ? row_ranges : 2 * row_ranges + 1;
}

/// From the table and not from the types: what is named by the types of a whole field list is slow to compile.
template <class Fields, class Params>
inline constexpr list_sizes sizes_of_list = [] {
  list_sizes sizes;
  for (const field_entry<Params>& field : field_table<Fields, Params>) {
    std::size_t row_ranges = 0;
    if (field.in_row_pass == row_pass::reached_rows) {
      for (std::uint32_t node = 0; node < field.nodes->length; ++node)
        row_ranges += field.nodes[node].kind == content_kind::tensor ? 1 : 0;
    }
    sizes.most_nodes = largest_of(sizes.most_nodes, std::size_t{field.nodes->length});
    sizes.instances += field.copies;
    sizes.row_ranges += row_ranges;
    sizes.most_row_ranges = largest_of(sizes.most_row_ranges, row_ranges);
    sizes.row_segments += field.copies * row_segments_of(field.in_row_pass, row_ranges);
  }
  return sizes;
}();

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
} // namespace stowage::inline v0_1
