#include "reports.hpp"

#include <algorithm>

namespace planner {

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
