#pragma once

#include "reports.hpp"

#include <string>

namespace planner {

/// A report as a JSON object. Bytes are numbers; the hash is text, since not every reader of JSON has 64-bit
/// integers.
std::string plan_as_json(const plan_report& report);
std::string run_as_json(const run_report& report);

} // namespace planner
