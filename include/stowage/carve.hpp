#pragma once

#include <stowage/detail/cold.hpp>
#include <stowage/error.hpp>
#include <stowage/regions.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stowage::inline v0_1 {

/// Where the parts of a region list lie for given params; owns no memory, constexpr. Offsets are bytes from
/// the start of the list. Throws size_error where a size has no value; in a constant expression that does not
/// compile.
template <class Parts, class Params> class carving {
public:
  /// The region list.
  using content = regions<Parts>;

  /// `field` is what an error is told of.
  explicit constexpr carving(const Params& params, std::string_view field = "(a region list)") {
    fault first_fault;
    const detail::content_node<Params>* node = nodes.data();
    detail::placed_node* out = placed_.data();
    detail::place_content(node, out, 0, detail::evaluator<Params>{params, first_fault});
    if (first_fault.kind != fault_kind::none) fail(first_fault, field);
  }

  /// Bytes of the whole list.
  [[nodiscard]] constexpr std::size_t bytes() const { return placed_[0].bytes; }
  /// Alignment of its start, in bytes.
  static constexpr std::size_t alignment = content::alignment;

  /// Offset and bytes of a part of the list: `carving.offset<&parts::slots>()`. 0 bytes where the part is
  /// absent.
  template <auto Part> [[nodiscard]] constexpr std::size_t offset() const {
    return placed_[node_of<Part>()].offset;
  }
  /// Bytes of a part of the list; 0 where it is absent.
  template <auto Part> [[nodiscard]] constexpr std::size_t bytes() const {
    return placed_[node_of<Part>()].bytes;
  }

  /// Binds the parts at an address; null for the parts of an empty list.
  [[nodiscard]] regions_handle<Parts> bind(std::byte* address) const {
    regions_handle<Parts> handle;
    detail::bind_handles(nodes.data(), placed_.data(), reinterpret_cast<std::byte*>(&handle), address, {});
    return handle;
  }

private:
  STOWAGE_NOINLINE static constexpr void fail(const fault& what, std::string_view field) {
    const auto formula = write_text<512>([](text_writer& writer) {
      const detail::content_node<Params>* node = nodes.data();
      detail::write_shape(writer, node);
    });
    detail::throw_size_error(what, field, formula.view());
  }

  static constexpr auto nodes = [] {
    std::array<detail::content_node<Params>, content::nodes> result{};
    auto* out = result.data();
    field_definition<content>::emit(out, {}, 0, 1);
    return result;
  }();

  template <auto Part> static constexpr std::size_t node_of() {
    std::size_t node = 1;
    for (std::size_t part = 0; part != detail::member_index<Parts>(Part); ++part) node += nodes[node].length;
    return node;
  }

  std::array<detail::placed_node, content::nodes> placed_{};
};

/// The layout of a region list for given params: `constexpr auto layout = layout_of<decode_parts>(params);`.
template <class Parts, class Params>
[[nodiscard]] constexpr carving<Parts, Params> layout_of(const Params& params) {
  return carving<Parts, Params>(params);
}

namespace detail {

[[noreturn]] STOWAGE_COLD inline void throw_carve_without_memory(std::string_view field, std::size_t wanted) {
  message text;
  text << "stowage: field '" << field << "': " << wanted
       << " bytes wanted, but the field is absent, released, asleep or not bound to an arena";
  throw usage_error(text.c_str());
}
[[noreturn]] STOWAGE_COLD inline void throw_carve_too_large(std::string_view field, std::size_t wanted,
                                                            std::size_t there) {
  message text;
  text << "stowage: field '" << field << "': " << wanted << " bytes wanted by the carving, " << there
       << " are there; plan the field for larger params";
  throw bounds_error(text.c_str());
}
[[noreturn]] STOWAGE_COLD inline void throw_carve_misaligned(std::string_view field, std::size_t alignment) {
  message text;
  text << "stowage: field '" << field << "' does not start at a multiple of " << alignment
       << ", which a part of the carving needs; give the field align<" << alignment << ">";
  throw bounds_error(text.c_str());
}

} // namespace detail

/// Carves the memory of a field or part by a region list that is evaluated for params of the moment, usually
/// smaller than those the field was sized for. No allocation; the same params give the same addresses. Throws
/// usage_error where the field has no memory, bounds_error with both sizes where the carving is larger than
/// the field, and where the field is not aligned for it.
template <class Parts, class Inner, class Params>
[[nodiscard]] regions_handle<Parts> carve(const handle_base<Inner>& field, const Params& params) {
  const carving<Parts, Params> layout(params, field.name());
  std::byte* const address = field.memory().data();
  if (address == nullptr) detail::throw_carve_without_memory(field.name(), layout.bytes());
  if (layout.bytes() > field.bytes())
    detail::throw_carve_too_large(field.name(), layout.bytes(), field.bytes());
  if (reinterpret_cast<std::uintptr_t>(address) % layout.alignment != 0) {
    detail::throw_carve_misaligned(field.name(), layout.alignment);
  }
  return layout.bind(address);
}

/// Whether a region list fits in a field for params of the moment: whether carve() would give it. False where a size has
/// no value, where the field has no memory, and where it is not aligned for the list.
template <class Parts, class Inner, class Params>
[[nodiscard]] bool carving_fits(const handle_base<Inner>& field, const Params& params) {
  if (!field) return false;
  try {
    const carving<Parts, Params> layout(params, field.name());
    return layout.bytes() <= field.bytes() &&
           reinterpret_cast<std::uintptr_t>(field.memory().data()) % layout.alignment == 0;
  } catch (const size_error&) {
    return false;
  }
}

} // namespace stowage::inline v0_1
