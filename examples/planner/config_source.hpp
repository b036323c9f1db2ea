#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

// Where a config comes from: a file, a folder with a config.json, a pipe, or standard input. However it comes, reading
// it ends: it is cut off at largest_config_bytes, and where nothing comes for a while.

namespace planner {

/// How long a config that is not a file may take.
struct patience {
  /// Without a byte, and altogether.
  std::chrono::milliseconds idle{10000};
  std::chrono::milliseconds total{60000};
};

/// The bytes behind an open descriptor, which stays open. Throws config_error.
std::string read_descriptor(int descriptor, std::string_view source, patience limits = {});

/// The bytes of a config. `path` is a file or a pipe, a folder that has a config.json, or "-" for standard input;
/// `source` becomes what messages call it. Throws config_error.
std::string read_config_text(const std::filesystem::path& path, std::string& source, patience limits = {});

} // namespace planner
