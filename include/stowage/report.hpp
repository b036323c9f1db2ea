#pragma once

// Plans for people and tools: as a table, JSON, CSV, a picture (SVG) or a page (HTML). All of them return a
// std::string and need nothing but the standard library:
//
//   const stowage::plan_report report = stowage::make_report(plan);
//   std::fputs(stowage::to_table(report).c_str(), stdout);

#include <stowage/report/csv.hpp>
#include <stowage/report/field_report.hpp>
#include <stowage/report/html.hpp>
#include <stowage/report/json.hpp>
#include <stowage/report/live_rows.hpp>
#include <stowage/report/plan_report.hpp>
#include <stowage/report/svg.hpp>
#include <stowage/report/table.hpp>
