#pragma once

#include <stowage/detail/checked.hpp>
#include <stowage/detail/encode.hpp>
#include <stowage/formula.hpp>
#include <stowage/program.hpp>
#include <stowage/traits/align.hpp>
#include <stowage/traits/zero.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace stowage::inline v0_1 {

/// What a field or a part carries after element and shape. A trait is a struct with `using stowage_trait = void;` and
/// the hooks that it needs, as static members (each is looked up by name, so traits do not know each other):
///
///   name, slab_group, cleared_by_zero_all, in_row_pass
///                             a zero policy (traits/zero.hpp)
///   presence_condition        a condition: the field is absent where it does not hold
///   start_alignment           bytes
///   minimum_bytes             bytes, of a present field
///   minimum_formula           the same as a formula
///   absent_bytes              bytes, of an absent field
///   tag_type                  a tag of the user's
///   cleared_at_construction   true
///   fill_numerator, fill_denominator
///                             the value the field is set to when the arena is made
///   tail_bytes                bytes of backing beyond the end
///   copy_count                instances of the field
///   element_offset            a formula, elements: where a part starts in its region list
template <class Type>
concept trait = requires { typename Type::stowage_trait; };

/// A trait that is a zero policy: it has all four.
template <class Type>
concept zero_policy = trait<Type> && requires {
  Type::name;
  Type::slab_group;
  Type::cleared_by_zero_all;
  Type::in_row_pass;
};

/// Traits that make sense on a field, and on a part of one.
template <class Type>
concept trait_of_field = trait<Type> && !requires { Type::element_offset; };
/// Traits that make sense on a part: what is about memory of its own belongs on the field.
template <class Type>
concept trait_of_part =
    trait<Type> && !requires { typename Type::tag_type; } && !requires { Type::cleared_at_construction; } &&
    !requires { Type::fill_numerator; } && !requires { Type::tail_bytes; } && !requires { Type::copy_count; };

/// What a field holds: a tensor, a region list or alternatives.
template <class Type>
concept content = requires { typename Type::stowage_content; };

namespace detail {

enum class content_kind : unsigned char { tensor, regions, alternatives };

/// One node of what a field holds: the content of the field or of a part, with what its traits say. The nodes
/// of the parts follow (prefix order). A field list is a table of these, and plain functions do the rest
/// (layout.hpp).
template <class Params> struct content_node {
  content_kind kind = content_kind::tensor;
  /// Nodes of this content, itself included, and parts or alternatives directly in it.
  std::uint32_t length = 1;
  std::uint32_t children = 0;
  /// Where the handle of this node lies in the handle of its field; bytes.
  std::uint32_t handle_offset = 0;
  /// Start alignment within its region list; bytes.
  std::size_t alignment = 1;
  /// Floor of a present node and what an absent one keeps; bytes.
  std::size_t minimum_bytes = 0;
  std::size_t absent_bytes = 0;
  /// The floor as a formula, or null.
  const instruction<Params>* minimum = nullptr;
  /// Conditions, one behind the other; all must hold.
  const instruction<Params>* presence = nullptr;
  std::uint32_t conditions = 0;
  /// Explicit start in its region list, in elements; null: behind its predecessor.
  const instruction<Params>* start = nullptr;
  // Of a tensor:
  const instruction<Params>* extents = nullptr;
  std::uint32_t rank = 0;
  std::size_t elements_per_block = 1;
  std::size_t block_bytes = 1;
  std::string_view element;
  /// Of a part.
  std::string_view name;
};

template <class Type>
concept presence_trait = requires { Type::presence_condition; };

struct no_policy {
  static constexpr std::string_view name = "none";
  static constexpr std::size_t slab_group = 0;
  static constexpr bool cleared_by_zero_all = false;
  static constexpr row_pass in_row_pass = row_pass::nothing;
};

template <class... Traits> struct find_policy {
  using type = no_policy;
};
template <class First, class... Rest> struct find_policy<First, Rest...> {
  using type = typename find_policy<Rest...>::type;
};
template <zero_policy First, class... Rest> struct find_policy<First, Rest...> {
  using type = First;
};

} // namespace detail

