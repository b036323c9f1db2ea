#pragma once

#include <stowage/report/plan_report.hpp>
#include <stowage/report/text_table.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stowage::inline v0_1 {

/// How a table is written.
struct table_options {
  /// Which fields, in which order.
  report_view view{};
  /// Colours for a terminal. Whether there is one, and whether its user wants colour, the caller knows.
  bool colour = false;
  /// Columns that a shape may take before it is broken; 0: it is never broken.
  std::size_t shape_width = 72;
};

namespace detail {

inline text_style style_of_policy(std::string_view policy) {
  if (policy == "rows") return text_style::green;
  if (policy == "full") return text_style::yellow;
  return text_style::blue;
}

/// The buffers of a plan as a table, without its totals.
class table_writer {
public:
  table_writer(const plan_report& report, const table_options& options)
      : report_(report), options_(options), table_(columns(), options.colour) {}

  std::string text() {
    std::vector<std::string> heading{"buffer", "bytes", "", "share", "offset", "zero"};
    if (report_.tokens) heading.emplace_back("row pass");
    heading.emplace_back("element and shape");
    table_.add(std::move(heading), text_style::bold);
    const std::vector<report_group> groups = group_fields(report_, options_.view);
    std::size_t shown = 0;
    std::size_t bytes = 0;
    for (const report_group& group : groups) {
      if (!group.name.empty()) add_summary(std::string{group.name}, group.fields.size(), group.bytes);
      for (const std::size_t field : group.fields) add(report_.fields[field]);
      shown += group.fields.size();
      bytes += group.bytes;
    }
    if (shown != report_.fields.size())
      add_summary("not shown", report_.fields.size() - shown, report_.total_bytes - bytes);
    return table_.text();
  }

private:
  [[nodiscard]] std::vector<alignment> columns() const {
    std::vector<alignment> result{alignment::left,  alignment::right, alignment::right,
                                  alignment::right, alignment::right, alignment::left};
    if (report_.tokens) result.push_back(alignment::right);
    result.push_back(alignment::left);
    return result;
  }

  void add_summary(std::string name, std::size_t count, std::size_t bytes) {
    table_.add({std::move(name), std::to_string(bytes), human_bytes(bytes),
                share_text(bytes, report_.total_bytes), "",
                std::to_string(count) + (count == 1 ? " buffer" : " buffers")},
               text_style::bold);
  }

  void add(const field_report& field) {
    std::vector<std::string> row{std::string{field.name}};
    if (field.present()) {
      row.insert(row.end(),
                 {std::to_string(field.bytes()), human_bytes(field.bytes()),
                  share_text(field.bytes(), report_.total_bytes), std::to_string(field.layout.offset)});
    } else {
      row.insert(row.end(), {"-", "", "-", "-"});
    }
    row.emplace_back(field.policy);
    if (report_.tokens) row.push_back(field.present() ? std::to_string(field.zero_bytes) : "-");
    const std::size_t before_content = row.size();
    std::vector<std::string> lines{field.reason()};
    if (lines.front().empty()) {
      std::string content = field.element + " " + field.shape;
      if (field.layout.copies != 1) content.append(" x ").append(std::to_string(field.layout.copies));
      lines = options_.shape_width == 0 ? std::vector<std::string>{std::move(content)}
                                        : wrap_shape(content, options_.shape_width);
    }
    for (std::string& line : lines) {
      row.push_back(std::move(line));
      if (field.present()) {
        table_.add(std::exchange(row, std::vector<std::string>(before_content)),
                   style_of_policy(field.policy), policy_column);
      } else {
        table_.add(std::exchange(row, std::vector<std::string>(before_content)), text_style::dim);
      }
    }
  }

  static constexpr std::size_t policy_column = 5;

  const plan_report& report_;
  const table_options& options_;
  text_table table_;
};

} // namespace detail

/// The buffers of a plan as a table: name, bytes, share of the total, offset, zero policy, element and shape, or why
/// the entry is absent. One line a buffer, but for long shapes; a heading line a group.
inline std::string to_table(const plan_report& report, const table_options& options = {}) {
  return detail::table_writer(report, options).text();
}

/// The totals of a plan: how many buffers take memory, their bytes, the slab's, and the hash.
inline std::string totals_table(const plan_report& report) {
  text_table table({alignment::left, alignment::left});
  table.add({"buffers", std::to_string(report.present_fields()) + " of " +
                            std::to_string(report.fields.size()) + " take memory"});
  table.add({"total", bytes_text(report.total_bytes)});
  table.add({"slab", bytes_text(report.slab_bytes)});
  table.add({"hash", report.hash_text()});
  return table.text();
}

} // namespace stowage::inline v0_1
