#include "config_text.hpp"

#include "config_reader.hpp"

#include <string>

namespace planner {
namespace {

using nlohmann::json;

/// Bytes of the character that a text begins with; 0 where that is a control character, a line separator or
/// no well-formed UTF-8.
std::size_t printable_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  if (first < 0xC2 || first > 0xF4) return 0;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (text.size() < length) return 0;
  unsigned character = first & (0xFFu >> (length + 1));
  for (std::size_t index = 1; index < length; ++index) {
    const auto next = static_cast<unsigned char>(text[index]);
    if ((next & 0xC0u) != 0x80u) return 0;
    character = character << 6 | (next & 0x3Fu);
  }
  const bool overlong = (length == 3 && character < 0x800) || (length == 4 && character < 0x10000);
  const bool surrogate = character >= 0xD800 && character <= 0xDFFF;
  const bool breaks_line = character < 0xA0 || character == 0x2028 || character == 0x2029;
  return overlong || surrogate || breaks_line || character > 0x10FFFF ? 0 : length;
}

/// Reads a text without keeping it, so that syntax and nesting are known before anything is built from them.
class syntax_check final : public nlohmann::json_sax<json> {
public:
  [[nodiscard]] bool too_deep() const { return depth_ > deepest_config_nesting; }
  [[nodiscard]] bool too_many() const { return values_ > most_config_values; }
  [[nodiscard]] std::string_view problem() const { return problem_; }

  bool null() override { return count(); }
  bool boolean(bool) override { return count(); }
  bool number_integer(json::number_integer_t) override { return count(); }
  bool number_unsigned(json::number_unsigned_t) override { return count(); }
  bool number_float(json::number_float_t, const json::string_t&) override { return count(); }
  bool string(json::string_t&) override { return count(); }
  bool binary(json::binary_t&) override { return count(); }
  bool key(json::string_t&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const json::exception& error) override {
    problem_ = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    const std::size_t bracket = problem_.find("] ");
    if (problem_.starts_with('[') && bracket != std::string::npos) problem_.erase(0, bracket + 2);
    return false;
  }

private:
  bool count() {
    ++values_;
    return !too_many();
  }
  bool open() {
    ++depth_;
    return count() && !too_deep();
  }
  bool close() {
    --depth_;
    return true;
  }

  std::size_t depth_ = 0;
  std::size_t values_ = 0;
  std::string problem_;
};

} // namespace

std::string one_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = printable_length(text);
    if (length == 0) {
      line.push_back('?');
      text.remove_prefix(1);
    } else {
      line.append(text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  return line;
}

std::string shortened(std::string_view text, std::size_t largest_size) {
  if (text.size() <= largest_size) return std::string{text};
  return std::string{text.substr(0, largest_size)}.append("...");
}

void refuse(std::string_view source, std::string_view problem) {
  throw config_error(one_line(std::string{source}.append(": ").append(problem)));
}

json parse_config_text(std::string_view text, std::string_view source) {
  // The parser would take a zero byte for the end of the text. No JSON has one; UTF-16 has many.
  const std::size_t zero = text.find('\0');
  if (zero != std::string_view::npos) {
    refuse(source,
           "cannot be read as JSON: byte " + std::to_string(zero + 1) + " is zero; wanted UTF-8 text");
  }
  syntax_check check;
  if (!json::sax_parse(text, &check)) {
    if (check.too_deep()) {
      refuse(source, "nested deeper than " + std::to_string(deepest_config_nesting) + " arrays and objects");
    }
    if (check.too_many()) {
      refuse(source, "has more than " + std::to_string(most_config_values) +
                         " values; wanted the config.json of a model");
    }
    refuse(source, "cannot be read as JSON: " + shortened(check.problem(), 200));
  }
  return json::parse(text);
}

} // namespace planner
