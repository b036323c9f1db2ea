#include "text_table.hpp"

#include <array>
#include <charconv>
#include <system_error>

namespace planner {

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

} // namespace planner
