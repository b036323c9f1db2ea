#pragma once

#include "options.hpp"
#include "reports.hpp"

#include <stowage/llm/forward_buffers.hpp>

#include <string>
#include <vector>

namespace planner {

/// A model's plan, and the keys that its config lacks.
struct model_plan {
  stowage::llm::forward_plan plan;
  std::vector<std::string> missing;
};

/// Plans the forward arena of the model that the options name. Throws config_error, and stowage::size_error
/// with the path of the config where a size has no value.
model_plan plan_model(const options& wanted);

/// The plan for a model that has been read. `wanted.config` is what messages call it.
stowage::llm::forward_plan plan_forward_arena(const options& wanted, const stowage::llm::model_config& model);

/// What there is to know of a plan made for these options.
plan_report report_plan(const options& wanted, const stowage::llm::forward_plan& plan);

/// `stowage plan`: the plan as text, in the wanted format.
std::string plan_command(const options& wanted);

} // namespace planner
