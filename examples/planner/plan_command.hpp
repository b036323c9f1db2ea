#pragma once

#include "options.hpp"
#include "reports.hpp"

#include <stowage/llm/forward_buffers.hpp>

#include <string>

namespace planner {

/// Plans the forward arena of the model that the options name. Throws config_error, and stowage::size_error
/// with the path of the config where a size has no value.
stowage::llm::forward_plan plan_forward_arena(const options& wanted);

/// What there is to know of a plan made for these options.
plan_report report_plan(const options& wanted, const stowage::llm::forward_plan& plan);

/// `stowage plan`: the plan as text, in the wanted format.
std::string plan_command(const options& wanted);

} // namespace planner
