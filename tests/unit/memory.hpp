#pragma once

// What several unit tests do with memory.

#include <stowage/detail/address_sanitizer.hpp>

#include <cstddef>
#include <cstring>
#include <vector>

namespace test {

/// What a test writes into memory before a pass, to see what the pass clears.
inline constexpr std::byte poison{0xab};

/// Lets a test look at and write to the padding between fields, which builds with AddressSanitizer forbid
/// until the next pass is over.
inline void permit([[maybe_unused]] const void* address, [[maybe_unused]] std::size_t bytes) {
#if STOWAGE_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(address, bytes);
#endif
}

inline void poison_bytes(void* address, std::size_t bytes) {
  permit(address, bytes);
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
  permit(address, bytes);
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
