#pragma once

#include "options.hpp"

#include <string>

namespace planner {

/// What `stowage diff` has to say. Not ok where the slab grows by more than --fail-above.
struct diff_result {
  std::string text;
  bool ok = false;
};
diff_result diff_command(const options& wanted);

} // namespace planner
