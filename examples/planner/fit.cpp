#include "fit.hpp"

namespace planner {

std::optional<std::size_t> largest_fit(std::size_t first, std::size_t last, std::size_t budget,
                                       const bytes_of_value& bytes, const bytes_of_range& least) {
  if (least(first, last) > budget) return std::nullopt;
  if (first == last) return bytes(first) <= budget ? std::optional{first} : std::nullopt;
  const std::size_t middle = first + (last - first) / 2;
  if (const auto found = largest_fit(middle + 1, last, budget, bytes, least)) return found;
  return largest_fit(first, middle, budget, bytes, least);
}

namespace {

void improve(std::size_t first, std::size_t last, const bytes_of_value& bytes, const bytes_of_range& least,
             std::size_t& best, std::size_t& best_bytes) {
  if (least(first, last) >= best_bytes) return;
  if (first == last) {
    const std::size_t found = bytes(first);
    if (found < best_bytes) {
      best = first;
      best_bytes = found;
    }
    return;
  }
  const std::size_t middle = first + (last - first) / 2;
  improve(first, middle, bytes, least, best, best_bytes);
  improve(middle + 1, last, bytes, least, best, best_bytes);
}

} // namespace

std::size_t smallest_value(std::size_t first, std::size_t last, const bytes_of_value& bytes,
                           const bytes_of_range& least) {
  std::size_t best = first;
  std::size_t best_bytes = bytes(first);
  improve(first, last, bytes, least, best, best_bytes);
  return best;
}

} // namespace planner
