#pragma once

#include <stowage/detail/cold.hpp>
#include <stowage/detail/host_device.hpp>
#include <stowage/detail/raise.hpp>
#include <stowage/element.hpp>
#include <stowage/error.hpp>
#include <stowage/layout.hpp>
#include <stowage/shape.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stowage::inline v0_1 {

namespace detail {

[[noreturn]] STOWAGE_COLD inline void throw_rows_out_of_range(std::string_view field, std::size_t first,
                                                              std::size_t last, std::size_t capacity) {
  message text;
  text << "stowage: field '" << field << "': rows [" << first << ", " << last << ") wanted, " << capacity
       << " rows are there; plan for more tokens or ask for fewer rows";
  detail::raise<bounds_error>(text.c_str());
}

[[noreturn]] STOWAGE_COLD inline void throw_rows_are_not_whole_blocks(std::string_view field,
                                                                      std::size_t block) {
  message text;
  text << "stowage: field '" << field << "': its rows are not whole blocks of " << block
       << " elements; pad the last extent";
  detail::raise<bounds_error>(text.c_str());
}

} // namespace detail

namespace detail {

/// Where the memory of a field or part is. The first thing in every handle; what follows it is the extents of
/// a tensor or the handles of the parts. All of it is written through the offsets in the table of contents
/// (layout.hpp).
struct handle_header {
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  std::string_view name;
};

template <std::size_t Rank> struct extent_list {
  std::size_t values[Rank > 0 ? Rank : 1]{}; // not a std::array, which kernels cannot index
};

} // namespace detail

/// What all handles have: where the memory of a field or part is, and how large. Trivially copyable, so that
/// it can be passed to a kernel by value. Null where the field is absent, has no bytes, or is released.
template <class Inner> class handle_base {
public:
  /// Allocated bytes, floors included, without alignment padding.
  [[nodiscard]] STOWAGE_HOST_DEVICE constexpr std::size_t bytes() const { return header_.bytes; }
  /// Whether the field or part has memory.
  [[nodiscard]] STOWAGE_HOST_DEVICE explicit constexpr operator bool() const {
    return header_.address != nullptr;
  }
  /// The memory as bytes; empty where there is none.
  [[nodiscard]] std::span<std::byte> memory() const { return {header_.address, header_.bytes}; }
  /// Name of the field or part, for messages; empty in a field list that no arena has bound.
  [[nodiscard]] constexpr std::string_view name() const { return header_.name; }

protected:
  /// Address, bytes and name.
  detail::handle_header header_;
  /// What the content adds: extents of a tensor, parts of a region list, layouts of alternatives.
  Inner inner_{};
};

/// The bound memory of a tensor.
template <element Element, std::size_t Rank, bool TokenMajor>
class tensor_handle : public handle_base<detail::extent_list<Rank>> {
public:
  using element_type = Element;

  /// First element, or null. Elements of a block type are counted in blocks.
  [[nodiscard]] STOWAGE_HOST_DEVICE Element* data() const {
    return reinterpret_cast<Element*>(this->header_.address);
  }

  /// Extents in elements, outermost first; zeros where the field is absent.
  [[nodiscard]] constexpr std::array<std::size_t, Rank> extents() const {
    std::array<std::size_t, Rank> result{};
    for (std::size_t axis = 0; axis != Rank; ++axis) result[axis] = extent(axis);
    return result;
  }
  /// One extent, for kernels too.
  [[nodiscard]] STOWAGE_HOST_DEVICE constexpr std::size_t extent(std::size_t axis) const {
    return this->inner_.values[axis];
  }

  /// Elements: the product of the extents, 0 where the field is absent.
  [[nodiscard]] STOWAGE_HOST_DEVICE constexpr std::size_t size() const {
    return row_count() * row_elements();
  }
  /// Rows: the leading extent; 0 where the field is absent.
  [[nodiscard]] STOWAGE_HOST_DEVICE constexpr std::size_t row_count() const {
    if constexpr (Rank == 0) {
      return this->inner_.values[0]; // 1 where the one element is there
    } else {
      return extent(0);
    }
  }
  /// Elements of one row: the product of all extents but the leading one.
  [[nodiscard]] STOWAGE_HOST_DEVICE constexpr std::size_t row_elements() const {
    std::size_t elements = 1;
    for (std::size_t axis = Rank == 0 ? 0 : 1; axis != Rank; ++axis) elements *= extent(axis);
    return elements;
  }

  /// All elements; blocks for a block type.
  [[nodiscard]] std::span<Element> span() const {
    return {data(), detail::ceil_divide(size(), elements_per_block<Element>())};
  }

  /// Rows [first, last) of a token-major field, as elements (blocks for a block type). Throws bounds_error
  /// beyond the capacity, and for a block type whose rows are not whole blocks.
  [[nodiscard]] std::span<Element> rows(std::size_t first, std::size_t last) const
    requires TokenMajor
  {
    return leading(first, last);
  }

  /// What lies at one index of the leading axis: a row, a layer, a thread's share. As rows(index, index + 1), and for
  /// tensors that are not token-major too. Throws bounds_error likewise.
  [[nodiscard]] std::span<Element> row(std::size_t index) const
    requires(Rank > 0)
  {
    return leading(index, index + 1);
  }

