#pragma once

#include <string>

namespace planner {

/// "stowage 0.1.0".
std::string version_text();

/// Every key of a config that is read, its other names, and what stands in for it.
std::string config_help_text();

/// What comes behind the general help text: exit statuses, and where to start.
std::string general_footer();

/// The completions of a shell, bash or zsh, as a script.
std::string completion_script(const std::string& shell);

} // namespace planner
