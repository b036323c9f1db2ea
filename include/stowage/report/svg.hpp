#pragma once

#include <stowage/report/plan_report.hpp>
#include <stowage/report/text_table.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stowage::inline v0_1 {

namespace detail {

/// Text of an XML or HTML document.
inline std::string markup_text(std::string_view text) {
  std::string result;
  for (const char character : text) {
    switch (character) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result.push_back(static_cast<unsigned char>(character) < 0x20 ? ' ' : character);
    }
  }
  return result;
}

/// A length in an SVG with two digits behind the point: `part / whole` of `length`.
inline std::string scaled(std::size_t part, std::size_t whole, std::size_t length) {
  const std::size_t hundredths = whole == 0 ? 0 : rounded_ratio(part, whole, length * 100);
  const std::string digits = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + "." + std::string(2 - digits.size(), '0') + digits;
}

inline std::string_view colour_of_policy(std::string_view policy) {
  if (policy == "rows") return "#2a9d8f";
  if (policy == "full") return "#e9a820";
  return "#5b7fa6";
}

/// What a person reads when pointing at a field.
inline std::string tooltip_of(const field_report& field) {
  std::string text{field.name};
  text.append(": ").append(std::to_string(field.layout.bytes)).append(" bytes");
  if (field.layout.copies != 1) text.append(" x ").append(std::to_string(field.layout.copies));
  return text.append(" at ")
      .append(std::to_string(field.layout.offset))
      .append(", ")
      .append(field.element)
      .append(" ")
      .append(field.shape)
      .append(", zero ")
      .append(field.policy);
}

/// The fields that take memory, by number, in the order of the slab.
inline std::vector<std::size_t> fields_by_offset(const plan_report& report) {
  std::vector<std::size_t> fields;
  for (std::size_t field = 0; field < report.fields.size(); ++field) {
    if (report.fields[field].present()) fields.push_back(field);
  }
  std::sort(fields.begin(), fields.end(), [&](std::size_t one, std::size_t other) {
    return report.fields[one].layout.offset < report.fields[other].layout.offset;
  });
  return fields;
}

/// The memory map of one plan, top to bottom.
class svg_writer {
public:
  explicit svg_writer(const plan_report& report) : report_(report) {}

  std::string text(std::string_view title) {
    add_text(margin, 24, title, R"(font-size="16" font-weight="bold")");
    add_text(margin, 44,
             std::to_string(report_.slab_bytes) + " bytes (" + human_bytes(report_.slab_bytes) + "), " +
                 std::to_string(report_.present_fields()) + " of " + std::to_string(report_.fields.size()) +
                 " buffers take memory, hash " + report_.hash_text());
    add_legend();
    add_slab();
    y_ = 156;
    add_text(margin, y_, "Each buffer, in the order of the slab; bars to one scale",
             R"(font-size="13" font-weight="bold")");
    const std::vector<std::size_t> fields = fields_by_offset(report_);
    std::size_t largest = 0;
    for (const std::size_t field : fields) largest = std::max(largest, report_.fields[field].bytes());
    for (const std::size_t field : fields) add_bar(report_.fields[field], largest);
    add_absent();
    std::string head = R"(<svg xmlns="http://www.w3.org/2000/svg" width="1200" height=")";
    const std::string height = std::to_string(y_ + 24);
    head.append(height).append(R"(" viewBox="0 0 1200 )").append(height);
    head.append(R"(" font-family="sans-serif" font-size="12" fill="#222">)");
    head.append("\n<rect width=\"1200\" height=\"").append(height).append("\" fill=\"#fff\"/>\n");
    return head + body_ + "</svg>\n";
  }

private:
  static constexpr std::size_t margin = 20;
  static constexpr std::size_t width = 1160;
  static constexpr std::size_t bar_left = 230;
  static constexpr std::size_t bar_width = 520;

  void add_text(std::size_t x, std::size_t y, std::string_view text, std::string_view attributes = "") {
    body_.append("<text x=\"").append(std::to_string(x)).append("\" y=\"").append(std::to_string(y));
    body_.append("\" ").append(attributes).append(">").append(markup_text(text)).append("</text>\n");
  }

  void add_rectangle(const field_report& field, std::string_view x, std::string_view y, std::string_view wide,
                     std::string_view high) {
    body_.append("<rect x=\"").append(x).append("\" y=\"").append(y).append("\" width=\"").append(wide);
    body_.append("\" height=\"").append(high).append("\" fill=\"").append(colour_of_policy(field.policy));
    body_.append(R"(" stroke="#fff" stroke-width="0.4"><title>)").append(markup_text(tooltip_of(field)));
    body_.append("</title></rect>\n");
  }

  void add_legend() {
    std::size_t x = margin;
    for (const std::string_view policy : {"rows", "full", "never"}) {
      body_.append("<rect x=\"")
          .append(std::to_string(x))
          .append(R"(" y="54" width="12" height="12" fill=")");
      body_.append(colour_of_policy(policy)).append("\"/>\n");
      add_text(x + 18, 64, std::string{"zero "}.append(policy));
      x += 110;
    }
  }

  /// The slab as one strip, to scale, with names where there is room.
  void add_slab() {
    body_.append("<g transform=\"translate(20 76)\">\n");
    body_.append("<rect width=\"1160\" height=\"44\" fill=\"#e8e8e8\"/>\n");
    for (const std::size_t number : fields_by_offset(report_)) {
      const field_report& field = report_.fields[number];
      const std::size_t extent = field.layout.extent();
      add_rectangle(field, scaled(field.layout.offset, report_.slab_bytes, width), "0",
                    scaled(extent, report_.slab_bytes, width), "44");
      const std::size_t room = rounded_ratio(extent, report_.slab_bytes, width);
      if (room < field.name.size() * 7 + 6) continue;
      body_.append("<text x=\"").append(scaled(field.layout.offset, report_.slab_bytes, width));
      body_.append(R"(" dx="4" y="26" fill="#fff">)").append(markup_text(field.name)).append("</text>\n");
    }
    body_.append("</g>\n");
    add_text(margin, 136, "0");
    add_text(margin + width, 136, std::to_string(report_.slab_bytes), "text-anchor=\"end\"");
  }

  void add_bar(const field_report& field, std::size_t largest) {
    y_ += 18;
    add_text(margin, y_, field.name);
    add_rectangle(field, std::to_string(bar_left), std::to_string(y_ - 10),
                  scaled(field.bytes(), largest, bar_width), "12");
    const std::size_t end = bar_left + rounded_ratio(field.bytes(), largest, bar_width);
    add_text(end + 6, y_,
             human_bytes(field.bytes()) + " (" + share_text(field.bytes(), report_.total_bytes) + ") at " +
                 std::to_string(field.layout.offset));
  }

  void add_absent() {
    if (report_.present_fields() == report_.fields.size()) return;
    y_ += 32;
    add_text(margin, y_, "Absent", R"(font-size="13" font-weight="bold")");
    for (const field_report& field : report_.fields) {
      if (field.present()) continue;
      y_ += 18;
      add_text(margin, y_, field.name, "fill=\"#666\"");
      add_text(bar_left, y_, field.reason(), "fill=\"#666\"");
    }
  }

  const plan_report& report_;
  std::string body_;
  std::size_t y_ = 0;
};

} // namespace detail

/// A plan as a picture: the slab to scale, each buffer as a bar, and the absent ones with the reason. The colour is the
/// zero policy; pointing at a buffer shows its bytes, offset and formula.
inline std::string to_svg(const plan_report& report, std::string_view title = "Memory map") {
  return detail::svg_writer(report).text(title);
}

} // namespace stowage::inline v0_1
