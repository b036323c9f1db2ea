#include "sweep_command.hpp"

#include "config_reader.hpp"
#include "json_output.hpp"
#include "json_text.hpp"
#include "option_table.hpp"
#include "plan_command.hpp"
#include "text_table.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

namespace planner {
namespace {

using json = nlohmann::ordered_json;

sweep_report sweep(const options& wanted) {
  const read_config config = read_config_file(wanted.config, wanted.overrides);
  sweep_report report;
  report.missing = config.missing;
  report.number = name_of_number(wanted.swept).substr(2);
  report.values = wanted.sweep_values;
  for (std::size_t field = 0; field < stowage::llm::forward_plan::field_count; ++field)
    report.names.push_back(stowage::llm::forward_plan::name(field));
  for (const std::int64_t value : report.values) {
    options at = wanted;
    at.*at.swept = value;
    const stowage::llm::forward_plan plan = plan_forward_arena(at, config.model);
    report.slab_bytes.push_back(plan.slab_bytes());
    auto& bytes = report.bytes.emplace_back();
    for (std::size_t field = 0; field < plan.field_count; ++field) bytes.push_back(plan.bytes(field));
  }
  return report;
}

/// Largest buffers in columns, and all others in one.
std::string table_of(const sweep_report& report) {
  const std::vector<std::size_t> largest = largest_buffers(report, 5);
  std::vector<alignment> columns(largest.size() + 4, alignment::right);
  text_table table(columns);
  std::vector<std::string> heading{std::string{report.number}, "slab bytes", ""};
  for (const std::size_t buffer : largest) heading.emplace_back(report.names[buffer]);
  heading.emplace_back("others");
  table.add(std::move(heading));
  for (std::size_t at = 0; at < report.values.size(); ++at) {
    const std::vector<std::size_t>& bytes = report.bytes[at];
    std::size_t others = std::accumulate(bytes.begin(), bytes.end(), std::size_t{0});
    std::vector<std::string> row{std::to_string(report.values[at]), std::to_string(report.slab_bytes[at]),
                                 human_bytes(report.slab_bytes[at])};
    for (const std::size_t buffer : largest) {
      row.push_back(human_bytes(bytes[buffer]));
      others -= bytes[buffer];
    }
    row.push_back(human_bytes(others));
    table.add(std::move(row));
  }
  std::string text;
  for (const std::string& missing : report.missing) text.append("missing  ").append(missing).append("\n");
  if (!text.empty()) text += "\n";
  return text + table.text();
}

std::string json_of(const sweep_report& report, const options& wanted) {
  json document;
  document["config"] = wanted.config;
  if (!report.missing.empty()) document["missing"] = report.missing;
  document["number"] = report.number;
  json& points = document["points"] = json::array();
  for (std::size_t at = 0; at < report.values.size(); ++at) {
    json buffers;
    for (std::size_t buffer = 0; buffer < report.names.size(); ++buffer)
      buffers[std::string{report.names[buffer]}] = report.bytes[at][buffer];
    points.push_back(
        {{"value", report.values[at]}, {"slab_bytes", report.slab_bytes[at]}, {"buffers", buffers}});
  }
  return json_text(document);
}

std::string csv_of(const sweep_report& report) {
  std::string text{report.number};
  text += ",slab_bytes";
  for (const std::string_view name : report.names) text.append(",").append(name);
  text += "\n";
  for (std::size_t at = 0; at < report.values.size(); ++at) {
    text.append(std::to_string(report.values[at])).append(",").append(std::to_string(report.slab_bytes[at]));
    for (const std::size_t bytes : report.bytes[at]) text.append(",").append(std::to_string(bytes));
    text += "\n";
  }
  return text;
}

} // namespace

std::vector<std::size_t> largest_buffers(const sweep_report& report, std::size_t count) {
  std::vector<std::size_t> most(report.names.size());
  for (const std::vector<std::size_t>& bytes : report.bytes) {
    for (std::size_t buffer = 0; buffer < most.size(); ++buffer)
      most[buffer] = std::max(most[buffer], bytes[buffer]);
  }
  std::vector<std::size_t> order;
  for (std::size_t buffer = 0; buffer < most.size(); ++buffer) {
    if (most[buffer] != 0) order.push_back(buffer);
  }
  std::sort(order.begin(), order.end(), [&most](std::size_t one, std::size_t other) {
    return most[one] != most[other] ? most[one] > most[other] : one < other;
  });
  order.resize(std::min(order.size(), count));
  return order;
}

sweep_result sweep_command(const options& wanted) {
  const sweep_report report = sweep(wanted);
  std::string title = valid_utf8(wanted.config) + ": bytes by " + std::string{report.number};
  for (const std::string& missing : report.missing) title.append("; ").append(missing);
  sweep_result result;
  if (!wanted.plot.empty()) result.plot = sweep_as_svg(report, title);
  switch (wanted.format) {
    case output_format::json: result.text = json_of(report, wanted); break;
    case output_format::csv: result.text = csv_of(report); break;
    case output_format::svg: result.text = sweep_as_svg(report, title); break;
    default: result.text = table_of(report); break;
  }
  return result;
}

} // namespace planner
