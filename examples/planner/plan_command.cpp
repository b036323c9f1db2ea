#include "plan_command.hpp"

#include "config_reader.hpp"
#include "json_output.hpp"
#include "table_output.hpp"

#include <stowage/count.hpp>
#include <stowage/error.hpp>
#include <stowage/report.hpp>

#include <cstddef>
#include <string_view>
#include <utility>

namespace planner {

stowage::llm::forward_plan plan_forward_arena(const options& wanted,
                                              const stowage::llm::model_config& model) {
  try {
    return stowage::llm::forward_plan{forward_params_of(wanted, model)};
  } catch (const stowage::size_error& error) {
    constexpr std::string_view library = "stowage: ";
    std::string_view problem = error.what();
    if (problem.starts_with(library)) problem.remove_prefix(library.size());
    throw stowage::size_error(std::string{wanted.config}.append(": ").append(problem));
  }
}

model_plan plan_model(const options& wanted) {
  read_config config = read_config_file(wanted.config, wanted.overrides);
  return {plan_forward_arena(wanted, config.model), std::move(config.missing)};
}

plan_report report_plan(const options& wanted, const stowage::llm::forward_plan& plan) {
  plan_report report;
  report.wanted = wanted;
  report.params = plan.params();
  report.plan = wanted.tokens ? stowage::make_report(plan, stowage::tokens{*wanted.tokens})
                              : stowage::make_report(plan);
  return report;
}

std::string plan_command(const options& wanted) {
  model_plan planned = plan_model(wanted);
  plan_report report = report_plan(wanted, planned.plan);
  report.missing = std::move(planned.missing);
  std::string title = "Forward arena of " + valid_utf8(wanted.config);
  for (const std::string& missing : report.missing) title.append("; ").append(missing);
  switch (wanted.format) {
    case output_format::table: break;
    case output_format::json: return plan_as_json(report);
    case output_format::csv: return stowage::to_csv(report.plan, wanted.view);
    case output_format::svg: return stowage::to_svg(report.plan, title);
    case output_format::html: {
      std::optional<std::size_t> chosen;
      if (wanted.tokens) chosen = static_cast<std::size_t>(*wanted.tokens);
      return stowage::to_html(report.plan, stowage::make_live_rows(planned.plan, chosen), title);
    }
  }
  return plan_as_table(report);
}

} // namespace planner
