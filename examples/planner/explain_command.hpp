#pragma once

#include "options.hpp"

#include <string>

namespace planner {

/// `stowage explain`: how the size of one buffer comes about.
std::string explain_command(const options& wanted);

} // namespace planner
