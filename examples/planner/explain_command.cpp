#include "explain_command.hpp"

#include "plan_command.hpp"
#include "quantities.hpp"

#include <stowage/explain.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace planner {
namespace {

using stowage::llm::forward_plan;

/// How many letters have to change to make one word of another.
std::size_t distance_of(std::string_view one, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);
  for (std::size_t at = 0; at < row.size(); ++at) row[at] = at;
  for (std::size_t first = 0; first < one.size(); ++first) {
    std::size_t diagonal = row[0]++;
    for (std::size_t second = 0; second < other.size(); ++second) {
      const std::size_t changed = diagonal + (one[first] == other[second] ? 0U : 1U);
      diagonal = row[second + 1];
      row[second + 1] = std::min({changed, row[second] + 1, row[second + 1] + 1});
    }
  }
  return row.back();
}

} // namespace

std::string explain_command(const options& wanted) {
  std::size_t nearest = 0;
  for (std::size_t field = 0; field < forward_plan::field_count; ++field) {
    const std::string_view name = forward_plan::name(field);
    if (name == wanted.buffer) {
      const model_plan planned = plan_model(wanted);
      std::string text = stowage::explain(planned.plan, field);
      if (!planned.missing.empty()) text.append("\nMissing in the config\n");
      for (const std::string& each : planned.missing) text.append("  ").append(each).append("\n");
      return text;
    }
    const std::string_view asked = std::string_view{wanted.buffer}.substr(0, 64);
    if (distance_of(asked, name) < distance_of(asked, forward_plan::name(nearest))) nearest = field;
  }
  refuse_value("BUFFER", wanted.buffer, " (no such buffer)",
               "a name that stowage plan shows, such as " + std::string{forward_plan::name(nearest)});
}

} // namespace planner
