#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Text for reports: numbers of bytes, and columns of cells.

namespace stowage::inline v0_1 {

namespace detail {

/// `tenths` of a unit with one digit behind the point.
inline std::string with_tenth(std::size_t tenths) {
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

/// part * times / whole, rounded, a half to the even side as printf does it.
inline std::size_t rounded_ratio(std::size_t part, std::size_t whole, std::size_t times) {
  const long double ratio =
      static_cast<long double>(part) * static_cast<long double>(times) / static_cast<long double>(whole);
  const auto down = static_cast<std::size_t>(ratio);
  const long double rest = ratio - static_cast<long double>(down);
  return down + (rest > 0.5L || (rest == 0.5L && down % 2 == 1) ? 1 : 0);
}

/// Characters of UTF-8 text, each taken to be one column wide.
inline std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (const char character : text) columns += (static_cast<unsigned char>(character) & 0xC0U) != 0x80U;
  return columns;
}

} // namespace detail

/// "1.5 GiB"; below 1024 "7 B".
inline std::string human_bytes(std::size_t bytes) {
  constexpr const char* units[]{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  std::size_t unit = 0;
  std::size_t size = 1024;
  // The next unit where this one would be written as 1024.0.
  while (unit < 5 && detail::rounded_ratio(bytes, size, 10) >= 10240) {
    ++unit;
    size *= 1024;
  }
  return detail::with_tenth(detail::rounded_ratio(bytes, size, 10)) + " " + units[unit];
}

/// Bytes with their human form: "4096 bytes (4.0 KiB)".
inline std::string bytes_text(std::size_t bytes) {
  return std::to_string(bytes) + " bytes" + (bytes < 1024 ? "" : " (" + human_bytes(bytes) + ")");
}

/// "12.5 %"; a whole of 0 has no shares.
inline std::string share_text(std::size_t part, std::size_t whole) {
  if (whole == 0) return "-";
  return detail::with_tenth(detail::rounded_ratio(part, whole, 1000)) + " %";
}

/// How a row or cell looks where colour is wanted.
enum class text_style : unsigned char { plain, bold, dim, green, yellow, blue, red };

/// `text` between the codes that a terminal takes for a style; as it is for plain.
inline std::string styled(std::string_view text, text_style style) {
  constexpr const char* codes[]{"", "1", "2", "32", "33", "34", "31"};
  if (style == text_style::plain || text.empty()) return std::string{text};
  return std::string{"\x1b["}
      .append(codes[static_cast<std::size_t>(style)])
      .append("m")
      .append(text)
      .append("\x1b[0m");
}

/// Which side a column's cells are pushed to.
enum class alignment : unsigned char { left, right };

/// Rows of cells, written in columns that are as wide as their widest cell.
class text_table {
public:
  /// One alignment for each column.
  explicit text_table(std::vector<alignment> columns, bool colour = false)
      : columns_(std::move(columns)), colour_(colour) {}

  /// A cell for each column, or fewer: the last one given may be as wide as it likes. The row has a style, or the
  /// cell in one column has.
  void add(std::vector<std::string> cells, text_style style = text_style::plain,
           std::size_t only_column = whole_row) {
    rows_.push_back({std::move(cells), style, only_column});
  }

  /// All rows, each with a line end; trailing blanks are not written.
  [[nodiscard]] std::string text() const {
    std::vector<std::size_t> widths(columns_.size());
    for (const row& each : rows_) {
      const std::size_t cells = each.cells.size();
      // The last cell pushes nothing aside, unless it stands in the last column.
      const std::size_t aligned = cells == columns_.size() ? cells : cells == 0 ? 0 : cells - 1;
      for (std::size_t column = 0; column < aligned; ++column)
        widths[column] = std::max(widths[column], detail::columns_of(each.cells[column]));
    }
    std::string text;
    for (const row& each : rows_) append(text, each, widths);
    return text;
  }

  /// In place of a column: the style goes for the whole row.
  static constexpr std::size_t whole_row = static_cast<std::size_t>(-1);

private:
  struct row {
    std::vector<std::string> cells;
    text_style style;
    std::size_t only_column;
  };

  void append(std::string& text, const row& each, const std::vector<std::size_t>& widths) const {
    std::size_t last = each.cells.size(); // trailing blanks are not written
    while (last > 0 && each.cells[last - 1].empty()) --last;
    for (std::size_t column = 0; column < last; ++column) {
      const std::string& cell = each.cells[column];
      const std::string padding(widths[column] - std::min(widths[column], detail::columns_of(cell)), ' ');
      const bool with_style = colour_ && (each.only_column == whole_row || each.only_column == column);
      const std::string shown = with_style ? styled(cell, each.style) : cell;
      if (column != 0) text += "  ";
      text += columns_[column] == alignment::right ? padding + shown : shown;
      if (columns_[column] == alignment::left && column + 1 != last) text += padding;
    }
    text += "\n";
  }

  std::vector<alignment> columns_;
  bool colour_;
  std::vector<row> rows_;
};

/// A long shape on several lines that are at most `width` wide where it can be broken: behind the commas
/// between parts and before the bars between alternatives. Brackets stay whole.
inline std::vector<std::string> wrap_shape(std::string_view shape, std::size_t width) {
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

} // namespace stowage::inline v0_1
