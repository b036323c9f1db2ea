#pragma once

#include <stowage/buffer.hpp>
#include <stowage/detail/reflect.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace stowage::inline v0_1 {

namespace detail {

template <class Type>
concept any_part = requires { typename Type::stowage_part; };

/// A parts aggregate has a member that is no part; the message shows which one and its type.
template <auto Member, class Type> struct member_is_not_a_part;

template <class Parts, std::size_t Index, class Type> consteval bool check_part() {
  if constexpr (!any_part<Type>) {
    return sizeof(
               member_is_not_a_part<member_for_message<Parts, member_count<Parts>, Index, Type>(), Type>) !=
           0;
  }
  return true;
}

template <class Parts> consteval bool check_parts() {
  static_assert(std::is_aggregate_v<Parts>, "stowage: a parts struct must be a plain aggregate");
  static_assert(!has_base_class<Parts>, "stowage: a parts struct cannot have a base class");
  static_assert(member_count<Parts> > 0, "stowage: a parts struct needs at least one part");
  static_assert(member_count<Parts> <= most_members,
                "stowage: a parts struct has at most 100 parts; nest regions");
  static_assert(!has_array<Parts>, "stowage: a C array cannot be a part; give the part another extent");
  return []<class... Types, std::size_t... Indices>(type_list<Types...>, std::index_sequence<Indices...>) {
    return (check_part<Parts, Indices, Types>() && ...);
  }(member_types<Parts>{}, std::make_index_sequence<member_count<Parts>>{});
}

} // namespace detail

/// The bound memory of a region list. `parts()` is the Parts struct with every part bound under its own name.
template <class Parts> class regions_handle : public handle_base<Parts> {
public:
  /// Start of the memory, or null.
  [[nodiscard]] STOWAGE_HOST_DEVICE constexpr std::byte* data() const { return this->header_.address; }
  /// The parts: `field.parts().keys.data()`. A part whose condition does not hold is null.
  [[nodiscard]] STOWAGE_HOST_DEVICE constexpr const Parts& parts() const { return this->inner_; }
  /// The parts: `field->keys.data()`.
  [[nodiscard]] STOWAGE_HOST_DEVICE constexpr const Parts* operator->() const { return &this->inner_; }
};

/// Parts laid out one after another, each at its alignment (that of its element unless it carries align<N>).
/// `Parts` is a plain aggregate of `part` members, which name them.
template <class Parts> struct regions {
  using stowage_content = void;
  using handle = regions_handle<Parts>;
  static_assert(detail::check_parts<Parts>());
  using part_types = detail::member_types<Parts>;
  static constexpr std::size_t part_count = part_types::size;

  /// Of the strictest part; the start of the list is aligned so, and each part relative to it.
  static constexpr std::size_t alignment = []<class... Types>(detail::type_list<Types...>) {
    return detail::largest_of(Types::definition::alignment(1)...);
  }(part_types{});
  /// Every part is token-major.
  static constexpr bool token_major = []<class... Types>(detail::type_list<Types...>) {
    return (Types::definition::token_major && ...);
  }(part_types{});
  static constexpr std::uint32_t nodes = []<class... Types>(detail::type_list<Types...>) {
    return (std::uint32_t{1} + ... + Types::definition::content_type::nodes);
  }(part_types{});

  template <class Params> static constexpr void emit(detail::content_node<Params>*& out) {
    out->kind = detail::content_kind::regions;
    out->length = nodes;
    out->children = static_cast<std::uint32_t>(part_count);
    std::size_t handle_offset = out->handle_offset + sizeof(detail::handle_header);
    ++out;
    [&]<class... Types, std::size_t... Indices>(detail::type_list<Types...>,
                                                std::index_sequence<Indices...>) {
      static_assert(sizeof(Parts) == detail::bytes_of_handles<Types...>);
      static_assert(sizeof(handle) == sizeof(detail::handle_header) + sizeof(Parts));
      ((Types::definition::emit(out, detail::member_name_of<Parts, Indices, Types>, handle_offset, 1),
        handle_offset += sizeof(Types)),
       ...);
    }(part_types{}, std::make_index_sequence<part_count>{});
  }
};

