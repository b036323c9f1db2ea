#include "config_source.hpp"

#include "config_reader.hpp"
#include "config_text.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <system_error>

namespace planner {
namespace {

namespace fs = std::filesystem;

std::string reason_of(int code) {
  return code != 0 ? ": " + std::generic_category().message(code) : std::string{};
}

/// A descriptor that is closed with the scope.
class open_file {
public:
  // Without waiting for the other end: a FIFO may have none.
  explicit open_file(const fs::path& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}
  ~open_file() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;

  [[nodiscard]] int get() const { return descriptor_; }

private:
  int descriptor_;
};

std::string seconds_text(std::chrono::milliseconds duration) {
  const auto milliseconds = duration.count();
  if (milliseconds % 1000 != 0) return std::to_string(milliseconds) + " ms";
  return std::to_string(milliseconds / 1000) + " s";
}

/// Waits until there is something to read, or the end.
void wait_for_data(int descriptor, std::string_view source, const patience& limits,
                   std::chrono::steady_clock::time_point start) {
  using std::chrono::milliseconds;
  const auto passed = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
  const milliseconds left = std::max(milliseconds{0}, std::min(limits.idle, limits.total - passed));
  pollfd waiting{descriptor, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&waiting, 1, static_cast<int>(left.count()));
  } while (ready < 0 && errno == EINTR);
  if (ready < 0) refuse(source, "cannot be read" + reason_of(errno));
  if (ready > 0) return;
  const bool slow = left < limits.idle;
  refuse(source, (slow ? "is not complete after " + seconds_text(limits.total)
                       : "nothing came for " + seconds_text(limits.idle)) +
                     "; wanted a config.json, and then the end of the file");
}

} // namespace

std::string read_descriptor(int descriptor, std::string_view source, patience limits) {
  const auto start = std::chrono::steady_clock::now();
  std::string text;
  std::array<char, 65536> block{};
  while (true) {
    wait_for_data(descriptor, source, limits, start);
    const ssize_t count = ::read(descriptor, block.data(), block.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) refuse(source, "cannot be read" + reason_of(errno));
    if (count == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(count));
    if (text.size() > largest_config_bytes) {
      refuse(source, "has more than " + std::to_string(largest_config_bytes) +
                         " bytes (16 MiB); wanted the config.json of a model, without its weights");
    }
  }
}

std::string read_config_text(const fs::path& path, std::string& source, patience limits) {
  if (path == "-") {
    source = "standard input";
    return read_descriptor(STDIN_FILENO, source, limits);
  }
  source = path.empty() ? "(empty path)" : path.string();
  std::error_code error;
  fs::path file = path;
  fs::file_type type = fs::status(file, error).type();
  if (type == fs::file_type::directory) {
    file = path / "config.json";
    type = fs::status(file, error).type();
    if (type == fs::file_type::not_found) refuse(source, "is a directory without a config.json");
    source = file.string();
  }
  if (type == fs::file_type::not_found) refuse(source, "no such file");
  if (type == fs::file_type::none) refuse(source, "cannot be looked at: " + error.message());
  if (type == fs::file_type::directory) refuse(source, "is a directory; wanted a file");
  if (type != fs::file_type::regular && type != fs::file_type::fifo && type != fs::file_type::character)
    refuse(source, "is neither a file nor a pipe");

  const open_file opened(file);
  if (opened.get() < 0) refuse(source, "cannot be opened" + reason_of(errno));
  return read_descriptor(opened.get(), source, limits);
}

} // namespace planner
