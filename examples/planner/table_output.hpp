#pragma once

#include "reports.hpp"

#include <string>

namespace planner {

/// A report as tables for a terminal.
std::string plan_as_table(const plan_report& report);
std::string run_as_table(const run_report& report);

} // namespace planner
