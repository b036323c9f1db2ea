#pragma once

#include "options.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planner {

/// The bytes of every buffer for several values of one number.
struct sweep_report {
  /// "max-batch-tokens".
  std::string_view number;
  std::vector<std::int64_t> values;
  std::vector<std::size_t> slab_bytes;
  std::vector<std::string_view> names;
  /// bytes[value][buffer].
  std::vector<std::vector<std::size_t>> bytes;
  /// Keys that the config lacks.
  std::vector<std::string> missing;
};

/// The buffers that take the most at any value, by number, largest first, `count` at most.
std::vector<std::size_t> largest_buffers(const sweep_report& report, std::size_t count);

/// The sweep as a picture: bytes stacked by buffer over the values.
std::string sweep_as_svg(const sweep_report& report, std::string_view title);

/// What `stowage sweep` has to say, and the plot beside it; empty where none is wanted.
struct sweep_result {
  std::string text;
  std::string plot;
};
sweep_result sweep_command(const options& wanted);

} // namespace planner
