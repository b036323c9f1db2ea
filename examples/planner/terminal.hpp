#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <iosfwd>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace planner {

/// What the program's outputs are connected to.
struct terminal {
  bool output_is_one = false;
  bool errors_are_one = false;
  /// NO_COLOR is set, or the terminal is a dumb one.
  bool no_colour = false;
};

/// That of this process.
terminal current_terminal();

/// A bar on a terminal, which appears once its work has taken a second and is redrawn while a step lasts. Clears its line
/// in the end.
class progress_bar {
public:
  progress_bar(std::ostream& out, bool shown);
  ~progress_bar();
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;

  void show(std::string_view what, std::size_t done, std::size_t steps);

private:
  void draw();
  void redraw_until_done();

  std::ostream& out_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;
  std::size_t done_ = 0;
  std::size_t steps_ = 0;
  bool drawn_ = false;
  bool ended_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::thread thread_; // the last member: it reads the others
};

} // namespace planner
