#pragma once

#include <chrono>
#include <cstddef>
#include <iosfwd>
#include <string_view>

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

/// A bar on a terminal, for what takes more than a second. Clears its line in the end.
class progress_bar {
public:
  progress_bar(std::ostream& out, bool shown) : out_(out), shown_(shown) {}
  ~progress_bar();
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;

  void show(std::string_view what, std::size_t done, std::size_t steps);

private:
  std::ostream& out_;
  bool shown_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

} // namespace planner