  /// Whether a tensor of these extents, in elements, fits in the allocated bytes: an engine asks it before it
  /// picks a kernel that writes padded rows. False where the product overflows, an extent is negative, or the
  /// field is absent.
  template <std::integral... Extents> [[nodiscard]] constexpr bool fits(Extents... extents) const {
    std::size_t elements = 1;
    const auto multiply_by = [&elements](detail::reading extent) {
      return !extent.negative && detail::checked_multiply(elements, extent.magnitude, elements);
    };
    const bool representable = (multiply_by(detail::make_reading(extents)) && ...);
    return representable && fits_elements(elements);
  }

  /// The same for a shape, evaluated for the params of the moment.
  template <detail::any_shape Shape, class Params>
  [[nodiscard]] constexpr bool fits(Shape, const Params& params) const {
    fault first_fault;
    const detail::evaluator<Params> evaluate{params, first_fault};
    const auto program = Shape::template compile<Params>();
    const detail::instruction<Params>* at = program.data();
    std::size_t elements = 1;
    for (std::size_t axis = 0; axis != Shape::rank; ++axis)
      elements = evaluate.multiply(elements, evaluate.take(at));
    return first_fault.kind == fault_kind::none && fits_elements(elements);
  }

private:
  [[nodiscard]] std::span<Element> leading(std::size_t first, std::size_t last) const {
    constexpr std::size_t block = elements_per_block<Element>();
    if (first > last || last > row_count())
      detail::throw_rows_out_of_range(this->name(), first, last, row_count());
    if (row_elements() % block != 0) detail::throw_rows_are_not_whole_blocks(this->name(), block);
    const std::size_t row_blocks = row_elements() / block;
    return {data() + first * row_blocks, (last - first) * row_blocks};
  }

  [[nodiscard]] constexpr bool fits_elements(std::size_t elements) const {
    const std::size_t blocks = detail::ceil_divide(elements, elements_per_block<Element>());
    return *this && blocks <= this->bytes() / sizeof(Element);
  }
};

namespace detail {

[[noreturn]] STOWAGE_COLD inline void throw_no_such_copy(std::string_view field, std::size_t copy,
                                                         std::size_t count) {
  message text;
  text << "stowage: field '" << field << "': copy " << copy << " wanted, there are " << count
       << ", counted from 0";
  detail::raise<bounds_error>(text.c_str());
}

} // namespace detail

/// A handle of each instance of a field with copies<Count>; as itself it is the first.
template <class Handle, std::size_t Count> class copied_handle : public Handle {
public:
  static constexpr std::size_t copy_count = Count;
  /// One instance, counted from 0. Throws bounds_error beyond the last.
  [[nodiscard]] const Handle& copy(std::size_t index) const {
    if (index >= Count) detail::throw_no_such_copy(this->name(), index, Count);
    return index == 0 ? *this : others_[index - 1];
  }

private:
  Handle others_[Count - 1]{};
};

namespace detail {

template <class Handle, std::size_t Count> struct handle_of_copies {
  using type = copied_handle<Handle, Count>;
  static_assert(sizeof(type) == Count * sizeof(Handle));
};
template <class Handle> struct handle_of_copies<Handle, 1> {
  using type = Handle;
};

/// Handles lie one after the other in a parts struct: their sizes are all multiples of their one alignment.
template <class... Handles> constexpr std::size_t bytes_of_handles = (std::size_t{0} + ... + sizeof(Handles));

/// The extents of a tensor's handle, right behind its header.
inline std::size_t* extents_of(handle_header* header) { return reinterpret_cast<std::size_t*>(header + 1); }

/// Alternatives have no names of their own.
template <class Params>
std::string_view name_of_node(const content_node<Params>& node, std::string_view field_name) {
  return node.name.empty() ? field_name : node.name;
}

/// Makes the handle at `handle`, and all that are in it, null. They keep their names.
template <class Params>
STOWAGE_NOINLINE void unbind_handles(const content_node<Params>* nodes, std::byte* handle,
                                     std::string_view field_name) {
  for (std::uint32_t index = 0; index < nodes->length; ++index) {
    const content_node<Params>& node = nodes[index];
    auto* header = reinterpret_cast<handle_header*>(handle + node.handle_offset);
    *header = {nullptr, 0, name_of_node(node, field_name)};
    if (node.kind != content_kind::tensor) continue;
    for (std::uint32_t axis = 0; axis == 0 || axis < node.rank; ++axis)
      extents_of(header)[axis] = 0; // a scalar has one
  }
}

/// Points the handle at `handle`, and all that are in it, at their evaluated nodes in the memory of the
/// field.
template <class Params>
STOWAGE_NOINLINE void bind_handles(const content_node<Params>* nodes, const placed_node* placed,
                                   std::byte* handle, std::byte* field, std::string_view field_name) {
  for (std::uint32_t index = 0; index < nodes->length; ++index) {
    const placed_node& node = placed[index];
    auto* header = reinterpret_cast<handle_header*>(handle + nodes[index].handle_offset);
    *header = {node.bytes == 0 ? nullptr : field + node.offset, node.bytes,
               name_of_node(nodes[index], field_name)};
    std::size_t* const extents = extents_of(header);
    for (std::uint32_t axis = 0; axis < nodes[index].rank; ++axis) extents[axis] = node.extents[axis];
    if (nodes[index].kind == content_kind::tensor && nodes[index].rank == 0)
      extents[0] = node.present ? 1 : 0;
  }
}

} // namespace detail
} // namespace stowage::inline v0_1
