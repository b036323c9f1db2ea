#pragma once

#include <stowage/report/text_table.hpp>

#include <string>

namespace planner {

// The library's, which its own tables are written with.
using stowage::alignment;
using stowage::human_bytes;
using stowage::text_style;
using stowage::text_table;
using stowage::wrap_shape;

/// `digits` behind the point.
std::string fixed_text(double number, int digits);

/// 17 significant digits at most: any double as it is, and integers up to 10^17 as such.
std::string exact_text(double number);

} // namespace planner
