#pragma once

// What several unit tests do with memory.

#include <cstddef>
#include <cstring>
#include <vector>

namespace test {

/// What a test writes into memory before a pass, to see what the pass clears.
inline constexpr std::byte poison{0xab};

inline void poison_bytes(void* address, std::size_t bytes) {
  if (bytes != 0) std::memset(address, 0xab, bytes);
}

/// A range of bytes that a pass is expected to clear.
struct range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// The first byte that is not what it should be: zero inside of `cleared`, poison outside. `bytes` if there
/// is none.
inline std::size_t first_difference(const void* address, std::size_t bytes,
                                    const std::vector<range>& cleared) {
  std::vector<std::byte> expected(bytes, poison);
  for (const range& part : cleared) {
    for (std::size_t index = part.begin; index < part.end && index < bytes; ++index)
      expected[index] = std::byte{0};
  }
  const auto* memory = static_cast<const std::byte*>(address);
  for (std::size_t index = 0; index < bytes; ++index) {
    if (memory[index] != expected[index]) return index;
  }
  return bytes;
}

} // namespace test
