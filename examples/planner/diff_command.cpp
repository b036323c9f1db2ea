#include "diff_command.hpp"

#include "json_text.hpp"
#include "option_table.hpp"
#include "plan_command.hpp"
#include "text_table.hpp"

#include <stowage/report/csv.hpp>
#include <stowage/report/table.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace planner {
namespace {

using json = nlohmann::ordered_json;
using stowage::bytes_text;

struct change {
  std::size_t field = 0;
  std::string_view name;
  std::size_t before = 0;
  std::size_t after = 0;

  [[nodiscard]] std::string_view kind() const {
    if (before == 0) return "appeared";
    if (after == 0) return "vanished";
    return after > before ? "grew" : "shrank";
  }
  [[nodiscard]] std::size_t size() const { return after > before ? after - before : before - after; }
};

/// "+12", "-3" or "0", of numbers without a sign.
std::string signed_text(std::size_t before, std::size_t after) {
  if (after == before) return "0";
  return after > before ? "+" + std::to_string(after - before) : "-" + std::to_string(before - after);
}

std::string signed_percent(std::size_t before, std::size_t after) {
  if (before == 0) return after == 0 ? "0.0 %" : "new";
  if (after / 10 >= before) return "x " + std::to_string(after / before); // as from a placeholder
  const double percent = 100 * (static_cast<double>(after) / static_cast<double>(before) - 1);
  return (percent < 0 ? "" : "+") + fixed_text(percent, 1) + " %";
}

struct comparison {
  std::vector<change> changes;
  std::size_t unchanged = 0;
  std::size_t before = 0;
  std::size_t after = 0;
  /// Keys that the configs lack.
  std::vector<std::string> missing_before;
  std::vector<std::string> missing_after;

  /// A growth of just that share is not above it, though a share such as 0.3 has no exact binary value.
  [[nodiscard]] bool grows_above(long double percent) const {
    if (after <= before) return false;
    const long double limit = percent * static_cast<long double>(before);
    return static_cast<long double>(after - before) * 100 > limit + limit * 0x1p-60L;
  }
};

comparison compare(const model_plan& before, const model_plan& after) {
  const stowage::llm::forward_plan& one = before.plan;
  const stowage::llm::forward_plan& other = after.plan;
  comparison result;
  result.missing_before = before.missing;
  result.missing_after = after.missing;
  result.before = one.slab_bytes();
  result.after = other.slab_bytes();
  for (std::size_t field = 0; field < one.field_count; ++field) {
    if (one.bytes(field) == other.bytes(field)) {
      ++result.unchanged;
    } else {
      result.changes.push_back({field, one.name(field), one.bytes(field), other.bytes(field)});
    }
  }
  std::sort(result.changes.begin(), result.changes.end(), [](const change& left, const change& right) {
    return left.size() != right.size() ? left.size() > right.size() : left.field < right.field;
  });
  return result;
}

/// What a side is: its config, and what is set otherwise there.
std::string side_text(const options& side, const options& other, bool is_other) {
  std::string text = side.config;
  for (const option_entry& option : option_entries()) {
    if (option.number == nullptr || side.*option.number == other.*option.number) continue;
    if (std::string_view{option.name}.starts_with("--against")) continue;
    text.append(", ").append(std::string_view{option.name}.substr(2)).append(" ");
    text.append(std::to_string(side.*option.number));
  }
  if (is_other) {
    for (const config_override& each : side.other_overrides)
      text.append(", ").append(each.key).append("=").append(each.value);
  }
  if (side.switches != other.switches) {
    text.append(", levers");
    for (const std::string_view name : lever_names_of(side.switches)) text.append(" ").append(name);
    text.append(lever_names_of(side.switches).empty() ? " none" : "").append(", split-K ");
    text.append(splitk_spelling_of(side.switches.splitk));
  }
  return text;
}

std::string text_of(const comparison& found, const options& wanted, const options& other) {
  text_table sides({alignment::left, alignment::left});
  sides.add({"before", side_text(wanted, other, false)});
  for (const std::string& each : found.missing_before) sides.add({"missing", each});
  sides.add({"after", side_text(other, wanted, true)});
  for (const std::string& each : found.missing_after) sides.add({"missing", each});
  text_table table({alignment::left, alignment::left, alignment::right, alignment::right, alignment::right,
                    alignment::right});
  table.add({"buffer", "", "before", "after", "change", ""});
  for (const change& each : found.changes)
    table.add({std::string{each.name}, std::string{each.kind()}, std::to_string(each.before),
               std::to_string(each.after), signed_text(each.before, each.after),
               signed_percent(each.before, each.after)});
  table.add({"slab", "", std::to_string(found.before), std::to_string(found.after),
             signed_text(found.before, found.after), signed_percent(found.before, found.after)});
  return sides.text() + "\n" + table.text() + "\n" + std::to_string(found.unchanged) +
         " buffers are as large as before\n";
}

std::string json_of(const comparison& found, const options& wanted, const options& other, bool ok) {
  json document;
  document["before"] = {{"config", wanted.config}, {"slab_bytes", found.before}};
  document["after"] = {{"config", other.config}, {"slab_bytes", found.after}};
  if (!found.missing_before.empty()) document["before"]["missing"] = found.missing_before;
  if (!found.missing_after.empty()) document["after"]["missing"] = found.missing_after;
  json& changes = document["changes"] = json::array();
  for (const change& each : found.changes)
    changes.push_back(
        {{"name", each.name}, {"kind", each.kind()}, {"before", each.before}, {"after", each.after}});
  document["unchanged"] = found.unchanged;
  document["ok"] = ok;
  return json_text(document);
}

std::string csv_of(const comparison& found) {
  std::string text{"name,kind,before,after\n"};
  for (const change& each : found.changes) {
    text.append(stowage::detail::csv_cell(each.name)).append(",").append(each.kind());
    text.append(",")
        .append(std::to_string(each.before))
        .append(",")
        .append(std::to_string(each.after))
        .append("\n");
  }
  return text;
}

} // namespace

diff_result diff_command(const options& wanted) {
  const options other = other_side_of(wanted);
  const model_plan before = plan_model(wanted);
  const model_plan after = plan_model(other);
  const comparison found = compare(before, after);
  const bool ok = !wanted.fail_above || !found.grows_above(*wanted.fail_above);
  switch (wanted.format) {
    case output_format::json: return {json_of(found, wanted, other, ok), ok};
    case output_format::csv: return {csv_of(found), ok};
    default: return {text_of(found, wanted, other), ok};
  }
}

} // namespace planner
