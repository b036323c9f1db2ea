#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Quantities on a command line. Each function throws option_error, which names the option, what it was given and what
// is wanted.

namespace planner {

/// An integer from 0 on, in decimal digits and nothing else.
std::int64_t parse_number(std::string_view option, std::string_view text);

/// Bytes: plain, with an exponent, or with a unit: 8GiB, 512MiB, 1.5GB, 1e9. Rounded down to whole bytes.
std::uint64_t parse_bytes(std::string_view option, std::string_view text);

/// A share: 5%, 5 or 0.5%. In percent.
long double parse_percent(std::string_view option, std::string_view text);

/// The values of a range, in rising order: 1:16384:x2 multiplies, 0:100:10 or 0:100:+10 adds, 1,2,5 lists. The end is
/// among them only where a step meets it.
std::vector<std::int64_t> parse_range(std::string_view option, std::string_view text);

/// Most values that a range may have.
inline constexpr std::size_t most_range_values = 1000;

/// An argument as a message shows it: one that is too long is cut.
std::string in_quotes(std::string_view text);

/// Throws option_error: "OPTION: is 'TEXT' (WHY); wanted WANTED".
[[noreturn]] void refuse_value(std::string_view option, std::string_view text, std::string_view why,
                               std::string_view wanted);

} // namespace planner
