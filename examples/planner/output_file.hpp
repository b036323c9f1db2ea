#pragma once

#include <iosfwd>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace planner {

/// A result cannot be written. One line.
class output_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Writes to a stream that messages call `where`. Throws output_error.
void write(std::ostream& out, std::string_view text, std::string_view where);

/// Refuses to write onto a file that is read: throws output_error where `path` is one of `inputs`, the config.json in
/// one, or the file that is standard input where one is "-".
void check_output(const std::string& path, std::span<const std::string> inputs);

/// Refuses two results in one file: throws output_error.
void check_two_outputs(const std::string& output, const std::string& plot);

/// Writes a file, or to `out` where `path` is empty. Throws output_error.
void write_result(const std::string& path, std::string_view text, std::ostream& out);

/// Writes a picture that is SVG text: as it is, or turned into a PNG by a program of the system where the path ends in
/// .png. Throws output_error, also where there is no such program.
void write_picture(const std::string& path, const std::string& svg);

} // namespace planner
