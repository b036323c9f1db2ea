#include "memory_check.hpp"

#include <algorithm>
#include <cstring>

namespace planner {
namespace {

/// Every byte equals its successor, and so all equal the first.
bool all_are(std::span<const std::byte> bytes, std::byte value) {
  return bytes.empty() ||
         (bytes.front() == value && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

} // namespace

void fill_with_poison(std::span<std::byte> memory) {
  if (!memory.empty()) std::memset(memory.data(), std::to_integer<int>(poison), memory.size());
}

std::size_t count_bytes(std::span<const std::byte> bytes, std::byte value) {
  constexpr std::size_t block_bytes = 65536; // stays in a core's cache while its bytes are counted
  std::size_t count = 0;
  while (!bytes.empty()) {
    const std::span<const std::byte> block = bytes.first(std::min(block_bytes, bytes.size()));
    bytes = bytes.subspan(block.size());
    if (all_are(block, value)) {
      count += block.size();
    } else {
      count += static_cast<std::size_t>(std::count(block.begin(), block.end(), value));
    }
  }
  return count;
}

bool well_formed(const std::vector<byte_range>& ranges, std::size_t bytes) {
  std::size_t end = 0;
  for (const byte_range& range : ranges) {
    if (range.begin < end || range.begin >= range.end) return false;
    end = range.end;
  }
  return end <= bytes;
}

std::vector<byte_range> merged(std::vector<byte_range> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const byte_range& left, const byte_range& right) { return left.begin < right.begin; });
  std::vector<byte_range> result;
  for (const byte_range& range : ranges) {
    if (result.empty() || range.begin > result.back().end) {
      result.push_back(range);
    } else {
      result.back().end = std::max(result.back().end, range.end);
    }
  }
  return result;
}

std::size_t size_of(const std::vector<byte_range>& ranges) {
  std::size_t bytes = 0;
  for (const byte_range& range : ranges) bytes += range.end - range.begin;
  return bytes;
}

memory_state check_memory(std::span<const std::byte> memory, const std::vector<byte_range>& promised) {
  memory_state state;
  std::size_t end = 0;
  const auto check_untouched = [&](std::size_t next) {
    const std::span<const std::byte> bytes = memory.subspan(end, next - end);
    state.touched += bytes.size() - count_bytes(bytes, poison);
  };
  for (const byte_range& range : promised) {
    check_untouched(range.begin);
    end = range.end;
    const std::span<const std::byte> bytes = memory.subspan(range.begin, range.end - range.begin);
    const std::size_t cleared = count_bytes(bytes, std::byte{0});
    state.cleared += cleared;
    state.missed += bytes.size() - cleared;
  }
  check_untouched(memory.size());
  return state;
}

} // namespace planner