namespace detail {

// What one trait says, or what stands where it says nothing. Functions of the trait alone, shared by all
// fields.

template <class Trait> consteval std::size_t start_alignment_of() {
  if constexpr (requires { Trait::start_alignment; }) return Trait::start_alignment;
  return 0;
}
template <class Trait> consteval std::size_t minimum_bytes_of() {
  if constexpr (requires { Trait::minimum_bytes; }) return Trait::minimum_bytes;
  return 0;
}
template <class Trait> consteval std::size_t tail_bytes_of() {
  if constexpr (requires { Trait::tail_bytes; }) return Trait::tail_bytes;
  return 0;
}
template <class Trait> consteval std::size_t copy_count_of() {
  if constexpr (requires { Trait::copy_count; }) return Trait::copy_count;
  return 1;
}
template <class Trait> consteval bool has_minimum_formula() {
  return requires { Trait::minimum_formula; };
}
template <class Trait> consteval bool fills() {
  return requires { Trait::fill_numerator; };
}
template <class Trait, class Content> constexpr fill_pattern fill_of() {
  if constexpr (fills<Trait>()) {
    return pattern_of<typename Content::element_type>(Trait::fill_numerator, Trait::fill_denominator);
  } else {
    return {};
  }
}
constexpr fill_pattern first_fill() { return {}; }
template <class... Rest> constexpr fill_pattern first_fill(const fill_pattern& first, const Rest&... rest) {
  return first.size != 0 ? first : first_fill(rest...);
}
template <class Trait, class Params>
inline constexpr auto program_of_minimum = compile<Params>(Trait::minimum_formula);
template <class Trait, class Params> constexpr const instruction<Params>* minimum_of() {
  if constexpr (requires { Trait::minimum_formula; }) {
    return program_of_minimum<Trait, Params>.data();
  } else {
    return nullptr;
  }
}
template <class Trait> consteval std::size_t absent_bytes_of() {
  if constexpr (requires { Trait::absent_bytes; }) return Trait::absent_bytes;
  return 0;
}
template <class Trait> consteval bool cleared_at_construction_of() {
  return requires { Trait::cleared_at_construction; };
}
template <class Trait, class Params>
inline constexpr auto program_of_start = compile<Params>(Trait::element_offset);
template <class Trait> consteval bool explicitly_placed_by() {
  return requires { Trait::element_offset; };
}
template <class Trait, class Tag> consteval bool tags_with() {
  if constexpr (requires { typename Trait::tag_type; }) return std::same_as<typename Trait::tag_type, Tag>;
  return false;
}
template <class Trait> consteval std::uint32_t condition_length() {
  if constexpr (presence_trait<Trait>)
    return std::remove_cvref_t<decltype(Trait::presence_condition)>::length;
  return 0;
}
template <class Trait, class Params> constexpr void emit_condition(instruction<Params>*& out) {
  if constexpr (presence_trait<Trait>) Trait::presence_condition.emit(out);
}
template <class Trait, class Params> constexpr const instruction<Params>* start_of() {
  if constexpr (explicitly_placed_by<Trait>()) {
    return program_of_start<Trait, Params>.data();
  } else {
    return nullptr;
  }
}

/// The conditions of all traits, one behind the other.
template <class Params, class... Traits>
inline constexpr auto program_of_conditions = [] {
  std::array<instruction<Params>, (std::size_t{0} + ... + condition_length<Traits>())> program{};
  instruction<Params>* out = program.data();
  (emit_condition<Traits>(out), ...);
  return program;
}();

template <class... Numbers> constexpr std::size_t largest_of(Numbers... numbers) {
  std::size_t largest = 0;
  ((largest = numbers > largest ? numbers : largest), ...);
  return largest;
}

} // namespace detail

