#include "fit_command.hpp"

#include "bounds.hpp"
#include "config_reader.hpp"
#include "fit.hpp"
#include "json_text.hpp"
#include "option_table.hpp"
#include "plan_command.hpp"
#include "text_table.hpp"

#include <stowage/error.hpp>
#include <stowage/report/table.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace planner {
namespace {

using json = nlohmann::ordered_json;
using stowage::bytes_text;
using stowage::llm::forward_buffers;
using stowage::llm::forward_params;
using stowage::llm::forward_plan;

constexpr std::size_t largest_value = std::numeric_limits<std::int64_t>::max();

/// The plan at a value, or why there is none.
struct plan_at {
  std::optional<forward_plan> plan;
  std::string problem;
};

/// One buffer that takes more at one value more.
struct growth {
  std::size_t field = 0;
  std::string_view name;
  std::size_t before = 0;
  std::size_t after = 0;
};

/// What was found.
struct fit_report {
  std::optional<std::size_t> value;
  std::size_t slab_bytes = 0;
  std::vector<std::pair<std::string_view, std::size_t>> largest;
  /// One more: its bytes and what grows, or why there is no plan for it.
  std::size_t next_bytes = 0;
  std::vector<growth> growing;
  std::string next_problem;
  /// Where nothing fits: the value that takes the fewest bytes.
  std::size_t smallest = 0;
};

class fitting {
public:
  fitting(const options& wanted, const stowage::llm::model_config& model) : wanted_(wanted), model_(model) {}

  /// "max-batch-tokens", and the member of the params struct that it fills.
  [[nodiscard]] std::string_view name() const { return name_of_number(wanted_.vary).substr(2); }

  fit_report find() const {
    std::string member{name()};
    std::replace(member.begin(), member.end(), '-', '_');
    const forward_params params = forward_params_of(wanted_, model_);
    const auto bytes = [this](std::size_t value) {
      const plan_at at = plan_of(value);
      return at.plan ? at.plan->slab_bytes() : stowage::detail::largest_size;
    };
    const auto least = [&](std::size_t first, std::size_t last) {
      return least_slab_bytes<forward_buffers>(params, member, first, last);
    };
    fit_report report;
    report.value = largest_fit(1, largest_value, wanted_.budget, bytes, least);
    if (!report.value) {
      report.smallest = smallest_value(1, largest_value, bytes, least);
      const plan_at at = plan_of(report.smallest);
      if (!at.plan) throw stowage::size_error(at.problem); // there is no plan for any value
      describe(report, *at.plan);
      return report;
    }
    const plan_at found = plan_of(*report.value);
    describe(report, *found.plan);
    if (*report.value == largest_value) return report;
    const plan_at next = plan_of(*report.value + 1);
    report.next_problem = next.problem;
    if (next.plan) compare(report, *found.plan, *next.plan);
    return report;
  }

private:
  plan_at plan_of(std::size_t value) const {
    options wanted = wanted_;
    wanted.*wanted.vary = static_cast<std::int64_t>(value);
    try {
      return {plan_forward_arena(wanted, model_), {}};
    } catch (const stowage::size_error& error) {
      return {std::nullopt, error.what()};
    }
  }

  static void describe(fit_report& report, const forward_plan& plan) {
    report.slab_bytes = plan.slab_bytes();
    std::vector<std::size_t> fields(plan.field_count);
    std::iota(fields.begin(), fields.end(), std::size_t{0});
    std::sort(fields.begin(), fields.end(), [&plan](std::size_t one, std::size_t other) {
      return plan.bytes(one) != plan.bytes(other) ? plan.bytes(one) > plan.bytes(other) : one < other;
    });
    for (const std::size_t field : fields) report.largest.emplace_back(plan.name(field), plan.bytes(field));
    report.largest.resize(5);
  }

