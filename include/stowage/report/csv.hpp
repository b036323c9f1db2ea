#pragma once

#include <stowage/report/plan_report.hpp>

#include <string>
#include <string_view>

namespace stowage::inline v0_1 {

namespace detail {

/// A cell, in quotes where it holds a comma, a quote or a line break.
inline std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string{text};
  std::string result{"\""};
  for (const char character : text) {
    if (character == '"') result.push_back('"');
    result.push_back(character);
  }
  return result.append("\"");
}

inline std::string_view name_of_state(field_state state) {
  switch (state) {
    case field_state::absent: return "absent";
    case field_state::empty: return "empty";
    case field_state::placeholder: return "placeholder";
    case field_state::present: break;
  }
  return "present";
}

} // namespace detail

/// A plan as comma-separated values with a line of headings. The offset of a field without memory is empty, and
/// `zero_bytes` where the report has no tokens; `group` is there with groups in the view.
inline std::string to_csv(const plan_report& report, const report_view& view = {}) {
  std::string text{"name,bytes,copies,offset,alignment,element,shape,zero,zero_bytes,state,condition,values"};
  text += view.groups != report_groups::none ? ",group\n" : "\n";
  for (const report_group& group : group_fields(report, view)) {
    for (const std::size_t number : group.fields) {
      const field_report& field = report.fields[number];
      text.append(detail::csv_cell(field.name)).append(",").append(std::to_string(field.layout.bytes));
      text.append(",").append(std::to_string(field.layout.copies)).append(",");
      if (field.present()) text.append(std::to_string(field.layout.offset));
      text.append(",").append(std::to_string(field.layout.alignment));
      text.append(",").append(detail::csv_cell(field.element));
      text.append(",").append(detail::csv_cell(field.shape));
      text.append(",").append(field.policy).append(",");
      if (report.tokens) text.append(std::to_string(field.zero_bytes));
      text.append(",").append(detail::name_of_state(field.layout.state));
      text.append(",").append(detail::csv_cell(field.condition));
      text.append(",").append(detail::csv_cell(field.condition_values));
      if (view.groups != report_groups::none) text.append(",").append(detail::csv_cell(group.name));
      text.append("\n");
    }
  }
  return text;
}

} // namespace stowage::inline v0_1
