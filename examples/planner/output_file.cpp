#include "output_file.hpp"

#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <system_error>
#include <vector>

extern char** environ; // NOLINT: POSIX has it in no header

namespace planner {
namespace {

namespace fs = std::filesystem;

std::string reason_of(int code) {
  return code != 0 ? ": " + std::generic_category().message(code) : std::string{};
}

/// Runs a program that is looked up in PATH; whether it was there and ended well.
bool run(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions) != 0) return false;
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", 0, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", 1,
                                   0); // both are the planner's alone
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", 1, 0);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (failed != 0) return false;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// A file of its own beside the result, gone with the scope.
class temporary_file {
public:
  explicit temporary_file(const std::string& text) {
    const char* const folder = std::getenv("TMPDIR");
    path_ = std::string{folder != nullptr && folder[0] != '\0' ? folder : "/tmp"} + "/stowage-XXXXXX";
    const int descriptor = mkstemp(path_.data());
    if (descriptor < 0) throw output_error(path_ + ": cannot be opened for writing" + reason_of(errno));
    ::close(descriptor);
    std::ofstream file(path_, std::ios::binary);
    write(file, text, path_);
  }
  ~temporary_file() { ::unlink(path_.c_str()); }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

private:
  std::string path_;
};

/// Whether `path` is the regular file that standard input comes from.
bool is_standard_input(const std::string& path) {
  struct stat input{};
  struct stat output{};
  return ::fstat(STDIN_FILENO, &input) == 0 && ::stat(path.c_str(), &output) == 0 &&
         S_ISREG(output.st_mode) && input.st_dev == output.st_dev && input.st_ino == output.st_ino;
}

} // namespace

void write(std::ostream& out, std::string_view text, std::string_view where) {
  errno = 0;
  out << text << std::flush;
  if (!out) throw output_error(std::string{where} + ": cannot be written" + reason_of(errno));
}

void check_output(const std::string& path, std::span<const std::string> inputs) {
  for (const std::string& input : inputs) {
    if (input == "-" && is_standard_input(path)) {
      throw output_error(path +
                         ": is the config that is read, and would be overwritten; wanted another file");
    }
    for (const fs::path& file : {fs::path{input}, fs::path{input} / "config.json"}) {
      std::error_code ignored;
      const bool regular = fs::is_regular_file(path, ignored);
      if (path.empty() || !regular || !fs::equivalent(path, file, ignored)) continue;
      throw output_error(path +
                         ": is the config that is read, and would be overwritten; wanted another file");
    }
  }
}

void check_two_outputs(const std::string& output, const std::string& plot) {
  if (output.empty() || plot.empty()) return;
  std::error_code ignored;
  const bool there = fs::exists(output, ignored);
  const bool same = there ? fs::is_regular_file(output, ignored) && fs::equivalent(output, plot, ignored)
                          : fs::weakly_canonical(output, ignored) == fs::weakly_canonical(plot, ignored);
  if (same) throw output_error(output + ": is the file of --plot, too; wanted two files");
}

void write_result(const std::string& path, std::string_view text, std::ostream& out) {
  if (path.empty()) return write(out, text, "standard output");
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  if (!file.is_open()) throw output_error(path + ": cannot be opened for writing" + reason_of(errno));
  write(file, text, path);
}

void write_picture(const std::string& path, const std::string& svg) {
  std::ofstream none;
  std::error_code unknown;
  const bool device = fs::exists(path, unknown) && fs::is_other(path, unknown);
  if (path.ends_with(".svg") || device) return write_result(path, svg, none);
  if (!path.ends_with(".png")) throw output_error(path + ": wanted a file that ends in .svg or .png");
  write_result(path, "", none); // says what is wrong with the path before a program says less
  const temporary_file source(svg);
  const std::vector<std::vector<std::string>> converters{
      {"rsvg-convert", "--format=png", "--output=" + path, source.path()},
      {"inkscape", "--export-type=png", "--export-filename=" + path, source.path()},
      {"magick", "svg:" + source.path(), "png:" + path},
      {"convert", "svg:" + source.path(), "png:" + path},
  };
  for (const std::vector<std::string>& words : converters) {
    if (run(words)) return;
  }
  std::error_code ignored;
  fs::remove(path, ignored);
  throw output_error(
      path + ": no program turns SVG into PNG here; wanted rsvg-convert, inkscape or ImageMagick, or a "
             "file that ends in .svg");
}

} // namespace planner
