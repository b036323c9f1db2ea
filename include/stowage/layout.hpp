#pragma once

#include <stowage/detail/cold.hpp>
#include <stowage/field.hpp>
#include <stowage/program.hpp>

#include <array>
#include <cstddef>
#include <string_view>

// Sizes, offsets, row ranges and texts from the tables of contents. One function each for all fields.

namespace stowage::inline v0_1::detail {

/// One node of a content, evaluated. Offsets count from the start of the field. Without initializers: arrays have room
/// for the largest field of a list (35 nodes in the forward arena), most fields are one node, and clearing the rest took
/// most of the time of binding an arena.
struct placed_node {
  std::size_t offset;
  /// 0 where the node takes no memory.
  std::size_t bytes;
  /// Its conditions hold. A node that is not present can still keep bytes.
  bool present;
  std::array<std::size_t, 8> extents;
};

/// The usual leading extents without their program: rows(T) is max(min(T, capacity), floor) rounded up to a
/// multiple. Covers M, ceil16(M) and ceil16(max(M, 3)); a pass of many buffers is several times faster for
/// it.
struct simple_rows {
  std::size_t capacity = 0;
  std::size_t floor = 0;
  /// 0 where the extent is of another form.
  std::size_t multiple = 0;

  [[nodiscard]] constexpr std::size_t owned_by(std::size_t count) const {
    return count < capacity ? count : capacity;
  }
  [[nodiscard]] constexpr std::size_t reached_by(std::size_t count) const {
    const std::size_t owned = owned_by(count);
    const std::size_t rows = owned < floor ? floor : owned;
    if ((multiple & (multiple - 1)) == 0) return (rows + multiple - 1) & ~(multiple - 1); // no division
    return stowage::detail::round_up(rows, multiple);
  }
};

/// The node that a named formula stands for.
template <class Params> constexpr const instruction<Params>* resolved(const instruction<Params>* at) {
  while (at->code == opcode::call) at = at->target;
  return at;
}

/// The form of a leading extent, if it is a simple one.
template <class Params>
constexpr simple_rows simple_form(const instruction<Params>* leading, const evaluator<Params>& evaluate) {
  simple_rows form;
  form.multiple = 1;
  const instruction<Params>* at = resolved(leading);
  if (at->code == opcode::round_up) {
    form.multiple = at->value;
    at = resolved(at + 1);
  }
  if (at->code == opcode::maximum && (at + 1)->code == opcode::input && (at + 2)->code == opcode::constant) {
    form.floor = (at + 2)->value;
    ++at;
  }
  if (at->code != opcode::input || !at->uses_tokens) return {};
  form.capacity = evaluate.value(at);
  return form;
}

/// A tensor whose leading extent counts tokens, as a row pass needs it.
template <class Params> struct row_range {
  /// Number of the field, and bytes from its start to the first row.
  std::size_t field = 0;
  std::size_t base = 0;
  std::size_t row_bytes = 0;
  /// Rows at the capacity.
  std::size_t rows = 0;
  /// The program of the leading extent; null for memory without rows, which is cleared as its floor is.
  const instruction<Params>* leading = nullptr;
  /// The floor of a part: bytes from `base` that every pass clears.
  std::size_t minimum = 0;
  simple_rows simple{};
};

template <class Params>
constexpr bool node_is_present(const content_node<Params>& node, const evaluator<Params>& evaluate) {
  const instruction<Params>* at = node.presence;
  bool present = true;
  for (std::size_t condition = 0; condition < node.conditions; ++condition) {
    if (!present) break;
    present = evaluate.take(at) != 0;
  }
  return present;
}

template <class Params>
constexpr std::size_t bytes_of_elements(const content_node<Params>& node, std::size_t elements,
                                        const evaluator<Params>& evaluate) {
  return evaluate.multiply(ceil_divide(elements, node.elements_per_block), node.block_bytes);
}

/// Bytes that a present node has at least.
template <class Params>
constexpr std::size_t floor_of_node(const content_node<Params>& node, const evaluator<Params>& evaluate) {
  const std::size_t formula = node.minimum != nullptr ? evaluate.value(node.minimum) : 0;
  return formula > node.minimum_bytes ? formula : node.minimum_bytes;
}

/// Evaluates the content at `node`, moves `node` and `out` behind it, and returns its bytes. Nodes that take
/// no memory keep `bytes` 0. `armed` takes the first node for present whatever its conditions say.
template <class Params>
STOWAGE_NOINLINE constexpr std::size_t place_content(const content_node<Params>*& node, placed_node*& out,
                                                     std::size_t offset, const evaluator<Params>& evaluate,
                                                     bool armed = false) {
  const content_node<Params>& self = *node;
  placed_node& placed = *out;
  placed = {};
  placed.offset = offset;
  placed.present = armed || node_is_present(self, evaluate);
  if (!placed.present) {
    for (std::uint32_t child = 1; child < self.length; ++child) out[child] = {};
    node += self.length;
    out += self.length;
    return placed.bytes = self.absent_bytes;
  }
  ++node;
  ++out;
  std::size_t bytes = 0;
  switch (self.kind) {
    case content_kind::tensor: {
      std::size_t elements = 1;
      const instruction<Params>* at = self.extents;
      for (std::uint32_t axis = 0; axis < self.rank; ++axis) {
        placed.extents[axis] = evaluate.take(at);
        elements = evaluate.multiply(elements, placed.extents[axis]);
      }
      bytes = bytes_of_elements(self, elements, evaluate);
      break;
    }
    case content_kind::regions: {
      std::size_t cursor = 0;
      for (std::uint32_t child = 0; child < self.children; ++child) {
        const content_node<Params>& part = *node;
        std::size_t start = 0;
        if (part.start != nullptr) {
          start = bytes_of_elements(part, evaluate.value(part.start), evaluate);
          if (start % part.alignment != 0) {
            evaluate.fail({fault_kind::misaligned, '%', start, part.alignment, {}, {}});
          }
        } else {
          start = evaluate.round_up(cursor, part.alignment);
        }
        const std::size_t part_bytes = place_content(node, out, evaluate.add(offset, start), evaluate);
        if (part_bytes != 0)
          cursor = evaluate.add(start, part_bytes); // padding only in front of what is there
        if (cursor > bytes) bytes = cursor;
      }
      break;
    }
    case content_kind::alternatives: {
      for (std::uint32_t child = 0; child < self.children; ++child) {
        const std::size_t alternative_bytes = place_content(node, out, offset, evaluate);
        if (alternative_bytes > bytes) bytes = alternative_bytes;
      }
      break;
    }
  }
  const std::size_t minimum = floor_of_node(self, evaluate);
  if (bytes < minimum) bytes = minimum;
  return placed.bytes = bytes;
}

/// Elements of one row of a placed tensor.
template <class Params>
constexpr std::size_t elements_of_row(const content_node<Params>& node, const placed_node& placed,
                                      const evaluator<Params>& evaluate) {
  std::size_t elements = 1;
  for (std::uint32_t axis = 1; axis < node.rank; ++axis) {
    elements = evaluate.multiply(elements, placed.extents[axis]);
  }
  return elements;
}

/// Adds the row ranges of a placed field whose contents are all token-major. Records a fault where rows are
/// not whole blocks.
template <class Params, class Add>
STOWAGE_NOINLINE constexpr void collect_row_ranges(const content_node<Params>* nodes,
                                                   const placed_node* placed, std::size_t field,
                                                   const evaluator<Params>& evaluate, const Add& add) {
  for (std::uint32_t index = 0; index < nodes->length; ++index) {
    const content_node<Params>& node = nodes[index];
    const placed_node& part = placed[index];
    if (part.bytes == 0) continue;
    if (!part.present) { // the placeholder of a part
      add(row_range<Params>{field, part.offset, 0, 0, nullptr, part.bytes, {}});
      continue;
    }
    if (node.kind != content_kind::tensor) continue;
    const std::size_t elements = elements_of_row(node, part, evaluate);
    if (elements % node.elements_per_block != 0) {
      evaluate.fail({fault_kind::partial_block, '%', elements, node.elements_per_block, {}, {}});
    }
    add(row_range<Params>{field, part.offset, bytes_of_elements(node, elements, evaluate), part.extents[0],
                          node.extents, floor_of_node(node, evaluate), simple_form(node.extents, evaluate)});
  }
}

/// Writes what a content holds: `bf16`, or `regions` and `alternatives`.
template <class Params>
STOWAGE_NOINLINE constexpr void write_element(text_writer& writer, const content_node<Params>& node) {
  switch (node.kind) {
    case content_kind::tensor: writer << node.element; return;
    case content_kind::regions: writer << "regions"; return;
    case content_kind::alternatives: writer << "alternatives"; return;
  }
}

/// Writes the extents of a content and moves `node` behind it: `[ceil16(M), 2*hidden]`; for regions
/// `{keys bf16 [M, width], values bf16 [M, width]}`; for alternatives `(bf16 [M, width] | f32 [M])`.
template <class Params>
STOWAGE_NOINLINE constexpr void write_shape(text_writer& writer, const content_node<Params>*& node) {
  const content_node<Params>& self = *node++;
  if (self.kind == content_kind::tensor) {
    writer << '[';
    const instruction<Params>* at = self.extents;
    for (std::uint32_t axis = 0; axis < self.rank; ++axis) {
      writer << (axis == 0 ? "" : ", ");
      write_program(writer, at);
    }
    writer << ']';
    return;
  }
  const bool regions = self.kind == content_kind::regions;
  writer << (regions ? '{' : '(');
  for (std::uint32_t child = 0; child < self.children; ++child) {
    if (child != 0) writer << (regions ? ", " : " | ");
    if (regions) writer << node->name << ' ';
    if (node->kind == content_kind::tensor) writer << node->element << ' ';
    write_shape(writer, node);
  }
  writer << (regions ? '}' : ')');
}

/// Writes the conditions of a content, joined by &&; nothing where it is always there.
template <class Params>
STOWAGE_NOINLINE constexpr void write_conditions(text_writer& writer, const content_node<Params>& node) {
  const instruction<Params>* at = node.presence;
  for (std::uint32_t condition = 0; condition < node.conditions; ++condition) {
    if (condition != 0) writer << " && ";
    write_program(writer, at, node.conditions > 1 ? infix_of(opcode::conjunction).precedence : 0);
  }
}

} // namespace stowage::inline v0_1::detail
