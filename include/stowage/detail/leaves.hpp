#pragma once

// A field list as the flat list of its fields: groups are opened, members that are not owned are left out.

#include <stowage/buffer.hpp>
#include <stowage/detail/reflect.hpp>

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

namespace stowage::inline v0_1 {

// What a compile error says of a field list. These are never defined: the compiler's first line is
// "incomplete type", then the name of the struct, which says what is wrong, then the member.

/// A member is neither a buffer, nor a group of buffers (a plain aggregate), nor not_owned<T>.
template <auto Member, class Type> struct member_is_neither_a_buffer_nor_a_group_nor_not_owned;
/// A member is a C array. Declare one buffer with another extent, or one member each.
template <auto Member, class Type> struct member_is_an_array_which_is_no_field;
/// The zero policy is zero::rows, but the field is not token-major: its leading extent must grow with the
/// tokens, and no other extent may depend on them.
template <auto Member, class Type> struct row_policy_on_a_field_that_is_not_token_major;
/// A field list has a base class. Make the base a member: groups nest.
template <class Fields> struct field_list_has_a_base_class;
/// A field list, or one group of it, has more than 100 members. Split it into groups.
template <class Fields> struct field_list_has_more_than_100_members;
/// A field list must be a plain aggregate: no constructors, no private members, no virtual functions.
template <class Fields> struct field_list_is_not_an_aggregate;
/// A group or field list has no members.
template <class Fields> struct field_list_is_empty;

namespace detail {

template <class Type>
concept any_buffer = requires { typename Type::stowage_buffer; };
template <class Type>
concept any_not_owned = requires { typename Type::stowage_not_owned; };
template <class Type>
concept group_candidate = std::is_class_v<Type> && std::is_aggregate_v<Type> && !any_buffer<Type> &&
                          !any_not_owned<Type> && !requires { typename Type::stowage_part; };

template <class Fields> consteval bool check_aggregate() {
  if constexpr (!std::is_class_v<Fields> || !std::is_aggregate_v<Fields>) {
    return sizeof(field_list_is_not_an_aggregate<Fields>) != 0;
  } else if constexpr (has_base_class<Fields>) {
    return sizeof(field_list_has_a_base_class<Fields>) != 0;
  } else if constexpr (std::is_empty_v<Fields>) {
    return sizeof(field_list_is_empty<Fields>) != 0;
  } else if constexpr (member_count<Fields> > most_members) {
    return sizeof(field_list_has_more_than_100_members<Fields>) != 0;
  } else {
    return true;
  }
}

template <class Fields, std::size_t... First, std::size_t... Last>
consteval bool has_members_around_array(std::index_sequence<First...>, std::index_sequence<Last...>) {
  return requires { Fields(any_member_at<Fields, First>{}..., {}, any_member_at<Fields, Last>{}..., {}); };
}

/// How many members follow a C array that stands after `Before` others; too few where another array follows.
template <class Fields, std::size_t Before, std::size_t After>
consteval std::size_t count_members_after_array() {
  if constexpr (Before + After < most_members) {
    if constexpr (has_members_around_array<Fields>(std::make_index_sequence<Before>{},
                                                   std::make_index_sequence<After>{})) {
      return count_members_after_array<Fields, Before, After + 1>();
    }
  }
  return After;
}

template <class Fields> consteval bool check_arrays() {
#if !defined(__CUDACC__)
  if constexpr (has_array<Fields>) {
    constexpr std::size_t before = member_count<Fields>;
    constexpr std::size_t count = before + 1 + count_members_after_array<Fields, before, 0>();
    using tie = decltype(tie_members<count>(std::declval<Fields&>()));
    using array = type_at<before, typename member_types_of<tie>::type>;
    return sizeof(member_is_an_array_which_is_no_field<member_for_message<Fields, count, before, array>(),
                                                       array>) != 0;
  }
#endif
  return true;
}

template <class Fields> consteval bool check_field_list();

template <class Fields, std::size_t Index, class Type> consteval bool check_member() {
  if constexpr (any_buffer<Type>) {
    using definition = typename Type::definition;
    if constexpr (definition::policy::in_row_pass == row_pass::reached_rows && !definition::token_major) {
      return sizeof(row_policy_on_a_field_that_is_not_token_major<
                    member_for_message<Fields, member_count<Fields>, Index, Type>(), Type>) != 0;
    }
    return true;
  } else if constexpr (any_not_owned<Type>) {
    return true;
  } else if constexpr (group_candidate<Type> && !std::is_empty_v<Type>) {
    return check_field_list<Type>();
  } else {
    return sizeof(member_is_neither_a_buffer_nor_a_group_nor_not_owned<
                  member_for_message<Fields, member_count<Fields>, Index, Type>(), Type>) != 0;
  }
}

/// True, or a compile error that says which member is at fault.
template <class Fields> consteval bool check_field_list() {
  if constexpr (check_aggregate<Fields>()) {
    if constexpr (check_arrays<Fields>()) {
      return
          []<class... Types, std::size_t... Indices>(type_list<Types...>, std::index_sequence<Indices...>) {
            return (check_member<Fields, Indices, Types>() && ...);
          }(member_types<Fields>{}, std::make_index_sequence<member_count<Fields>>{});
    }
  }
  return false;
}

template <class... Lists> struct concatenate {
  using type = type_list<>;
};
template <class... Types> struct concatenate<type_list<Types...>> {
  using type = type_list<Types...>;
};
template <class... First, class... Second, class... Rest>
struct concatenate<type_list<First...>, type_list<Second...>, Rest...>
    : concatenate<type_list<First..., Second...>, Rest...> {};

template <class Fields> struct leaves;

template <class Member> struct leaves_of_member {
  using type = typename leaves<Member>::type;
};
template <any_buffer Buffer> struct leaves_of_member<Buffer> {
  using type = type_list<Buffer>;
};
template <any_not_owned Other> struct leaves_of_member<Other> {
  using type = type_list<>;
};

template <class List> struct leaves_of_members;
template <class... Types> struct leaves_of_members<type_list<Types...>> {
  using type = typename concatenate<typename leaves_of_member<Types>::type...>::type;
};
// A flat list, the usual one, is its own list of leaves.
template <any_buffer... Types> struct leaves_of_members<type_list<Types...>> {
  using type = type_list<Types...>;
};

/// type_list of the buffers of a checked field list, in declaration order.
template <class Fields> struct leaves {
  using type = typename leaves_of_members<member_types<Fields>>::type;
};
template <class Fields> using leaf_types = typename leaves<Fields>::type;
template <class Member> inline constexpr std::size_t leaf_count = leaves_of_member<Member>::type::size;

/// Leaf number of the first leaf of each member, when the first of all is `First`.
template <std::size_t First, class... Types> consteval auto first_leaves(type_list<Types...>) {
  std::array<std::size_t, sizeof...(Types)> result{};
  std::size_t next = First;
  std::size_t member = 0;
  ((result[member++] = next, next += leaf_count<Types>), ...);
  return result;
}

template <class Fields, class Visit> void visit_leaves(Fields& fields, std::size_t first, const Visit& visit);

template <class Member, class Visit> void visit_member(Member& member, std::size_t leaf, const Visit& visit) {
  if constexpr (any_buffer<Member>) {
    visit(leaf, reinterpret_cast<std::byte*>(&member));
  } else if constexpr (!any_not_owned<Member>) {
    visit_leaves(member, leaf, visit);
  }
}

/// Calls visit(leaf, address of the buffer's handle) for each buffer of a field list object, in declaration
/// order, counted from `first`.
template <class Fields, class Visit>
void visit_leaves(Fields& fields, std::size_t first, const Visit& visit) {
  const auto members = tie_members(fields);
  [&]<class... Types, std::size_t... Indices>(type_list<Types...> types, std::index_sequence<Indices...>) {
    if constexpr ((any_buffer<Types> && ...)) { // the usual case, without a function for each member
      (visit(first + Indices,
             reinterpret_cast<std::byte*>(&static_cast<const member_slot<Indices, Types>&>(members).value)),
       ...);
    } else {
      constexpr auto leaf = first_leaves<0>(decltype(types){});
      (visit_member(static_cast<const member_slot<Indices, Types>&>(members).value, first + leaf[Indices],
                    visit),
       ...);
    }
  }(member_types<Fields>{}, std::make_index_sequence<member_count<Fields>>{});
}

/// Longest name of a field, with the names of its groups.
inline constexpr std::size_t longest_name = 95;
using leaf_name = fixed_text<longest_name>;

template <class Fields, class Names>
constexpr void collect_names(Names& names, std::size_t& next, std::string_view group);

template <class Member, class Names>
constexpr void collect_name(Names& names, std::size_t& next, std::string_view group,
                            std::string_view member) {
  if constexpr (!any_not_owned<Member>) {
    leaf_name name;
    text_writer writer{name.characters, longest_name};
    writer << group << (group.empty() ? "" : ".") << member;
    name.size = writer.size() < longest_name ? writer.size() : longest_name;
    if constexpr (any_buffer<Member>) {
      names[next++] = name;
    } else {
      collect_names<Member>(names, next, name.view());
    }
  }
}

template <class Fields, class Names>
constexpr void collect_names(Names& names, std::size_t& next, std::string_view group) {
  [&]<class... Types, std::size_t... Indices>(type_list<Types...>, std::index_sequence<Indices...>) {
    (collect_name<Types>(names, next, group, member_name_of<Fields, Indices, Types>), ...);
  }(member_types<Fields>{}, std::make_index_sequence<member_count<Fields>>{});
}

/// Names of the buffers of a field list; those in groups are dotted: "attention.queries".
template <class Fields>
inline constexpr auto leaf_names = [] {
  std::array<leaf_name, leaf_types<Fields>::size> names{};
  std::size_t next = 0;
  collect_names<Fields>(names, next, "");
  return names;
}();

/// Leaf number of the first leaf of a member.
template <class Fields> constexpr std::size_t first_leaf_of_member(std::size_t member) {
  return []<class... Types>(type_list<Types...>, std::size_t end) {
    std::size_t leaf = 0;
    std::size_t index = 0;
    ((leaf += index++ < end ? leaf_count<Types> : 0), ...);
    return leaf;
  }(member_types<Fields>{}, member);
}
template <class Fields>
  requires std::is_same_v<leaf_types<Fields>, member_types<Fields>>
constexpr std::size_t first_leaf_of_member(std::size_t member) {
  return member;
}

template <class Fields, std::size_t Leaf, std::size_t Member, class List>
consteval auto leaf_in_group_for_message();

/// The member that a leaf is, for an error message.
template <class Fields, std::size_t Leaf, class Buffer> consteval auto leaf_for_message() {
  if constexpr (std::is_same_v<leaf_types<Fields>, member_types<Fields>>) {
    return member_for_message<Fields, member_count<Fields>, Leaf, Buffer>();
  } else {
    return leaf_in_group_for_message<Fields, Leaf, 0, member_types<Fields>>();
  }
}
template <class Fields, std::size_t Leaf, std::size_t Member, class List>
consteval auto leaf_in_group_for_message() {
  using type = type_at<Member, List>;
  if constexpr (any_not_owned<type> || Leaf >= leaf_count<type>) {
    return leaf_in_group_for_message<Fields, Leaf - leaf_count<type>, Member + 1, List>();
  } else if constexpr (any_buffer<type>) {
    return member_for_message<Fields, member_count<Fields>, Member, type>();
  } else {
    return leaf_in_group_for_message<type, Leaf, 0, member_types<type>>();
  }
}

/// Leaf number of the buffer that a path of member pointers leads to: `<&fields::attention,
/// &attention::queries>`.
template <class Fields, auto Member, auto... Rest> consteval std::size_t leaf_index() {
  using pointer = member_pointer<std::remove_cv_t<decltype(Member)>>;
  if constexpr (!requires { typename pointer::class_type; }) {
    static_assert(
        requires { typename pointer::class_type; },
        "stowage: a field is named by a pointer to member, such as &fields::logits");
    return 0;
  } else if constexpr (!std::is_same_v<typename pointer::class_type, Fields>) {
    static_assert(
        std::is_same_v<typename pointer::class_type, Fields>,
        "stowage: the member pointer is of another struct than the field list or group it is used for");
    return 0;
  } else {
    using type = typename pointer::value_type;
    constexpr std::size_t leaf = first_leaf_of_member<Fields>(member_index<Fields>(Member));
    if constexpr (sizeof...(Rest) != 0) {
      return leaf + leaf_index<type, Rest...>();
    } else {
      static_assert(any_buffer<type>,
                    "stowage: the member pointer leads to no buffer; give the path into the group as well");
      return leaf;
    }
  }
}

} // namespace detail
} // namespace stowage::inline v0_1
