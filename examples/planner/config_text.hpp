#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>

// The text of a config as JSON, and text of unknown origin in a message.

namespace planner {

/// The text on one line: what a terminal or a log could take for something else becomes a question mark.
std::string one_line(std::string_view text);

/// A parser quotes what it last read, which can be megabytes.
std::string shortened(std::string_view text, std::size_t largest_size);

/// Throws config_error: "SOURCE: PROBLEM", on one line.
[[noreturn]] void refuse(std::string_view source, std::string_view problem);

/// The document that a text is. Throws config_error where it is no JSON, is nested deeper than
/// deepest_config_nesting, or has more than most_config_values values.
nlohmann::json parse_config_text(std::string_view text, std::string_view source);

} // namespace planner
