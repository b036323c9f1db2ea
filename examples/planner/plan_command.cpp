#include "plan_command.hpp"

#include "config_reader.hpp"
#include "json_output.hpp"
#include "table_output.hpp"

#include <stowage/count.hpp>
#include <stowage/error.hpp>
#include <stowage/report.hpp>

#include <cstddef>
#include <string_view>

namespace planner {

stowage::llm::forward_plan plan_forward_arena(const options& wanted) {
  const stowage::llm::model_config model = read_model_config_file(wanted.config);
  try {
    return stowage::llm::forward_plan{forward_params_of(wanted, model)};
  } catch (const stowage::size_error& error) {
    constexpr std::string_view library = "stowage: ";
    std::string_view problem = error.what();
    if (problem.starts_with(library)) problem.remove_prefix(library.size());
    throw stowage::size_error(std::string{wanted.config}.append(": ").append(problem));
  }
}

plan_report report_plan(const options& wanted, const stowage::llm::forward_plan& plan) {
  plan_report report;
  report.wanted = wanted;
  report.params = plan.params();
  const stowage::tokens tokens{wanted.tokens.value_or(0)};
  for (std::size_t field = 0; field < plan.field_count; ++field) {
    buffer_report& buffer = report.buffers.emplace_back();
    buffer.field = stowage::report_field(plan, field);
    if (wanted.tokens) buffer.zero_bytes = plan.zero_bytes(field, tokens);
  }
  report.total_bytes = plan.total_bytes();
  report.slab_bytes = plan.slab_bytes();
  report.hash = plan.hash();
  report.zero_all_bytes = plan.zero_all_bytes();
  if (wanted.tokens) report.zero_rows_bytes = plan.zero_rows_bytes(tokens);
  return report;
}

std::string plan_command(const options& wanted) {
  const plan_report report = report_plan(wanted, plan_forward_arena(wanted));
  return wanted.format == output_format::json ? plan_as_json(report) : plan_as_table(report);
}

} // namespace planner
