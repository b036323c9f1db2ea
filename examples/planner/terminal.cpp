#include "terminal.hpp"

#include <unistd.h>

#include <cstdlib>
#include <ostream>
#include <string>

namespace planner {

terminal current_terminal() {
  const auto variable = [](const char* name) {
    const char* const text = std::getenv(name);
    return std::string_view{text != nullptr ? text : ""};
  };
  return {::isatty(STDOUT_FILENO) == 1, ::isatty(STDERR_FILENO) == 1,
          !variable("NO_COLOR").empty() || variable("TERM") == "dumb"};
}

progress_bar::~progress_bar() {
  if (drawn_) out_ << "\r\x1b[K" << std::flush;
}

void progress_bar::show(std::string_view what, std::size_t done, std::size_t steps) {
  if (!shown_ || std::chrono::steady_clock::now() - start_ < std::chrono::seconds{1}) return;
  constexpr std::size_t width = 30;
  const std::size_t filled = steps == 0 ? width : width * done / steps;
  out_ << "\r\x1b[K[" << std::string(filled, '#') << std::string(width - filled, '.') << "] " << done << "/"
       << steps << "  " << what << std::flush;
  drawn_ = true;
}

} // namespace planner
