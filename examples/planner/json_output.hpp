#pragma once

#include "reports.hpp"

#include <string>

namespace planner {

/// A report as a JSON object. Bytes are numbers; the hash is text, since not every reader of JSON has 64-bit
/// integers.
std::string plan_as_json(const plan_report& report);
std::string run_as_json(const run_report& report);

/// The text with a replacement character for each byte that is no UTF-8, as in the JSON: a picture or a page has to be
/// UTF-8, and a file name need not.
std::string valid_utf8(const std::string& text);

} // namespace planner
