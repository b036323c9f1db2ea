#pragma once

#include <stowage/report/html_page.hpp>
#include <stowage/report/json.hpp>
#include <stowage/report/live_rows.hpp>
#include <stowage/report/plan_report.hpp>
#include <stowage/report/svg.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stowage::inline v0_1 {

namespace detail {

inline std::string numbers_as_json(const std::vector<std::size_t>& numbers) {
  std::string text{"["};
  for (const std::size_t number : numbers) {
    if (text.size() > 1) text += ",";
    text += std::to_string(number);
  }
  return text + "]";
}

/// The ranges of one field at every token count, flat; null where they are those of the count before.
inline std::string ranges_as_json(const live_rows& live, std::size_t field) {
  std::string text{"["};
  const std::vector<live_rows::range>* before = nullptr;
  for (const auto& fields : live.ranges) {
    const std::vector<live_rows::range>& ranges = fields[field];
    if (before != nullptr) text += ",";
    if (before != nullptr && *before == ranges) {
      text += "null";
    } else {
      std::vector<std::size_t> numbers;
      for (const live_rows::range& range : ranges) numbers.insert(numbers.end(), {range.begin, range.end});
      text += numbers_as_json(numbers);
    }
    before = &ranges;
  }
  return text + "]";
}

/// What the page draws. A "<" is written as an escape, so that no name ends the script.
inline std::string page_data(const plan_report& report, const live_rows& live, std::string_view title) {
  std::string buffers;
  for (std::size_t number = 0; number < report.fields.size(); ++number) {
    const field_report& field = report.fields[number];
    json_object object(0);
    object.add_string("name", field.name);
    object.add("bytes", field.layout.bytes);
    object.add("offset", field.layout.offset);
    object.add("extent", field.layout.extent());
    object.add("copies", field.layout.copies);
    object.add_string("formula", field.element + " " + field.shape);
    object.add_string("zero", field.policy);
    object.add_string("reason", field.reason());
    object.add("live", ranges_as_json(live, number));
    buffers.append(buffers.empty() ? "[" : ",\n").append(object.text());
  }
  json_object data(0);
  data.add_string("title", title);
  data.add("slab_bytes", report.slab_bytes);
  data.add("total_bytes", report.total_bytes);
  data.add_string("hash", report.hash_text());
  data.add("tokens", numbers_as_json(live.tokens));
  data.add("chosen", live.chosen);
  data.add("buffers", buffers + "]");
  std::string text;
  for (const char character : data.text()) {
    if (character == '<') {
      text += "\\u003c";
    } else {
      text += character;
    }
  }
  return text;
}

inline void replace_once(std::string& text, std::string_view mark, std::string_view by) {
  const std::size_t at = text.find(mark);
  if (at != std::string::npos) text.replace(at, mark.size(), by);
}

} // namespace detail

/// A plan as a page for a browser, in one file that loads nothing: the slab to scale with zoom, the rows of T tokens
/// under a slider, every buffer with its numbers, and the absent ones with the reason. Sizes above 2^53 bytes are
/// rounded, as JavaScript has them.
inline std::string to_html(const plan_report& report, const live_rows& live,
                           std::string_view title = "Memory map") {
  std::string page{detail::html_page};
  detail::replace_once(page, "@title@", detail::markup_text(title));
  detail::replace_once(page, "@data@", detail::page_data(report, live, title));
  return page;
}

} // namespace stowage::inline v0_1
