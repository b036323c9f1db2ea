#pragma once

// Everything that depends on Boost.PFR and on how compilers spell names. PFR takes an aggregate apart (the
// generated structured bindings, without the counting, which C arrays mislead); counting and names are done
// here.

#include <stowage/text.hpp>

#include <boost/pfr/detail/core17_generated.hpp>

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

namespace stowage::inline v0_1::detail {

/// The most members of one aggregate that PFR takes apart. Nested groups have their own 100.
inline constexpr std::size_t most_members = 100;

template <class... Types> struct type_list {
  static constexpr std::size_t size = sizeof...(Types);
};

template <std::size_t Index, class List> struct nth_type;
template <class First, class... Rest> struct nth_type<0, type_list<First, Rest...>> {
  using type = First;
};
template <std::size_t Index, class First, class... Rest>
  requires(Index > 0)
struct nth_type<Index, type_list<First, Rest...>> : nth_type<Index - 1, type_list<Rest...>> {};
/// Only for error messages and single look-ups: it walks the list.
template <std::size_t Index, class List> using type_at = typename nth_type<Index, List>::type;

/// Where a type stands in a list of types.
template <class Wanted, class... Types> consteval std::size_t position_of() {
  std::size_t position = 0;
  std::size_t found = sizeof...(Types);
  ((std::is_same_v<Wanted, Types> ? void(found = position++) : void(++position)), ...);
  return found;
}

/// Stands for any member when an aggregate is initialised in an unevaluated expression.
template <class Aggregate> struct any_member {
  template <class Type>
    requires(!std::is_same_v<Type, Aggregate>)
  constexpr operator Type() const noexcept;
};
template <class Aggregate, std::size_t> using any_member_at = any_member<Aggregate>;

template <class Aggregate> struct any_base {
  template <class Type>
    requires(std::is_base_of_v<Type, Aggregate> && !std::is_same_v<Type, Aggregate>)
  constexpr operator Type() const noexcept;
};

template <class Aggregate, class Indices> struct initialisable;
template <class Aggregate, std::size_t... Indices>
struct initialisable<Aggregate, std::index_sequence<Indices...>> {
  // In parentheses no braces are elided: a C array takes no initialiser, where in braces it takes one an
  // element. nvcc's front end accepts too many initialisers in parentheses, so there PFR refuses arrays, in
  // its own words.
#if defined(__CUDACC__)
  static constexpr bool by_members = requires { Aggregate{any_member_at<Aggregate, Indices>{}...}; };
#else
  static constexpr bool by_members = requires { Aggregate(any_member_at<Aggregate, Indices>{}...); };
#endif
  static constexpr bool by_elements = requires { Aggregate{any_member_at<Aggregate, Indices>{}...}; };
};

template <class Aggregate, std::size_t Count>
inline constexpr bool has_members = initialisable<Aggregate, std::make_index_sequence<Count>>::by_members;

/// Between `Least`, which it has, and `Most`.
template <class Aggregate, std::size_t Least, std::size_t Most> consteval std::size_t count_members() {
  if constexpr (Least == Most) {
    return Least;
  } else {
    constexpr std::size_t middle = (Least + Most + 1) / 2;
    if constexpr (has_members<Aggregate, middle>) {
      return count_members<Aggregate, middle, Most>();
    } else {
      return count_members<Aggregate, Least, middle - 1>();
    }
  }
}

/// Few members are the usual case: doubles until there are not so many.
template <class Aggregate, std::size_t Guess> consteval std::size_t count_members_from() {
  if constexpr (Guess > most_members) {
    return count_members<Aggregate, Guess / 2, most_members + 1>();
  } else if constexpr (has_members<Aggregate, Guess>) {
    return count_members_from<Aggregate, 2 * Guess>();
  } else {
    return count_members<Aggregate, Guess / 2, Guess - 1>();
  }
}

/// Members of an aggregate, or one more than `most_members` where there are too many. Ends before the first C
/// array.
template <class Aggregate>
inline constexpr std::size_t member_count =
    has_members<Aggregate, 1> ? count_members_from<Aggregate, 2>() : 0;

template <class Aggregate>
inline constexpr bool has_base_class = requires { Aggregate{any_base<Aggregate>{}}; };

/// The member after the counted ones is a C array.
template <class Aggregate>
inline constexpr bool has_array =
    initialisable<Aggregate, std::make_index_sequence<member_count<Aggregate> + 1>>::by_elements;

/// References to the first `Count` members, which must be all of them.
template <std::size_t Count, class Aggregate> constexpr auto tie_members(Aggregate& aggregate) {
  return boost::pfr::detail::tie_as_tuple(aggregate, boost::pfr::detail::size_t_<Count>{});
}
template <class Aggregate> constexpr auto tie_members(Aggregate& aggregate) {
  return tie_members<member_count<std::remove_cv_t<Aggregate>>>(aggregate);
}

/// Member number `Index`, of type `Type`, of what tie_members gave. `static_cast<const member_slot<Index,
/// Type>&>(tie) .value` instead of PFR's get<Index>: that would be a function for each member, named by the
/// types of all of them.
template <std::size_t Index, class Type>
using member_slot = boost::pfr::detail::sequence_tuple::base_from_member<Index, Type&>;

template <class Tuple> struct member_types_of;
template <class... Types> struct member_types_of<boost::pfr::detail::sequence_tuple::tuple<Types&...>> {
  using type = type_list<Types...>;
};
template <class Aggregate>
using member_types = typename member_types_of<decltype(tie_members(std::declval<Aggregate&>()))>::type;

// Names: the address of a member of an object that is declared and never defined is a template argument, and
// the last identifier of the compiler's signature for it is the member's name. clang takes such an address
// only inside a struct.

template <class Aggregate> struct holder {
  Aggregate value;
};

#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal" // for structs in anonymous namespaces
#pragma clang diagnostic ignored "-Wc++20-extensions"   // member(address), which is C++20
#endif

template <class Aggregate> extern holder<Aggregate> fields_of;

#if defined(__clang__)
struct member {
  const void* address; // of any type, so that messages show the path to the member alone
};
#else
template <class Type> consteval Type* member(Type* address) { return address; }
#endif

template <class Aggregate, std::size_t Count, std::size_t Index, class Type>
consteval Type* member_address() {
  return &static_cast<const member_slot<Index, Type>&>(tie_members<Count>(fields_of<Aggregate>.value)).value;
}

template <class Aggregate, std::size_t Count, std::size_t Index, class Type>
consteval std::string_view member_name() {
  return last_identifier(value_signature<member(member_address<Aggregate, Count, Index, Type>())>());
}

template <class Aggregate, std::size_t Index, class Type>
inline constexpr std::string_view member_name_of =
    member_name<Aggregate, member_count<Aggregate>, Index, Type>();

/// Which member a pointer to member points at; member_count where it is none of them.
template <class Aggregate, class Type> consteval std::size_t member_index(Type Aggregate::* pointer) {
  const void* wanted = &(fields_of<Aggregate>.value.*pointer);
  const auto members = tie_members(fields_of<Aggregate>.value);
  return [&]<class... Types, std::size_t... Indices>(type_list<Types...>, std::index_sequence<Indices...>) {
    std::size_t index = sizeof...(Indices);
    ((static_cast<const void*>(&static_cast<const member_slot<Indices, Types>&>(members).value) == wanted
          ? void(index = Indices)
          : void()),
     ...);
    return index;
  }(member_types<Aggregate>{}, std::make_index_sequence<member_count<Aggregate>>{});
}

#if defined(__clang__)
#pragma clang diagnostic pop
#endif

// What an error message shows of a member, as a template argument: g++ prints the name as text, clang prints
// the path to the member, nvcc the number of the member. Always pass the call itself as the argument: a
// constexpr variable that held clang's address would leave an undefined symbol at -O0.

template <std::size_t Size> struct quoted {
  char characters[Size];
};

template <class Aggregate, std::size_t Count, std::size_t Index, class Type>
consteval auto member_for_message() {
#if defined(__CUDACC__)
  return Index;
#elif defined(__clang__)
  return member{member_address<Aggregate, Count, Index, Type>()};
#else
  constexpr std::string_view name = member_name<Aggregate, Count, Index, Type>();
  quoted<name.size() + 1> text{};
  for (std::size_t position = 0; position < name.size(); ++position)
    text.characters[position] = name[position];
  return text;
#endif
}

} // namespace stowage::inline v0_1::detail
