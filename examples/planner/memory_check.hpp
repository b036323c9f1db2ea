#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace planner {

/// What fills memory before a pass: a cleared byte and one that was left alone look different.
inline constexpr std::byte poison{0xA5};

/// Bytes [begin, end) of a buffer.
struct byte_range {
  std::size_t begin = 0;
  std::size_t end = 0;

  friend bool operator==(const byte_range&, const byte_range&) = default;
};

/// What memory that was poisoned before a pass looks like after it.
struct memory_state {
  /// Bytes that were to be cleared and are zero, or are not.
  std::size_t cleared = 0;
  std::size_t missed = 0;
  /// Bytes that were to be left alone and are not poison any more.
  std::size_t touched = 0;
};

void fill_with_poison(std::span<std::byte> memory);

/// How many of the bytes are `value`.
std::size_t count_bytes(std::span<const std::byte> bytes, std::byte value);

/// Whether ranges are sorted, not empty, apart from each other, and within `bytes`.
bool well_formed(const std::vector<byte_range>& ranges, std::size_t bytes);

/// Well-formed ranges with the same bytes: sorted, and those that overlap or touch made one.
std::vector<byte_range> merged(std::vector<byte_range> ranges);

std::size_t size_of(const std::vector<byte_range>& ranges);

/// Looks at every byte. `promised` are the well-formed ranges that were to be cleared.
memory_state check_memory(std::span<const std::byte> memory, const std::vector<byte_range>& promised);

} // namespace planner
