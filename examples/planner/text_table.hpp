#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace planner {

enum class alignment : unsigned char { left, right };

/// Rows of cells, written in columns that are as wide as their widest cell.
class text_table {
public:
  explicit text_table(std::vector<alignment> columns) : columns_(std::move(columns)) {}

  /// A cell for each column, or fewer: the last one given may be as wide as it likes. Cells are ASCII.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  [[nodiscard]] std::string text() const;

private:
  std::vector<alignment> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// `digits` behind the point.
std::string fixed_text(double number, int digits);

/// 17 significant digits at most: any double as it is, and integers up to 10^17 as such.
std::string exact_text(double number);

/// "1.5 GiB"; below 1024 "7 B".
std::string human_bytes(std::size_t bytes);

/// A long shape on several lines that are at most `width` wide where it can be broken: behind the commas
/// between parts and before the bars between alternatives. Brackets stay whole.
std::vector<std::string> wrap_shape(std::string_view shape, std::size_t width);

} // namespace planner