  static void compare(fit_report& report, const forward_plan& plan, const forward_plan& next) {
    report.next_bytes = next.slab_bytes();
    for (std::size_t field = 0; field < plan.field_count; ++field) {
      if (next.bytes(field) > plan.bytes(field))
        report.growing.push_back({field, plan.name(field), plan.bytes(field), next.bytes(field)});
    }
    std::sort(report.growing.begin(), report.growing.end(), [](const growth& one, const growth& other) {
      const std::size_t size = one.after - one.before;
      const std::size_t other_size = other.after - other.before;
      return size != other_size ? size > other_size : one.field < other.field;
    });
  }

  const options& wanted_;
  const stowage::llm::model_config& model_;
};

std::string text_of(const fit_report& report, const options& wanted, std::string_view name,
                    const std::vector<std::string>& missing) {
  text_table table({alignment::left, alignment::left});
  table.add({"model", wanted.config});
  for (const std::string& each : missing) table.add({"missing", each});
  table.add({"budget", bytes_text(wanted.budget)});
  if (!report.value) {
    table.add({"nothing fits", "the smallest slab of all has " + bytes_text(report.slab_bytes) + ", at " +
                                   std::string{name} + " " + std::to_string(report.smallest) + "; " +
                                   bytes_text(report.slab_bytes - wanted.budget) + " are missing"});
  } else {
    table.add({std::string{name}, std::to_string(*report.value)});
    table.add({"slab", bytes_text(report.slab_bytes) + ", " + bytes_text(wanted.budget - report.slab_bytes) +
                           " to spare"});
    if (!report.next_problem.empty()) {
      table.add({"one more", "cannot be planned: " + report.next_problem});
    } else if (report.next_bytes == 0) {
      table.add({"one more", "there is none: the size hardly depends on it"});
    } else {
      table.add({"one more", bytes_text(report.next_bytes) + ", " +
                                 bytes_text(report.next_bytes - wanted.budget) + " too many"});
    }
  }
  std::string text = table.text();
  text_table largest({alignment::left, alignment::right, alignment::right, alignment::right});
  largest.add({"largest", "bytes", "", "share"});
  for (const auto& [buffer, bytes] : report.largest)
    largest.add({std::string{buffer}, std::to_string(bytes), human_bytes(bytes),
                 stowage::share_text(bytes, report.slab_bytes)});
  text += "\n" + largest.text();
  if (report.growing.empty()) return text;
  text_table growing({alignment::left, alignment::right, alignment::right});
  growing.add({"with one more", "grows by", "to"});
  for (const growth& each : report.growing)
    growing.add(
        {std::string{each.name}, std::to_string(each.after - each.before), std::to_string(each.after)});
  return text + "\n" + growing.text();
}

std::string json_of(const fit_report& report, const options& wanted, std::string_view name,
                    const std::vector<std::string>& missing) {
  json document;
  document["config"] = wanted.config;
  if (!missing.empty()) document["missing"] = missing;
  document["budget"] = wanted.budget;
  document["vary"] = name;
  document["fits"] = report.value.has_value();
  document["value"] = report.value ? json(*report.value) : json(nullptr);
  document["slab_bytes"] = report.value ? json(report.slab_bytes) : json(nullptr);
  if (!report.value) {
    document["smallest"] = {{"value", report.smallest}, {"slab_bytes", report.slab_bytes}};
  } else {
    json& next = document["one_more"];
    next["slab_bytes"] = report.next_bytes != 0 ? json(report.next_bytes) : json(nullptr);
    if (!report.next_problem.empty()) next["problem"] = report.next_problem;
    json& growing = next["growing"] = json::array();
    for (const growth& each : report.growing)
      growing.push_back({{"name", each.name}, {"before", each.before}, {"after", each.after}});
  }
  json& largest = document["largest"] = json::array();
  for (const auto& [buffer, bytes] : report.largest) largest.push_back({{"name", buffer}, {"bytes", bytes}});
  return json_text(document);
}

} // namespace

fit_result fit_command(const options& wanted) {
  const read_config config = read_config_file(wanted.config, wanted.overrides);
  const fitting search(wanted, config.model);
  const fit_report report = search.find();
  return {wanted.format == output_format::json ? json_of(report, wanted, search.name(), config.missing)
                                               : text_of(report, wanted, search.name(), config.missing),
          report.value.has_value()};
}

} // namespace planner
