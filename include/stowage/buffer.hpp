#pragma once

#include <stowage/element.hpp>
#include <stowage/field.hpp>
#include <stowage/handle.hpp>
#include <stowage/shape.hpp>

#include <cstddef>
#include <cstdint>

namespace stowage::inline v0_1 {

/// A tensor: elements in a shape, the last extent contiguous. The content of most fields.
template <element Element, detail::any_shape Shape> struct tensor {
  using stowage_content = void;
  using element_type = Element;
  using handle = tensor_handle<Element, Shape::rank, Shape::token_major>;
  static constexpr std::size_t alignment = alignof(Element);
  static constexpr bool token_major = Shape::token_major;
  /// Nodes of the content.
  static constexpr std::uint32_t nodes = 1;

  template <class Params> static constexpr void emit(detail::content_node<Params>*& out) {
    out->kind = detail::content_kind::tensor;
    out->extents = detail::program_of_shape<Shape, Params>.data();
    out->rank = static_cast<std::uint32_t>(Shape::rank);
    out->elements_per_block = elements_per_block<Element>();
    out->block_bytes = sizeof(Element);
    out->element = element_name<Element>();
    ++out;
  }
};

namespace detail {

/// A content with its traits, as a field or as a part. What is wrong with them is said in words, before
/// anything fails in other words.
template <bool IsPart, class Content, class... Traits> struct content_and_traits {
  static constexpr std::size_t policies = (std::size_t{0} + ... + (zero_policy<Traits> ? 1 : 0));
  static_assert((trait<Traits> && ...),
                "stowage: only traits follow the shape: zero::rows, when<...>, align<N>, tag<T>, ...");
  static_assert(IsPart || policies == 1,
                "stowage: a buffer has exactly one zero policy: zero::rows, zero::full or zero::never");
  static_assert(!IsPart || policies == 0,
                "stowage: a part has no zero policy; the field that it is in has one");
  static_assert(IsPart || (trait_of_field<Traits> && ...),
                "stowage: starts_at is for parts of a region list, not for a field");
  static_assert(
      !IsPart || (trait_of_part<Traits> && ...),
      "stowage: tag, zero_at_construction, pad_fill, tail and copies belong on the field, not on its parts");
  using content_type = Content;
  using definition = field_definition<Content, Traits...>;
};

template <bool IsPart, class... Arguments> struct split_arguments {
  static_assert(sizeof...(Arguments) == ~std::size_t{0},
                "stowage: a buffer or part begins with an element type and a "
                "shape<...>, or with regions<...> or alternatives<...>");
  using content_type = tensor<std::byte, shape<>>;
  using definition = field_definition<content_type>;
};
template <bool IsPart, element Element, any_shape Shape, class... Traits>
struct split_arguments<IsPart, Element, Shape, Traits...>
    : content_and_traits<IsPart, tensor<Element, Shape>, Traits...> {};
template <bool IsPart, content Content, class... Traits>
struct split_arguments<IsPart, Content, Traits...> : content_and_traits<IsPart, Content, Traits...> {};

} // namespace detail

/// One field of a field list: `buffer<Element, shape<...>, traits...>`, `buffer<regions<Parts>, traits...>`
/// or `buffer<alternatives<...>, traits...>`, with exactly one zero policy among the traits. Its accessors
/// come from the handle of its content (tensor_handle, regions_handle, alternatives_handle).
template <class... Arguments>
class buffer : public detail::handle_of_copies<
                   typename detail::split_arguments<false, Arguments...>::content_type::handle,
                   detail::split_arguments<false, Arguments...>::definition::copies>::type {
public:
  using stowage_buffer = void;
  using definition = typename detail::split_arguments<false, Arguments...>::definition;
};

/// One part of a region list, or an alternative with traits: as a buffer, without a zero policy.
template <class... Arguments>
class part : public detail::split_arguments<true, Arguments...>::content_type::handle {
public:
  using stowage_part = void;
  using definition = typename detail::split_arguments<true, Arguments...>::definition;
};

/// A member of a field list that is not a buffer: the library leaves it alone.
template <class Type> struct not_owned {
  using stowage_not_owned = void;
  /// The member itself.
  Type value{};

  /// The member.
  constexpr Type& operator*() { return value; }
  /// The member, unchangeable.
  constexpr const Type& operator*() const { return value; }
  /// The member's address, for `->`.
  constexpr Type* operator->() { return &value; }
  /// The same, unchangeable.
  constexpr const Type* operator->() const { return &value; }
};

} // namespace stowage::inline v0_1
