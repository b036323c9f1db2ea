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

void operation_report::expect(bool holds, std::string_view otherwise) {
  if (!holds && problem.empty()) problem = otherwise;
}

bool operations_report::ok() const {
  return checksum.ok() && rowwise.ok() && decode_metadata.ok() && moe_fp8.ok() && batched_prefill.ok();
}

bool run_report::ok() const {
  return release_problem.empty() && operations.ok() &&
         std::all_of(passes.begin(), passes.end(), [](const pass_report& each) { return each.ok(); });
}

} // namespace planner
