#include "text_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <utility>

namespace planner {

std::string text_table::text() const {
  std::vector<std::size_t> widths(columns_.size());
  for (const std::vector<std::string>& row : rows_) {
    // The last cell pushes nothing aside, unless it stands in the last column.
    const std::size_t aligned = row.size() == columns_.size() ? row.size() : row.empty() ? 0 : row.size() - 1;
    for (std::size_t column = 0; column < aligned; ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }

  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (std::size_t column = 0; column < row.size(); ++column) {
      const std::string& cell = row[column];
      const std::string padding(widths[column] - std::min(widths[column], cell.size()), ' ');
      if (column != 0) line += "  ";
      line += columns_[column] == alignment::right ? padding + cell : cell + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string fixed_text(double number, int digits) {
  std::array<char, 400> buffer{}; // the largest double has 309 digits
  const std::to_chars_result result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::fixed, digits);
  return result.ec == std::errc{} ? std::string(buffer.data(), result.ptr) : "?";
}

std::string exact_text(double number) {
  std::array<char, 32> buffer{};
  const std::to_chars_result result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::general, 17);
  return result.ec == std::errc{} ? std::string(buffer.data(), result.ptr) : "?";
}

std::string human_bytes(std::size_t bytes) {
  constexpr std::array units{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double number = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (number >= 1023.95 && unit + 1 < units.size()) { // what would be written as 1024.0
    number /= 1024;
    ++unit;
  }
  return fixed_text(number, 1) + " " + units[unit];
}

std::vector<std::string> wrap_shape(std::string_view shape, std::size_t width) {
  std::vector<std::string> lines{1};
  std::size_t begin = 0;
  int brackets = 0;
  const auto take = [&](std::size_t end) {
    std::string_view piece = shape.substr(begin, end - begin);
    begin = end;
    if (!lines.back().empty() && lines.back().size() + piece.size() > width) {
      lines.back().erase(lines.back().find_last_not_of(' ') + 1);
      lines.emplace_back();
      piece.remove_prefix(std::min(piece.find_first_not_of(' '), piece.size()));
    }
    lines.back() += piece;
  };
  for (std::size_t at = 0; at < shape.size(); ++at) {
    if (shape[at] == '[') ++brackets;
    if (shape[at] == ']') --brackets;
    if (brackets != 0 || shape[at] != ' ' || at == 0) continue;
    if (shape[at - 1] == ',' || shape.substr(at + 1).starts_with('|')) take(at);
  }
  take(shape.size());
  return lines;
}

} // namespace planner
