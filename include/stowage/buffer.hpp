#pragma once

#include <stowage/element.hpp>
#include <stowage/field.hpp>
#include <stowage/handle.hpp>
#include <stowage/shape.hpp>

#include <cstddef>
#include <cstdint>

namespace stowage {

/// A tensor: elements in a shape, the last extent contiguous. The content of most fields.
template <element Element, detail::any_shape Shape> struct tensor {
  using stowage_content = void;
  using element_type = Element;
  using handle = tensor_handle<Element, Shape::rank, Shape::token_major>;
  static constexpr std::size_t alignment = alignof(Element);
  static constexpr bool token_major = Shape::token_major;
  /// Nodes of the content, and tensors in it, each a range of a row pass.
  static constexpr std::uint32_t nodes = 1;
  static constexpr std::size_t row_ranges = 1;

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

template <class... Arguments> struct split_arguments {};
template <class Element, class Shape, class... Traits>
  requires element<Element> && any_shape<Shape>
struct split_arguments<Element, Shape, Traits...> {
  using content_type = tensor<Element, Shape>;
  using definition = field_definition<content_type, Traits...>;
  static constexpr bool only_traits = (trait<Traits> && ...);
  static constexpr std::size_t policies = (std::size_t{0} + ... + (zero_policy<Traits> ? 1 : 0));
};
template <content Content, class... Traits> struct split_arguments<Content, Traits...> {
  using content_type = Content;
  using definition = field_definition<content_type, Traits...>;
  static constexpr bool only_traits = (trait<Traits> && ...);
  static constexpr std::size_t policies = (std::size_t{0} + ... + (zero_policy<Traits> ? 1 : 0));
};

} // namespace detail

// What can be wrong with the arguments of a buffer or part, each with its name in the compiler's message.

template <class... Arguments>
concept begins_with_element_and_shape_or_with_a_content =
    requires { typename detail::split_arguments<Arguments...>::content_type; };
template <class... Arguments>
concept has_only_traits_after_its_content = detail::split_arguments<Arguments...>::only_traits;
template <class... Arguments>
concept has_exactly_one_zero_policy = detail::split_arguments<Arguments...>::policies == 1;
template <class... Arguments>
concept has_no_zero_policy = detail::split_arguments<Arguments...>::policies == 0;

/// One field of a field list: `buffer<Element, shape<...>, traits...>`, `buffer<regions<Parts>, traits...>`
/// or `buffer<alternatives<...>, traits...>`, with exactly one zero policy among the traits. Its accessors
/// come from the handle of its content (tensor_handle, regions_handle, alternatives_handle).
template <class... Arguments>
  requires begins_with_element_and_shape_or_with_a_content<Arguments...> &&
           has_only_traits_after_its_content<Arguments...> && has_exactly_one_zero_policy<Arguments...>
class buffer
    : public detail::handle_of_copies<typename detail::split_arguments<Arguments...>::content_type::handle,
                                      detail::split_arguments<Arguments...>::definition::copies>::type {
public:
  using stowage_buffer = void;
  using definition = typename detail::split_arguments<Arguments...>::definition;
};

/// One part of a region list, or an alternative with traits: as a buffer, without a zero policy.
template <class... Arguments>
  requires begins_with_element_and_shape_or_with_a_content<Arguments...> &&
           has_only_traits_after_its_content<Arguments...> && has_no_zero_policy<Arguments...>
class part : public detail::split_arguments<Arguments...>::content_type::handle {
public:
  using stowage_part = void;
  using definition = typename detail::split_arguments<Arguments...>::definition;
};

/// A member of a field list that is not a buffer: the library leaves it alone.
template <class Type> struct not_owned {
  using stowage_not_owned = void;
  Type value{};

  constexpr Type& operator*() { return value; }
  constexpr const Type& operator*() const { return value; }
  constexpr Type* operator->() { return &value; }
  constexpr const Type* operator->() const { return &value; }
};

} // namespace stowage