namespace detail {

/// An alternative as written by the user: a part, a content, or a parts aggregate.
template <class Alternative> struct alternative_definition {
  using type = field_definition<regions<Alternative>>;
  static constexpr bool is_parts = true;
};
template <content Content> struct alternative_definition<Content> {
  using type = field_definition<Content>;
  static constexpr bool is_parts = false;
};
template <any_part Part> struct alternative_definition<Part> {
  using type = typename Part::definition;
  static constexpr bool is_parts = false;
};
template <class Alternative> using definition_of = typename alternative_definition<Alternative>::type;

template <std::size_t Index, class Handle> struct alternative_slot {
  Handle handle{};
};
template <class Indices, class... Handles> struct alternative_slots;
template <std::size_t... Indices, class... Handles>
struct alternative_slots<std::index_sequence<Indices...>, Handles...>
    : alternative_slot<Indices, Handles>... {};

template <std::size_t Index, class Handle>
STOWAGE_HOST_DEVICE constexpr const auto& slot_at(const alternative_slot<Index, Handle>& slot) {
  return slot.handle;
}

/// The element type that all alternatives share, or bytes.
template <class... Contents> struct shared_element {
  using type = std::byte;
};
template <class First, class Second>
concept same_element = std::same_as<typename First::element_type, typename Second::element_type>;
template <class First, class... Rest>
  requires(same_element<First, First> && ... && same_element<First, Rest>)
struct shared_element<First, Rest...> {
  using type = typename First::element_type;
};

} // namespace detail

/// The bound memory of alternatives: `field.as<Alternative>()` is the one of that type, as its handle, or as
/// the bound Parts struct for a parts aggregate. All of them begin at the same address.
template <class... Alternatives>
class alternatives_handle
    : public handle_base<
          detail::alternative_slots<std::index_sequence_for<Alternatives...>,
                                    typename detail::definition_of<Alternatives>::content_type::handle...>> {
public:
  /// What the alternatives hold where it is the same for all, else bytes.
  using element_type =
      typename detail::shared_element<typename detail::definition_of<Alternatives>::content_type...>::type;

  /// Start of the memory, or null. bytes() are those of the largest alternative.
  [[nodiscard]] STOWAGE_HOST_DEVICE element_type* data() const {
    return reinterpret_cast<element_type*>(this->header_.address);
  }

  /// One alternative; null (or with null parts) where its condition does not hold.
  template <class Alternative> [[nodiscard]] STOWAGE_HOST_DEVICE constexpr const auto& as() const {
    static_assert((std::size_t{0} + ... + (std::same_as<Alternative, Alternatives> ? 1 : 0)) == 1,
                  "stowage: as<T>() names no alternative of this field, or one that is listed twice");
    constexpr std::size_t index = detail::position_of<Alternative, Alternatives...>();
    if constexpr (detail::alternative_definition<Alternative>::is_parts) {
      return detail::slot_at<index>(this->inner_).parts();
    } else {
      return detail::slot_at<index>(this->inner_);
    }
  }
};

/// Layouts that share the same bytes; the largest one present decides the size. Each is a `part` (an element
/// with a shape, and traits such as when), a `regions<Parts>`, or a parts aggregate as it is.
template <class... Alternatives>
  requires(sizeof...(Alternatives) > 0)
struct alternatives {
  using stowage_content = void;
  using handle = alternatives_handle<Alternatives...>;
  static constexpr std::size_t alignment =
      detail::largest_of(detail::definition_of<Alternatives>::alignment(1)...);
  static constexpr bool token_major = (detail::definition_of<Alternatives>::token_major && ...);

  static constexpr std::uint32_t nodes =
      (std::uint32_t{1} + ... + detail::definition_of<Alternatives>::content_type::nodes);

  template <class Params> static constexpr void emit(detail::content_node<Params>*& out) {
    out->kind = detail::content_kind::alternatives;
    out->length = nodes;
    out->children = static_cast<std::uint32_t>(sizeof...(Alternatives));
    std::size_t handle_offset = out->handle_offset + sizeof(detail::handle_header);
    ++out;
    static_assert(
        sizeof(handle) ==
        sizeof(detail::handle_header) +
            detail::bytes_of_handles<typename detail::definition_of<Alternatives>::content_type::handle...>);
    ((detail::definition_of<Alternatives>::emit(out, {}, handle_offset, 1),
      handle_offset += sizeof(typename detail::definition_of<Alternatives>::content_type::handle)),
     ...);
  }
};

} // namespace stowage::inline v0_1
