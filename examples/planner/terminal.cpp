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

progress_bar::progress_bar(std::ostream& out, bool shown) : out_(out) {
  if (shown) thread_ = std::thread([this] { redraw_until_done(); });
}

progress_bar::~progress_bar() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  thread_.join();
  if (drawn_) out_ << "\r\x1b[K" << std::flush;
}

void progress_bar::show(std::string_view what, std::size_t done, std::size_t steps) {
  const std::lock_guard lock(mutex_);
  what_ = what;
  done_ = done;
  steps_ = steps;
}

void progress_bar::draw() {
  constexpr std::size_t width = 30;
  const std::size_t filled = steps_ == 0 ? 0 : width * done_ / steps_;
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start_);
  out_ << "\r\x1b[K[" << std::string(filled, '#') << std::string(width - filled, '.') << "] " << done_ << "/"
       << steps_ << "  " << seconds.count() << " s  " << what_ << std::flush;
  drawn_ = true;
}

void progress_bar::redraw_until_done() {
  std::unique_lock lock(mutex_);
  auto next = start_ + std::chrono::seconds{1};
  while (!changed_.wait_until(lock, next, [this] { return ended_; })) {
    draw();
    next = std::chrono::steady_clock::now() + std::chrono::milliseconds{200};
  }
}

} // namespace planner
