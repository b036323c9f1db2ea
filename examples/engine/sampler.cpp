#include "sampler.hpp"

#include "kernels.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace engine {

template <class Habit>
std::uint32_t sample(const sampling_buffers<Habit>& buffers, std::size_t row, const sampling& how) {
  // Bounded, because the zeroing experiment poisons `best`.
  const std::uint32_t best =
      std::min(token_of(buffers.best.data()[row]), static_cast<std::uint32_t>(buffers.logits.extent(1) - 1));
  if (!buffers.candidates || how.temperature <= 0.0F) return best;
  const std::span<const float> logits = buffers.logits.row(row);
  const std::span<std::uint32_t> histogram = buffers.histogram.row(row);
  const std::span<std::uint32_t> candidates = buffers.candidates.row(row);
  const std::span<float> weights = buffers.weights.row(row);

  // Eight bins to one unit of a logit. The candidates are those of the first bins that hold enough of them.
  const float largest = logits[best];
  const auto bin_of = [largest](float logit) {
    const float distance = (largest - logit) * 8.0F;
    return distance < static_cast<float>(sampling_bins) ? static_cast<std::size_t>(std::max(distance, 0.0F))
                                                        : sampling_bins - 1; // one that is not finite too
  };
  for (const float logit : logits) ++histogram[bin_of(logit)];
  std::size_t below = 0; // candidates in the bins before the last one that is used
  std::size_t last_bin = 0;
  while (last_bin + 1 < sampling_bins && below + histogram[last_bin] < candidates.size())
    below += histogram[last_bin++];
  std::size_t count = 0;
  for (const bool whole : {true, false}) {
    for (std::size_t token = 0; token < logits.size() && count < candidates.size(); ++token) {
      const std::size_t bin = bin_of(logits[token]);
      if (whole ? bin < last_bin : bin == last_bin) candidates[count++] = static_cast<std::uint32_t>(token);
    }
  }

  float sum = 0.0F;
  for (std::size_t index = 0; index < count; ++index)
    sum += weights[index] = std::exp((logits[candidates[index]] - largest) / how.temperature);
  float left = how.uniform * sum;
  for (std::size_t index = 0; index < count; ++index) {
    left -= weights[index];
    if (left < 0.0F) return candidates[index];
  }
  return best;
}
template std::uint32_t sample(const sampling_buffers<stowage::zero::never>&, std::size_t, const sampling&);
template std::uint32_t sample(const sampling_buffers<stowage::zero::rows>&, std::size_t, const sampling&);

} // namespace engine
