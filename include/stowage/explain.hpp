#pragma once

#include <stowage/detail/symbols.hpp>
#include <stowage/layout.hpp>
#include <stowage/plan.hpp>
#include <stowage/report/field_report.hpp>
#include <stowage/report/text_table.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// How the size of one field comes about, for a person who has to believe it.

namespace stowage::inline v0_1 {

namespace detail {

/// Writes the contents of one field, evaluated: extents with their values, products, floors, parts and the winning
/// alternative.
template <class Params> class content_explainer {
public:
  content_explainer(std::string& text, const evaluator<Params>& evaluate)
      : text_(text), evaluate_(evaluate) {}

  /// The content at `node`, which is moved behind it, and so is `placed`.
  STOWAGE_NOINLINE void explain(const content_node<Params>*& node, const placed_node*& placed,
                                std::size_t depth, std::string_view label) {
    const content_node<Params>& self = *node;
    const placed_node& place = *placed;
    line(depth, std::string{label} + heading_of(node));
    collect_conditions(self);
    if (!place.present) {
      line(depth + 1,
           "absent: needs " + conditions_of(self) + " (" + condition_values(self, evaluate_.params) + ")");
      if (place.bytes != 0) line(depth + 1, "keeps " + std::to_string(place.bytes) + " bytes all the same");
      node += self.length;
      placed += self.length;
      return;
    }
    ++node;
    ++placed;
    switch (self.kind) {
      case content_kind::tensor: tensor(self, place, depth + 1); break;
      case content_kind::regions: regions(self, node, placed, depth + 1, place.offset); break;
      case content_kind::alternatives: alternatives(self, node, placed, depth + 1); break;
    }
    floor(self, place, depth + 1);
  }

  [[nodiscard]] const std::vector<symbol_value>& symbols() const { return symbols_; }

private:
  void line(std::size_t depth, const std::string& text) {
    text_.append(2 * depth, ' ').append(text).append("\n");
  }

  static std::string heading_of(const content_node<Params>* node) {
    if (node->kind == content_kind::regions)
      return "regions, one behind the other: " + std::to_string(node->children) + " parts";
    if (node->kind == content_kind::alternatives)
      return "alternatives that share the bytes: the largest of " + std::to_string(node->children) +
             " counts";
    return std::string{node->element} + " " + to_string([node](text_writer& writer) {
             const content_node<Params>* at = node;
             write_shape(writer, at);
           });
  }

  static std::string conditions_of(const content_node<Params>& node) {
    return to_string([&](text_writer& writer) { write_conditions(writer, node); });
  }

  void collect(const instruction<Params>* program, bool is_flag = false) {
    collect_symbols(symbols_, program, evaluate_, true, is_flag);
  }
  void collect_conditions(const content_node<Params>& node) {
    const instruction<Params>* at = node.presence;
    for (std::uint32_t condition = 0; condition < node.conditions; ++condition)
      collect_symbols(symbols_, at, evaluate_, true, true);
  }

  void tensor(const content_node<Params>& self, const placed_node& place, std::size_t depth) {
    const instruction<Params>* at = self.extents;
    std::string product;
    std::size_t elements = 1;
    for (std::uint32_t axis = 0; axis < self.rank; ++axis) {
      const instruction<Params>* const program = at;
      const std::size_t extent = evaluate_.take(at);
      collect(program);
      const std::string formula = program_text(program);
      const std::string values = program_values(program, evaluate_);
      const std::string result = std::to_string(extent);
      std::string equation = formula;
      if (values != result) equation.append(" = ").append(values);
      if (formula != result) line(depth, equation.append(" = ").append(result));
      product.append(axis == 0 ? "" : " * ").append(result);
      elements = evaluate_.multiply(elements, extent);
    }
    if (self.rank == 0) product = "1";
    const std::size_t bytes = bytes_of_elements(self, elements, evaluate_);
    std::string size =
        " * " + std::to_string(self.block_bytes) + (self.block_bytes == 1 ? " byte" : " bytes");
    if (self.elements_per_block != 1)
      size = " / " + std::to_string(self.elements_per_block) + " to a block" + size + " a block";
    line(depth, product + (product == "1" ? " element" : " elements") + size + " = " + std::to_string(bytes) +
                    " bytes" + (bytes == place.bytes ? "" : ", before the floor"));
  }

  void regions(const content_node<Params>& self, const content_node<Params>*& node,
               const placed_node*& placed, std::size_t depth, std::size_t base) {
    std::size_t end = 0;
    for (std::uint32_t child = 0; child < self.children; ++child) {
      const placed_node& part = *placed;
      std::string label{node->name};
      label.append(": ");
      if (part.bytes != 0) {
        const std::size_t start = part.offset - base;
        label.append(std::to_string(part.bytes)).append(" bytes at ").append(std::to_string(start));
        if (start > end)
          label.append(" (").append(std::to_string(start - end)).append(" of padding in front)");
        label.append(", ");
        end = std::max(end, start + part.bytes);
      }
      explain(node, placed, depth, label);
    }
    line(depth, "the last part ends at " + std::to_string(end) + " bytes");
  }

  void alternatives(const content_node<Params>& self, const content_node<Params>*& node,
                    const placed_node*& placed, std::size_t depth) {
    // Whichever is the largest comes first; it takes a look ahead to know.
    const placed_node* at = placed;
    const content_node<Params>* ahead = node;
    std::size_t winner = 0;
    std::size_t largest = 0;
    for (std::uint32_t child = 0; child < self.children; ++child) {
      if (at->bytes > largest) {
        winner = child;
        largest = at->bytes;
      }
      at += ahead->length;
      ahead += ahead->length;
    }
    for (std::uint32_t child = 0; child < self.children; ++child) {
      std::string label = std::to_string(child + 1) + ". " + std::to_string(placed->bytes) + " bytes";
      if (child == winner && largest != 0) label += ", wins";
      explain(node, placed, depth, label.append(": "));
    }
  }

  void floor(const content_node<Params>& self, const placed_node& place, std::size_t depth) {
    if (self.minimum == nullptr && self.minimum_bytes == 0) return;
    std::string text = std::to_string(self.minimum_bytes);
    if (self.minimum != nullptr) {
      collect(self.minimum);
      const std::string formula =
          program_text(self.minimum) + " = " + std::to_string(evaluate_.value(self.minimum));
      text = self.minimum_bytes == 0 ? formula : "max(" + text + ", " + formula + ")";
    }
    line(depth, "at least " + text + " bytes: " +
                    (place.bytes == floor_of_node(self, evaluate_) ? std::string{"that floor counts"}
                                                                   : "there are more"));
  }

  std::string& text_;
  const evaluator<Params>& evaluate_;
  std::vector<symbol_value> symbols_;
};

inline std::string symbols_text(const std::vector<symbol_value>& symbols) {
  std::string text;
  for (const symbol_value& symbol : symbols) {
    text.append("  ").append(symbol.name);
    if (!symbol.formula.empty()) text.append(" = ").append(symbol.formula);
    const std::string value = value_text(symbol.value, symbol.is_flag);
    if (!symbol.with_values.empty() && symbol.with_values != value)
      text.append(" = ").append(symbol.with_values);
    text.append(" = ").append(value);
    if (!symbol.member.empty() && symbol.formula.empty())
      text.append("  (").append(symbol.member).append(")");
    text.append("\n");
  }
  return text;
}

inline std::string_view meaning_of_policy(std::string_view policy) {
  if (policy == "rows") return ": a row pass over T tokens clears the rows that they reach";
  if (policy == "full") return ": every pass clears all of it";
  if (policy == "never") return ": no pass clears it";
  return "";
}

} // namespace detail

/// Explains the size of one field, by number: where it lies, its policy, its condition with the values in it, its formula
/// worked out part by part with the alternative that wins, and every symbol. A field that is absent is worked out as if
/// its condition held. Throws bounds_error for a number beyond the list.
template <class Fields, class Params>
STOWAGE_NOINLINE std::string explain(const plan<Fields, Params>& plan, std::size_t field) {
  const field_report report = report_field(plan, field);
  const field_layout& layout = report.layout;
  fault first_fault;
  const detail::evaluator<Params> evaluate{plan.params(), first_fault};
  std::string text{report.name};
  text.append(": ").append(bytes_text(layout.bytes));
  if (layout.copies != 1) text.append(", ").append(std::to_string(layout.copies)).append(" copies");
  if (report.present()) {
    text.append(", ").append(share_text(report.bytes(), plan.total_bytes()));
    text.append(" of all buffers, at ").append(std::to_string(layout.offset)).append(" of the slab");
  }
  text.append("\n\nzero policy  ").append(report.policy).append(detail::meaning_of_policy(report.policy));
  text.append("\nthere        ");
  const detail::content_node<Params>* node = plan.table()[field].nodes;
  if (report.condition.empty()) {
    text.append("always");
  } else {
    const char* holds = detail::node_is_present(*node, evaluate) ? "holds" : "does not hold";
    text.append("when ").append(report.condition).append(", which ").append(holds);
    if (!report.condition_values.empty()) text.append(" (").append(report.condition_values).append(")");
    if (layout.state == field_state::placeholder)
      text.append("; a placeholder of ")
          .append(std::to_string(layout.bytes))
          .append(" bytes keeps its place");
  }
  text.append("\nalignment    ").append(std::to_string(layout.alignment)).append(" bytes");
  if (layout.overridden) text.append("\nsize         passed in, not computed");
  text.append("\n\n");
  if (layout.state == field_state::absent || layout.state == field_state::placeholder)
    text.append("If it were there:\n");

  std::array<detail::placed_node, stowage::plan<Fields, Params>::most_nodes> placed;
  detail::placed_node* out = placed.data();
  const detail::content_node<Params>* at = node;
  detail::place_content(at, out, 0, evaluate, true);
  if (first_fault.kind != fault_kind::none) return text + "its formula has no value for these inputs\n";
  detail::content_explainer<Params> explainer(text, evaluate);
  const detail::placed_node* place = placed.data();
  explainer.explain(node, place, 0, "");
  if (layout.state == field_state::present && !layout.overridden && placed[0].bytes == layout.bytes)
    text.append("together ").append(std::to_string(layout.bytes)).append(" bytes\n");
  return text.append("\nSymbols\n").append(detail::symbols_text(explainer.symbols()));
}

/// The same by name. Throws bounds_error for a name that no field has.
template <class Fields, class Params>
std::string explain(const plan<Fields, Params>& plan, std::string_view name) {
  return stowage::explain(plan, plan.index_of(name));
}

} // namespace stowage::inline v0_1
