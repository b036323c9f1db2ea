#pragma once

#include <stowage/detail/cold.hpp>
#include <stowage/detail/symbols.hpp>
#include <stowage/layout.hpp>
#include <stowage/plan.hpp>
#include <stowage/text.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stowage::inline v0_1 {

namespace detail {

/// The symbols in the conditions of a content with their values: `hidden = 5, mamba = false`.
template <class Params>
STOWAGE_NOINLINE std::string condition_values(const content_node<Params>& node, const Params& params) {
  fault ignored; // where a condition has no value there is no plan
  const evaluator<Params> evaluate{params, ignored};
  std::vector<symbol_value> symbols;
  const instruction<Params>* at = node.presence;
  for (std::uint32_t condition = 0; condition < node.conditions; ++condition)
    collect_symbols(symbols, at, evaluate, false, true);
  std::string text;
  for (const symbol_value& symbol : symbols) {
    if (!text.empty()) text += ", ";
    text.append(symbol.name).append(" = ").append(value_text(symbol.value, symbol.is_flag));
  }
  return text;
}

} // namespace detail

/// One field of a plan, as a person or a tool wants to read it.
struct field_report {
  /// Dotted in groups.
  std::string_view name;
  /// `bf16`; `regions` or `alternatives` for a carved field.
  std::string element;
  /// `[ceil16(M), 2*hidden]`; the parts of a carved field with their elements.
  std::string shape;
  /// Zero policy: rows, full or never.
  std::string_view policy;
  /// When the field is there; empty where it always is.
  std::string condition;
  /// Where it lies.
  field_layout layout;
  /// The symbols of the condition with their values, `hidden = 5, mamba = false`; empty without a condition.
  std::string condition_values{};
  /// What a row pass over the tokens of a plan_report clears; 0 without.
  std::size_t zero_bytes = 0;

  /// Whether it takes memory.
  [[nodiscard]] bool present() const { return layout.bytes != 0; }
  /// Bytes in the slab, all copies together and without tails.
  [[nodiscard]] std::size_t bytes() const { return layout.bytes * layout.copies; }

  /// Why the field is not what its shape says: "absent: needs mamba (mamba = false)"; empty where it is.
  [[nodiscard]] std::string reason() const {
    const char* state = "";
    switch (layout.state) {
      case field_state::present: return {};
      case field_state::empty: return "empty: " + element + " " + shape + " has no bytes";
      case field_state::absent: state = "absent: "; break;
      case field_state::placeholder: state = "placeholder: "; break;
    }
    if (condition.empty()) return std::string{state}.append("its size was passed in");
    std::string text{state};
    text.append("needs ").append(condition);
    if (!condition_values.empty()) text.append(" (").append(condition_values).append(")");
    return text;
  }
};

/// Reports one field of a plan, by number. Throws bounds_error for a number beyond the list.
template <class Fields, class Params>
STOWAGE_NOINLINE field_report report_field(const plan<Fields, Params>& plan, std::size_t field) {
  const field_layout& layout = plan.layout(field);
  const auto& entry = plan.table()[field];
  return {plan.name(field),
          detail::to_string([&](text_writer& writer) { detail::write_element(writer, *entry.nodes); }),
          detail::to_string([&](text_writer& writer) {
            const auto* node = entry.nodes;
            detail::write_shape(writer, node);
          }),
          entry.policy,
          detail::to_string([&](text_writer& writer) { detail::write_conditions(writer, *entry.nodes); }),
          layout,
          detail::condition_values(*entry.nodes, plan.params())};
}

} // namespace stowage::inline v0_1