namespace detail {

/// What some traits say together. Apart from the content that carries them, so that fields with the same traits share it.
template <class... Traits> struct trait_set {
  using policy = typename find_policy<Traits...>::type;

  static constexpr bool cleared_at_construction = (false || ... || cleared_at_construction_of<Traits>());
  static constexpr bool has_condition = (false || ... || presence_trait<Traits>);
  static constexpr bool explicitly_placed = (false || ... || explicitly_placed_by<Traits>());
  template <class Tag> static constexpr bool has_tag = (false || ... || tags_with<Traits, Tag>());

  /// Backing beyond the end of each copy; bytes.
  static constexpr std::size_t tail_bytes = largest_of(tail_bytes_of<Traits>()...);
  /// Instances of the field.
  static constexpr std::size_t copies = largest_of(std::size_t{1}, copy_count_of<Traits>()...);
  static constexpr int minimum_formulas = (0 + ... + (has_minimum_formula<Traits>() ? 1 : 0));
  static constexpr bool has_minimum = minimum_formulas != 0;
  static_assert(minimum_formulas <= 1, "stowage: a field has one min_bytes at most; join two with max(a, b)");
  static constexpr bool filled = (false || ... || fills<Traits>());
  static_assert(!filled || (!policy::cleared_by_zero_all && policy::in_row_pass == row_pass::nothing),
                "stowage: pad_fill needs zero::never, since a zero pass would undo it");

  /// Of align<N>, 0 without; bytes.
  static constexpr std::size_t explicit_alignment = largest_of(start_alignment_of<Traits>()...);
  static_assert(explicit_alignment == 0 || is_power_of_two(explicit_alignment),
                "stowage: a start alignment is a power of two");

  /// Bytes that a present field has at least.
  static constexpr std::size_t minimum_bytes = largest_of(minimum_bytes_of<Traits>()...);
  /// Bytes that an absent field keeps.
  static constexpr std::size_t absent_bytes = largest_of(absent_bytes_of<Traits>()...);

  /// Writes what the traits say into the node of a content.
  template <class Params> static constexpr void describe(content_node<Params>& node) {
    node.minimum_bytes = minimum_bytes;
    node.absent_bytes = absent_bytes;
    if constexpr (has_minimum) ((node.minimum = first_of(node.minimum, minimum_of<Traits, Params>())), ...);
    if constexpr (has_condition) {
      node.presence = program_of_conditions<Params, Traits...>.data();
      node.conditions = (std::uint32_t{0} + ... + (presence_trait<Traits> ? 1U : 0U));
    }
    if constexpr (explicitly_placed) ((node.start = first_of(node.start, start_of<Traits, Params>())), ...);
  }

private:
  template <class Pointer> static constexpr Pointer first_of(Pointer one, Pointer other) {
    return one != nullptr ? one : other;
  }
};

} // namespace detail

/// A content with its traits: everything the library knows of a field or part, all of it static.
template <content Content, class... Traits> struct field_definition : detail::trait_set<Traits...> {
  using content_type = Content;
  using traits = detail::trait_set<Traits...>;

  static constexpr bool token_major = Content::token_major;

  static_assert(
      !traits::filled || requires { typename Content::element_type; },
      "stowage: pad_fill is for tensors; put it on none of the fields that hold regions or alternatives");
  /// What the field is set to when the arena is made; size 0 for nothing.
  static constexpr detail::fill_pattern fill() {
    if constexpr (traits::filled) {
      return detail::first_fill(detail::fill_of<Traits, Content>()...);
    } else {
      return {};
    }
  }

  static_assert(traits::explicit_alignment == 0 || traits::explicit_alignment >= Content::alignment,
                "stowage: align<N> is smaller than the alignment of the element type; use a larger N");
  /// Bytes: that of align<N>, else the content's own, but not less than `by_default`.
  static constexpr std::size_t alignment(std::size_t by_default) {
    if (traits::explicit_alignment != 0) return traits::explicit_alignment;
    return by_default > Content::alignment ? by_default : Content::alignment;
  }

  /// Writes the nodes of the content, the first one with what the traits say, and moves `out` behind them.
  template <class Params>
  static constexpr void emit(detail::content_node<Params>*& out, std::string_view name,
                             std::size_t handle_offset, std::size_t by_default) {
    detail::content_node<Params>& node = *out;
    node.handle_offset = static_cast<std::uint32_t>(handle_offset);
    Content::emit(out);
    node.name = name;
    node.alignment = alignment(by_default);
    traits::describe(node);
  }
};

} // namespace stowage::inline v0_1
