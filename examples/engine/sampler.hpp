// Chooses the next token among the best ones.
#pragma once

#include "buffers.hpp"

#include <cstdint>

namespace engine {

/// How the next token is chosen. temperature 0, or an engine with top_k 0, takes the best one.
struct sampling {
  float temperature = 0.0F;
  float uniform = 0.0F; ///< a random number in [0, 1)
};

/// The token that row `row` of the logits is continued with. `best` of the row is the largest logit; the histogram of
/// the row is zero.
template <class Habit>
std::uint32_t sample(const sampling_buffers<Habit>& buffers, std::size_t row, const sampling& how);

} // namespace engine
