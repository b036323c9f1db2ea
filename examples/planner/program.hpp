#pragma once

#include "terminal.hpp"

#include <stowage/llm/levers.hpp>

#include <iosfwd>
#include <span>

namespace planner {

/// Statuses that the program ends with.
enum exit_status : int {
  success = 0,
  failed =
      1, ///< a pass or operation broke its promise, there is not enough memory, nothing fits, it grew too much
  bad_input = 2 ///< the command line, the config, or the output file
};

/// The program behind main(). Results go to `out` or to the file that the arguments name, and errors, a line
/// each, to `errors`. `arguments` are those behind the program's name. Never throws.
exit_status run_program(std::span<const char* const> arguments, const stowage::llm::levers& environment,
                        std::ostream& out, std::ostream& errors, const terminal& connected = {}) noexcept;

} // namespace planner
