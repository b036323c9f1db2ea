#pragma once

#include "poisoned_backend.hpp"
#include "reports.hpp"

#include <stowage/arena.hpp>
#include <stowage/llm/forward_arena.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace planner {

/// The arena that `stowage run` looks into.
using forward_arena = stowage::llm::forward_arena<poisoned_backend>;

/// Does what an engine does with an arena besides zeroing, and checks it against the sizes and offsets of the
/// fact sheet, worked out here without the library's formulas: checksums, the slab of row-wise weights,
/// decode metadata, the experts' FP8 scratch and batched prefills. Overwrites the buffers on the checksum
/// list.
operations_report verify_operations(forward_arena& arena);

/// What is off with an arena that has been released, for it refuses passes and carvings; empty where nothing
/// is.
std::string check_refusals_after_release(forward_arena& arena);

// For the tests.

/// Sums over f32 lanes, exact: all of them are integers.
struct lane_sums {
  double sum = 0;
  double squares = 0;
  double magnitudes = 0;

  friend bool operator==(const lane_sums&, const lane_sums&) = default;
};

/// Fills memory with small integers as f32 lanes, otherwise for every `seed`; bytes behind the last whole
/// lane are left alone.
void fill_with_numbers(std::span<std::byte> memory, std::size_t seed);

/// The sums over so many lanes of that, in closed form.
lane_sums sums_of_numbers(std::size_t lanes, std::size_t seed);

/// What is off with a layout of `rows` rows and `blocks` blocks each; empty where nothing is.
std::string check_decode_metadata(const stowage::llm::decode_metadata_layout& layout, std::size_t rows,
                                  std::size_t blocks);

/// Memory that is handed out piece by piece, and what it looks like so far.
class pieces {
public:
  explicit pieces(std::span<const std::byte> memory) : memory_(memory) {}

  /// Whether a piece lies behind all earlier ones, within the memory, at a multiple of `alignment`. One of 0
  /// bytes lies nowhere.
  [[nodiscard]] bool add(std::span<const std::byte> piece, std::size_t alignment = 1);
  /// Bytes of all pieces.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

private:
  std::span<const std::byte> memory_;
  std::size_t end_ = 0;
  std::size_t bytes_ = 0;
};

} // namespace planner
