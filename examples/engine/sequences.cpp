#include "sequences.hpp"

#include <stdexcept>
#include <string>

namespace engine {

namespace {

std::size_t pages_of(std::size_t tokens) { return (tokens + page_tokens - 1) / page_tokens; }

} // namespace

sequence_table::sequence_table(const engine_params& params, const step_parts& step)
    : step_(step), max_context_(params.max_context), max_tokens_(params.max_tokens.value),
      pages_each_(step.pages.extent(1)), lengths_(params.max_sequences.value),
      open_(params.max_sequences.value) {
  for (std::size_t page = params.cache_pages.value; page-- != 0;)
    free_pages_.push_back(static_cast<std::uint32_t>(page));
}

std::size_t sequence_table::open() {
  for (std::size_t sequence = 0; sequence < open_.size(); ++sequence) {
    if (open_[sequence]) continue;
    open_[sequence] = true;
    lengths_[sequence] = 0;
    return sequence;
  }
  throw std::runtime_error("engine: " + std::to_string(open_.size()) +
                           " sequences are open, and no more fit");
}

void sequence_table::close(std::size_t sequence) {
  for (std::size_t page = pages_of(lengths_[sequence]); page-- != 0;)
    free_pages_.push_back(step_.pages.data()[sequence * pages_each_ + page]);
  lengths_[sequence] = 0;
  open_[sequence] = false;
}

void sequence_table::require_room(std::span<const std::size_t> sequences, std::size_t tokens_each) const {
  std::size_t wanted = 0;
  for (const std::size_t sequence : sequences) {
    const std::size_t after = lengths_[sequence] + tokens_each;
    if (after > max_context_)
      throw std::runtime_error("engine: sequence " + std::to_string(sequence) + " would have " +
                               std::to_string(after) + " tokens, the context holds " +
                               std::to_string(max_context_));
    wanted += pages_of(after) - pages_of(lengths_[sequence]);
  }
  if (wanted > free_pages_.size())
    throw std::runtime_error("engine: " + std::to_string(wanted) + " pages wanted, " +
                             std::to_string(free_pages_.size()) + " are free; close a sequence");
  if (sequences.size() * tokens_each > max_tokens_)
    throw std::runtime_error("engine: more tokens than a step has rows");
}

void sequence_table::append(std::size_t sequence, std::uint32_t token, std::size_t row) {
  const std::size_t position = lengths_[sequence]++;
  if (position % page_tokens == 0) {
    step_.pages.data()[sequence * pages_each_ + position / page_tokens] = free_pages_.back();
    free_pages_.pop_back();
  }
  step_.tokens.data()[row] = token;
  step_.positions.data()[row] = static_cast<std::uint32_t>(position);
  step_.sequences.data()[row] = static_cast<std::uint32_t>(sequence);
}

void sequence_table::begin_prefill(std::size_t sequence, std::span<const std::uint32_t> tokens) {
  require_room({&sequence, 1}, tokens.size());
  for (std::size_t row = 0; row < tokens.size(); ++row) append(sequence, tokens[row], row);
  step_.rows.data()[0] = static_cast<std::uint32_t>(tokens.size());
}

void sequence_table::begin_decode(std::span<const std::size_t> sequences,
                                  std::span<const std::uint32_t> tokens) {
  require_room(sequences, 1);
  for (std::size_t row = 0; row < sequences.size(); ++row) append(sequences[row], tokens[row], row);
  step_.rows.data()[0] = static_cast<std::uint32_t>(sequences.size());
}

} // namespace engine
