#pragma once

#include <stowage/count.hpp>
#include <stowage/detail/checked.hpp>
#include <stowage/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace stowage::inline v0_1 {

/// What row passes over several token counts clear, as the plan's own formulas say. For memory maps.
struct live_rows {
  /// Bytes [begin, end) of a field, from its start.
  struct range {
    /// The first byte.
    std::size_t begin = 0;
    /// The byte behind the last one.
    std::size_t end = 0;
    friend bool operator==(const range&, const range&) = default;
  };

  /// Token counts in rising order, 0 first.
  std::vector<std::size_t> tokens;
  /// The ranges of each field, for each token count: ranges[count][field].
  std::vector<std::vector<std::vector<range>>> ranges;
  /// The place of the count that was asked for; the last one without.
  std::size_t chosen = 0;
};

namespace detail {

/// Every count up to 32, then eight steps an octave up to the capacity, which is there with its predecessor.
inline std::vector<std::size_t> token_steps(std::size_t capacity, std::optional<std::size_t> chosen) {
  std::vector<std::size_t> steps;
  for (std::size_t count = 0; count <= 32 && count <= capacity; ++count) steps.push_back(count);
  for (std::size_t octave = 32; octave < capacity && octave < largest_size / 4; octave *= 2) {
    for (std::size_t step = 1; step <= 8; ++step) steps.push_back(octave + octave / 8 * step);
  }
  if (capacity != 0) steps.push_back(capacity - 1);
  steps.push_back(capacity);
  if (chosen) steps.push_back(std::min(*chosen, capacity));
  std::erase_if(steps, [capacity](std::size_t count) { return count > capacity; });
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

} // namespace detail

/// The fewest tokens of which a row pass clears all that any row pass clears.
template <class Fields, class Params> std::size_t token_capacity(const plan<Fields, Params>& plan) {
  const std::size_t everything = plan.zero_rows_bytes(tokens{detail::largest_size});
  std::size_t below = 0;
  if (plan.zero_rows_bytes(tokens{0}) == everything) return 0;
  std::size_t enough = 1;
  while (enough < detail::largest_size / 2 && plan.zero_rows_bytes(tokens{enough}) != everything) enough *= 2;
  while (enough - below > 1) { // more tokens never clear less
    const std::size_t middle = below + (enough - below) / 2;
    (plan.zero_rows_bytes(tokens{middle}) == everything ? enough : below) = middle;
  }
  return enough;
}

/// The rows of a plan at some token counts between 0 and its capacity; `chosen` is among them.
template <class Fields, class Params>
live_rows make_live_rows(const plan<Fields, Params>& plan, std::optional<std::size_t> chosen = {}) {
  live_rows result;
  const std::size_t capacity = token_capacity(plan);
  result.tokens = detail::token_steps(capacity, chosen);
  for (const std::size_t count : result.tokens) {
    auto& fields = result.ranges.emplace_back(plan.field_count);
    plan.visit_row_pass(0, count, true, [&](std::size_t field, std::size_t begin, std::size_t end) {
      if (begin < end) fields[field].push_back({begin, end});
    });
  }
  const auto place =
      std::find(result.tokens.begin(), result.tokens.end(), std::min(chosen.value_or(capacity), capacity));
  result.chosen = static_cast<std::size_t>(place - result.tokens.begin());
  return result;
}

} // namespace stowage::inline v0_1
