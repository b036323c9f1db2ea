// Who is being served: the sequences, the pages of the cache that each has, and the metadata of the next step.
#pragma once

#include "buffers.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace engine {

class sequence_table {
public:
  /// `step` is written before each step; it lies in memory of the host.
  sequence_table(const engine_params& params, const step_parts& step);

  /// A new sequence. Throws std::runtime_error where max_sequences are open.
  std::size_t open();
  /// Forgets a sequence and gives its pages back.
  void close(std::size_t sequence);
  [[nodiscard]] std::size_t length(std::size_t sequence) const { return lengths_[sequence]; }

  /// Writes the metadata of a step that appends tokens to one sequence, or one token to each of several, and takes
  /// the pages that they need. Throws std::runtime_error, before anything changes, where context or pages run out.
  void begin_prefill(std::size_t sequence, std::span<const std::uint32_t> tokens);
  void begin_decode(std::span<const std::size_t> sequences, std::span<const std::uint32_t> tokens);

private:
  void append(std::size_t sequence, std::uint32_t token, std::size_t row);
  void require_room(std::span<const std::size_t> sequences, std::size_t tokens_each) const;

  step_parts step_;
  std::size_t max_context_, max_tokens_, pages_each_;
  std::vector<std::uint32_t> free_pages_;
  std::vector<std::size_t> lengths_;
  std::vector<bool> open_;
};

} // namespace engine
