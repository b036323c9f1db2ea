#pragma once

#include <stowage/report/plan_report.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace stowage::inline v0_1 {

namespace detail {

/// A text as a JSON string, quotes included. Bytes that are no well-formed UTF-8 stay as they are.
inline std::string json_string(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result{"\""};
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      result.append("\\").push_back(character);
    } else if (byte < 0x20 || byte == 0x7F) {
      result.append("\\u00");
      result.push_back(digits[byte >> 4U]);
      result.push_back(digits[byte & 0xfU]);
    } else {
      result.push_back(character);
    }
  }
  return result.append("\"");
}

/// Members of a JSON object, one a line.
class json_object {
public:
  explicit json_object(std::size_t indent) : indent_(indent, ' ') {}

  /// `value` is JSON text already.
  void add(std::string_view key, std::string_view value) {
    text_.append(text_.empty() ? "{\n" : ",\n")
        .append(indent_)
        .append("  ")
        .append(json_string(key))
        .append(": ")
        .append(value);
  }
  void add(std::string_view key, std::size_t number) { add(key, std::string_view{std::to_string(number)}); }
  void add_string(std::string_view key, std::string_view text) {
    add(key, std::string_view{json_string(text)});
  }

  [[nodiscard]] std::string text() const { return text_.empty() ? "{}" : text_ + "\n" + indent_ + "}"; }

private:
  std::string indent_;
  std::string text_;
};

inline std::string field_as_json(const plan_report& report, const field_report& field, std::size_t indent) {
  json_object object(indent);
  object.add_string("name", field.name);
  object.add("bytes", field.layout.bytes);
  object.add("present", field.present() ? "true" : "false");
  if (field.present()) {
    object.add("offset", field.layout.offset);
  } else {
    object.add("offset", "null");
  }
  object.add("alignment", field.layout.alignment);
  object.add_string("element", field.element);
  object.add_string("shape", field.shape);
  object.add_string("zero", field.policy);
  if (report.tokens) object.add("zero_bytes", field.zero_bytes);
  if (field.layout.copies != 1) {
    object.add("copies", field.layout.copies);
    object.add("stride", field.layout.stride);
  }
  if (const std::string reason = field.reason(); !reason.empty()) object.add_string("reason", reason);
  return object.text();
}

} // namespace detail

/// A plan as JSON: `buffers`, each with name, bytes (of one copy), present, offset, alignment, element, shape, zero, and
/// where it has them zero_bytes, copies, stride and reason; `total_bytes`, `slab_bytes`, `hash`; with groups in the
/// view `groups`; with tokens `zero_rows_bytes`. The hash is text, since not every reader has 64-bit integers.
inline std::string to_json(const plan_report& report, const report_view& view = {}) {
  std::string buffers;
  std::string groups;
  for (const report_group& group : group_fields(report, view)) {
    for (const std::size_t field : group.fields) {
      buffers.append(buffers.empty() ? "[\n    " : ",\n    ")
          .append(detail::field_as_json(report, report.fields[field], 4));
    }
    detail::json_object object(4);
    object.add_string("name", group.name);
    object.add("buffers", group.fields.size());
    object.add("bytes", group.bytes);
    groups.append(groups.empty() ? "[\n    " : ",\n    ").append(object.text());
  }
  detail::json_object document(0);
  document.add("buffers", buffers.empty() ? "[]" : buffers + "\n  ]");
  if (view.groups != report_groups::none) document.add("groups", groups.empty() ? "[]" : groups + "\n  ]");
  document.add("total_bytes", report.total_bytes);
  document.add("slab_bytes", report.slab_bytes);
  document.add_string("hash", report.hash_text());
  if (report.tokens) document.add("zero_rows_bytes", report.zero_rows_bytes);
  return document.text() + "\n";
}

} // namespace stowage::inline v0_1
