#pragma once

#include <stowage/detail/host_device.hpp>
#include <stowage/element.hpp>
#include <stowage/error.hpp>
#include <stowage/field.hpp>
#include <stowage/layout.hpp>
#include <stowage/shape.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace stowage {

namespace detail {

struct binder;

[[noreturn]] STOWAGE_COLD inline void throw_rows_out_of_range(std::string_view field, std::size_t first, std::size_t last,
                                                 std::size_t capacity) {
  std::string text = "stowage: field '";
  text.append(field.empty() ? "(absent)" : field).append("': rows [").append(std::to_string(first)).append(", ");
  text.append(std::to_string(last)).append(") wanted, ").append(std::to_string(capacity));
  throw bounds_error(text.append(" rows are there; plan for more tokens or ask for fewer rows"));
}

} // namespace detail

/// The bound memory of a tensor: what a user holds of it. Trivially copyable, so that it can be passed to a kernel by
/// value. Null where the field is absent or has no bytes.
template <element Element, std::size_t Rank, bool TokenMajor> class tensor_handle {
public:
  using element_type = Element;

  /// First element, or null. Elements of a block type are counted in blocks.
  [[nodiscard]] STOWAGE_HOST_DEVICE constexpr Element* data() const { return data_; }
  /// Allocated bytes, floors included, without alignment padding.
  [[nodiscard]] STOWAGE_HOST_DEVICE constexpr std::size_t bytes() const { return bytes_; }
  /// Extents in elements, outermost first; zeros where the field is absent.
  [[nodiscard]] constexpr std::array<std::size_t, Rank> extents() const {
    std::array<std::size_t, Rank> result{};
    for (std::size_t axis = 0; axis < Rank; ++axis) result[axis] = extents_[axis];
    return result;
  }
  /// One extent, for kernels too.
  [[nodiscard]] STOWAGE_HOST_DEVICE constexpr std::size_t extent(std::size_t axis) const { return extents_[axis]; }
  [[nodiscard]] STOWAGE_HOST_DEVICE explicit constexpr operator bool() const { return data_ != nullptr; }

  /// Elements: the product of the extents, 0 where the field is absent.
  [[nodiscard]] STOWAGE_HOST_DEVICE constexpr std::size_t size() const {
    return rows_() * row_elements();
  }
  /// Elements of one row: the product of all extents but the leading one.
  [[nodiscard]] STOWAGE_HOST_DEVICE constexpr std::size_t row_elements() const {
    std::size_t elements = 1;
    for (std::size_t axis = 1; axis < Rank; ++axis) elements *= extents_[axis];
    return elements;
  }

  /// All elements; blocks for a block type.
  [[nodiscard]] constexpr std::span<Element> span() const {
    return {data_, (size() + elements_per_block<Element>() - 1) / elements_per_block<Element>()};
  }

  /// Rows [first, last) of a token-major field, as elements (blocks for a block type). Throws bounds_error beyond the
  /// capacity, and for a block type whose rows are not whole blocks.
  [[nodiscard]] constexpr std::span<Element> rows(std::size_t first, std::size_t last) const
    requires TokenMajor
  {
    if (first > last || last > rows_()) detail::throw_rows_out_of_range(name_, first, last, rows_());
    if (row_elements() % elements_per_block<Element>() != 0) {
      throw bounds_error("stowage: field '" + std::string(name_) + "': its rows are not whole blocks of " +
                         std::to_string(elements_per_block<Element>()) + " elements; pad the last extent");
    }
    const std::size_t row_blocks = row_elements() / elements_per_block<Element>();
    return {data_ + first * row_blocks, (last - first) * row_blocks};
  }

  /// Whether a tensor of these extents, in elements, fits in the allocated bytes: an engine asks it before it picks a
  /// kernel that writes padded rows. False where the product overflows or the field is absent.
  template <std::convertible_to<std::size_t>... Extents> [[nodiscard]] constexpr bool fits(Extents... extents) const {
    std::size_t elements = 1;
    std::size_t bytes = 0;
    const bool representable = (detail::checked_multiply(elements, static_cast<std::size_t>(extents), elements) && ...);
    constexpr std::size_t block = elements_per_block<Element>();
    return data_ != nullptr && representable &&
           detail::checked_multiply(detail::ceil_divide(elements, block), sizeof(Element), bytes) && bytes <= bytes_;
  }

  /// The same for a shape, evaluated for the params of the moment.
  template <detail::any_shape Shape, class Params>
  [[nodiscard]] constexpr bool fits(Shape, const Params& params) const {
    fault first_fault;
    const detail::evaluator<Params> evaluate{params, first_fault};
    const auto program = Shape::template compile<Params>();
    const detail::instruction<Params>* at = program.data();
    std::size_t elements = 1;
    for (std::size_t axis = 0; axis < Shape::rank; ++axis) elements = evaluate.multiply(elements, evaluate.take(at));
    return first_fault.kind == fault_kind::none && fits(elements);
  }

  /// Name of the field, for messages; empty where it is absent.
  [[nodiscard]] constexpr std::string_view name() const { return name_; }

private:
  friend detail::binder;

  STOWAGE_HOST_DEVICE constexpr std::size_t rows_() const {
    if constexpr (Rank == 0) {
      return data_ == nullptr ? 0 : 1;
    } else {
      return extents_[0];
    }
  }

  Element* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t extents_[Rank > 0 ? Rank : 1]{}; // not a std::array, which kernels cannot index
  std::string_view name_;
};

namespace detail {

/// The only way into the handles.
struct binder {
  template <class Handle> static void set_tensor(Handle& handle, const placed_node& node, std::byte* field) {
    using element_type = typename Handle::element_type;
    handle.data_ = reinterpret_cast<element_type*>(field + node.offset);
    handle.bytes_ = node.bytes;
    handle.name_ = node.name;
    std::size_t index = 0;
    for (std::size_t& extent : handle.extents_) extent = node.extents[index++];
  }
  template <class Handle> static void set_base(Handle& handle, const placed_node& node, std::byte* field) {
    handle.data_ = field + node.offset;
    handle.bytes_ = node.bytes;
    handle.name_ = node.name;
  }
  template <class Handle> static auto& inner(Handle& handle) { return handle.inner_; }
};

} // namespace detail

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

  /// Points a handle at its evaluated node in the memory of its field, and moves `node` behind it.
  static void bind(handle& target, const detail::placed_node*& node, std::byte* field) {
    if (node->bytes != 0) detail::binder::set_tensor(target, *node, field);
    ++node;
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

/// One field of a field list: `buffer<Element, shape<...>, traits...>`, `buffer<regions<Parts>, traits...>` or
/// `buffer<alternatives<...>, traits...>`, with exactly one zero policy among the traits. Its accessors come from the
/// handle of its content (tensor_handle, regions_handle, alternatives_handle).
template <class... Arguments>
  requires begins_with_element_and_shape_or_with_a_content<Arguments...> &&
           has_only_traits_after_its_content<Arguments...> && has_exactly_one_zero_policy<Arguments...>
class buffer : public detail::split_arguments<Arguments...>::content_type::handle {
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
