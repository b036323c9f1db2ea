#include "reports.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace planner {

std::size_t plan_report::present_buffers() const {
  return static_cast<std::size_t>(std::count_if(buffers.begin(), buffers.end(),
                                                [](const buffer_report& each) { return each.present(); }));
}

std::string plan_report::hash_text() const {
  char digits[16];
  const std::to_chars_result result = std::to_chars(std::begin(digits), std::end(digits), hash, 16);
  const std::string text(std::begin(digits), result.ptr);
  return "0x" + std::string(std::size(digits) - text.size(), '0') + text;
}

std::optional<double> pass_report::gigabytes_per_second() const {
  if (!seconds || *seconds <= 0 || promised_bytes == 0) return std::nullopt;
  return static_cast<double>(promised_bytes) / *seconds / 1e9;
}

bool run_report::ok() const {
  return release_problem.empty() &&
         std::all_of(passes.begin(), passes.end(), [](const pass_report& each) { return each.ok(); });
}

} // namespace planner
