#pragma once

#include <cstddef>
#include <functional>
#include <optional>

// Searches among the values of one number, right for sizes that do not always grow with it.

namespace planner {

/// The bytes of a value; the largest number where there is no plan for it.
using bytes_of_value = std::function<std::size_t(std::size_t value)>;
/// The fewest bytes of all values from `first` to `last`, or less.
using bytes_of_range = std::function<std::size_t(std::size_t first, std::size_t last)>;

/// The largest value from `first` to `last` that takes at most `budget` bytes; nothing where none does.
std::optional<std::size_t> largest_fit(std::size_t first, std::size_t last, std::size_t budget,
                                       const bytes_of_value& bytes, const bytes_of_range& least);

/// The smallest of all values that take the fewest bytes.
std::size_t smallest_value(std::size_t first, std::size_t last, const bytes_of_value& bytes,
                           const bytes_of_range& least);

} // namespace planner
