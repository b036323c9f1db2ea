#pragma once

#include <stowage/detail/cold.hpp>
#include <stowage/layout.hpp>
#include <stowage/plan.hpp>
#include <stowage/text.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace stowage {

namespace detail {

/// Any text as a string: measured first, then written.
template <class Write> std::string to_string(const Write& write) {
  text_writer measure;
  write(measure);
  std::string text(measure.size(), ' ');
  text_writer writer{text.data(), text.size()};
  write(writer);
  return text;
}

} // namespace detail

/// One field of a plan, as a person or a tool wants to read it.
struct field_report {
  std::string_view name;
  /// `bf16`; `regions` or `alternatives` for a carved field.
  std::string element;
  /// `[ceil16(M), 2*hidden]`; the parts of a carved field with their elements.
  std::string shape;
  /// Zero policy: rows, full or never.
  std::string_view policy;
  /// When the field is there; empty where it always is.
  std::string condition;
  field_layout layout;
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
          layout};
}

} // namespace stowage
