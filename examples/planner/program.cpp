#include "program.hpp"

#include "config_reader.hpp"
#include "options.hpp"
#include "plan_command.hpp"
#include "run_command.hpp"

#include <stowage/error.hpp>

#include <cerrno>
#include <exception>
#include <fstream>
#include <new>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace planner {
namespace {

/// A result cannot be written.
class output_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

void write(std::ostream& out, std::string_view text, std::string_view where) {
  errno = 0;
  out << text << std::flush;
  if (out) return;
  std::string problem = std::string{where} + ": cannot be written";
  if (errno != 0) problem += ": " + std::generic_category().message(errno);
  throw output_error(problem);
}

void write_result(const std::string& path, std::string_view text, std::ostream& out) {
  if (path.empty()) return write(out, text, "standard output");
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  if (!file.is_open()) {
    const std::string reason = errno != 0 ? ": " + std::generic_category().message(errno) : std::string{};
    throw output_error(path + ": cannot be opened for writing" + reason);
  }
  write(file, text, path);
}

exit_status run_command_line(std::span<const char* const> arguments, const stowage::llm::levers& environment,
                             std::ostream& out, std::ostream& errors) {
  const command_line line = parse_command_line(arguments, environment);
  if (!line.wanted) {
    write(line.help_wanted ? out : errors, line.help, "the help text");
    return line.help_wanted ? success : bad_input;
  }
  const options& wanted = *line.wanted;
  if (wanted.what == command::plan) {
    write_result(wanted.output, plan_command(wanted), out);
    return success;
  }
  const run_result result = run_command(wanted);
  write_result(wanted.output, result.text, out);
  return result.ok ? success : failed;
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
                        std::ostream& out, std::ostream& errors) noexcept {
  try {
    return run_command_line(arguments, environment, out, errors);
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
