#pragma once

#include "options.hpp"

#include <cstddef>
#include <string>

namespace planner {

/// What `stowage fit` has to say. Not ok where nothing fits.
struct fit_result {
  std::string text;
  bool ok = false;
};
fit_result fit_command(const options& wanted);

} // namespace planner
