#pragma once

#include <stowage/detail/cold.hpp>

#include <cstddef>
#include <string_view>

namespace stowage::inline v0_1 {

/// Writes characters into memory that the caller owns, without heap use, in constant expressions too.
/// What does not fit is counted but not stored, so a first pass over an empty buffer measures a text.
class text_writer {
public:
  constexpr text_writer() = default;
  /// `capacity` characters at `begin` receive the text; no terminator is written.
  constexpr text_writer(char* begin, std::size_t capacity) : begin_(begin), capacity_(capacity) {}

  /// Appends one character.
  STOWAGE_NOINLINE constexpr text_writer& operator<<(char character) {
    if (size_ < capacity_) begin_[size_] = character;
    ++size_;
    return *this;
  }

  /// Appends a text.
  STOWAGE_NOINLINE constexpr text_writer& operator<<(std::string_view text) {
    for (const char character : text) *this << character;
    return *this;
  }

  /// Appends a text that ends in a zero.
  STOWAGE_NOINLINE constexpr text_writer& operator<<(const char* text) {
    return *this << std::string_view{text};
  }

  /// Appends a number in decimal.
  STOWAGE_NOINLINE constexpr text_writer& operator<<(std::size_t number) {
    char digits[20]{};
    std::size_t count = 0;
    do {
      digits[count++] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    while (count != 0) *this << digits[--count];
    return *this;
  }

  /// Characters of the whole text, stored or not.
  [[nodiscard]] constexpr std::size_t size() const { return size_; }

private:
  char* begin_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
};

/// At most `Capacity` characters, kept in the object. Longer texts are cut and end in three dots.
template <std::size_t Capacity> struct fixed_text {
  /// The characters; no terminator.
  char characters[Capacity]{};
  /// How many of them there are.
  std::size_t size = 0;

  /// The text; valid as long as this object.
  [[nodiscard]] constexpr std::string_view view() const { return {characters, size}; }
  /// The same.
  constexpr operator std::string_view() const { return view(); }
};

namespace detail {

/// Marks a text that did not fit: its last three characters become dots.
constexpr void mark_cut(char* begin, std::size_t capacity) {
  for (std::size_t dot = 1; dot <= 3 && dot <= capacity; ++dot) begin[capacity - dot] = '.';
}

} // namespace detail

/// Runs a function that writes text and keeps what it wrote.
template <std::size_t Capacity = 256, class Write> constexpr fixed_text<Capacity> write_text(Write&& write) {
  fixed_text<Capacity> text;
  text_writer writer{text.characters, Capacity};
  write(writer);
  if (writer.size() > Capacity) detail::mark_cut(text.characters, Capacity);
  text.size = writer.size() < Capacity ? writer.size() : Capacity;
  return text;
}

namespace detail {

/// The text of an error, without heap use. Longer ones are cut and end in three dots.
class message {
public:
  // No template: that would be a function for each length of a literal.
  message& operator<<(char character) { return add(writer_ << character); }
  message& operator<<(const char* text) { return add(writer_ << text); }
  message& operator<<(std::string_view text) { return add(writer_ << text); }
  message& operator<<(std::size_t number) { return add(writer_ << number); }
  [[nodiscard]] const char* c_str() const { return characters_; } // the rest is zero

private:
  message& add(const text_writer& written) {
    if (written.size() > capacity) mark_cut(characters_, capacity);
    return *this;
  }

  static constexpr std::size_t capacity = 1023;
  char characters_[capacity + 1]{};
  text_writer writer_{characters_, capacity};
};

constexpr bool is_identifier_character(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
         (character >= '0' && character <= '9') || character == '_' || character == '$' ||
         static_cast<unsigned char>(character) >= 0x80; // UTF-8
}

/// The last identifier in a compiler's signature text: the name of the member or type it was made for.
constexpr std::string_view last_identifier(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0 && !is_identifier_character(text[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_identifier_character(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

/// A compiler's signature text of the function it is taken in. With its size, since measuring hundreds of
/// characters a name in constant expressions is what a field list would spend its compile time on. No
/// std::string_view: g++ spells out typedefs of the return type behind the argument that is looked for.
struct signature {
  const char* text;
  std::size_t size;
};

template <auto Value> consteval signature value_signature() {
  return {__PRETTY_FUNCTION__, sizeof(__PRETTY_FUNCTION__) - 1};
}
template <class Type> consteval signature type_signature() {
  return {__PRETTY_FUNCTION__, sizeof(__PRETTY_FUNCTION__) - 1};
}
constexpr std::string_view last_identifier(signature from) {
  return last_identifier(std::string_view{from.text, from.size});
}

} // namespace detail
} // namespace stowage::inline v0_1
