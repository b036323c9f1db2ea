#pragma once

// What generate.py wrote, read back: numbers and words between blanks.

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <istream>
#include <stdexcept>
#include <string>

namespace property {

inline std::ifstream open(const std::string& name) {
  std::ifstream file(STOWAGE_PROPERTY_DATA "/" + name);
  if (!file) throw std::runtime_error("cannot open " + name);
  return file;
}

template <class Type> Type next(std::istream& input) {
  Type value{};
  if (!(input >> value)) throw std::runtime_error("the data of the property tests ends too early");
  return value;
}
inline std::size_t next_size(std::istream& input) { return next<std::size_t>(input); }

/// A number of 64 bits and its sign.
struct signed_number {
  std::size_t magnitude = 0;
  bool negative = false;
};
inline signed_number next_signed(std::istream& input) {
  const auto word = next<std::string>(input);
  const bool negative = word.front() == '-';
  return {static_cast<std::size_t>(std::stoull(negative ? word.substr(1) : word)), negative};
}

/// What a formula must give: a value, or a fault with its operands.
struct outcome {
  bool has_value = false;
  std::size_t value = 0;
  std::string kind;
  char operation = ' ';
  std::size_t left = 0;
  std::size_t right = 0;
  std::string input;
};
inline outcome next_outcome(std::istream& input) {
  outcome result;
  if (next<std::string>(input) == "v") {
    result.has_value = true;
    result.value = next_size(input);
    return result;
  }
  result.kind = next<std::string>(input);
  result.operation = next<char>(input);
  result.left = next_size(input);
  result.right = next_size(input);
  result.input = next<std::string>(input);
  if (result.input == "-") result.input.clear();
  return result;
}

} // namespace property
