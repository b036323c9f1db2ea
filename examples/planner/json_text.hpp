#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace planner {

/// A document as the planner prints it: indented, and with a replacement character for each byte that is no UTF-8, since
/// paths can be any bytes.
std::string json_text(const nlohmann::ordered_json& document);

} // namespace planner
