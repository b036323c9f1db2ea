#include "program.hpp"

#include "config_reader.hpp"
#include "diff_command.hpp"
#include "explain_command.hpp"
#include "fit_command.hpp"
#include "help.hpp"
#include "options.hpp"
#include "output_file.hpp"
#include "plan_command.hpp"
#include "run_command.hpp"
#include "sweep_command.hpp"

#include <stowage/error.hpp>

#include <array>
#include <cstddef>
#include <exception>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace planner {
namespace {

/// What a command has to say, and how the program ends.
struct command_result {
  std::string text;
  exit_status status = success;
};

command_result run_wanted(const options& wanted, const terminal& connected, std::ostream& errors) {
  switch (wanted.what) {
    case command::plan: return {plan_command(wanted)};
    case command::explain: return {explain_command(wanted)};
    case command::completion: return {completion_script(wanted.shell)};
    case command::fit: {
      fit_result result = fit_command(wanted);
      return {std::move(result.text), result.ok ? success : failed};
    }
    case command::diff: {
      diff_result result = diff_command(wanted);
      return {std::move(result.text), result.ok ? success : failed};
    }
    case command::sweep: {
      sweep_result result = sweep_command(wanted);
      if (!wanted.plot.empty()) write_picture(wanted.plot, result.plot);
      return {std::move(result.text)};
    }
    case command::run: break;
  }
  progress_bar bar(errors, connected.errors_are_one);
  run_result result = run_command(wanted, [&bar](std::string_view what, std::size_t done, std::size_t steps) {
    bar.show(what, done, steps);
  });
  return {std::move(result.text), result.ok ? success : failed};
}

exit_status run_command_line(std::span<const char* const> arguments, const stowage::llm::levers& environment,
                             std::ostream& out, std::ostream& errors, const terminal& connected) {
  command_line line = parse_command_line(arguments, environment);
  if (!line.wanted) {
    write(line.help_wanted ? out : errors, line.help, "the help text");
    return line.help_wanted ? success : bad_input;
  }
  options& wanted = *line.wanted;
  wanted.colour = wanted.colours == colour_choice::always ||
                  (wanted.colours == colour_choice::automatic && wanted.output.empty() &&
                   connected.output_is_one && !connected.no_colour);
  const std::array inputs{wanted.config, wanted.other_config};
  check_output(wanted.output, inputs);
  check_output(wanted.plot, inputs);
  check_two_outputs(wanted.output, wanted.plot);
  const command_result result = run_wanted(wanted, connected, errors);
  write_result(wanted.output, result.text, out);
  return result.status;
}

/// A message on one line, whatever was on the command line or in a file name.
void report_error(std::ostream& errors, std::string_view message) {
  constexpr std::string_view prefix = "stowage: ";
  if (message.starts_with(prefix)) message.remove_prefix(prefix.size());
  std::string line{prefix};
  for (const char character : message) {
    const auto byte = static_cast<unsigned char>(character);
    line.push_back(byte < 0x20 || byte == 0x7F ? '?' : character);
  }
  line.push_back('\n');
  errors << line << std::flush;
}

} // namespace

exit_status run_program(std::span<const char* const> arguments, const stowage::llm::levers& environment,
                        std::ostream& out, std::ostream& errors, const terminal& connected) noexcept {
  try {
    return run_command_line(arguments, environment, out, errors, connected);
  } catch (const option_error& error) {
    report_error(errors, error.what());
  } catch (const config_error& error) {
    report_error(errors, error.what());
  } catch (const stowage::size_error& error) {
    report_error(errors, error.what());
  } catch (const output_error& error) {
    report_error(errors, error.what());
  } catch (const std::exception& error) {
    report_error(errors, error.what());
    return failed;
  }
  return bad_input;
}

} // namespace planner
