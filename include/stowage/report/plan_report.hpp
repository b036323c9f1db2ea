#pragma once

#include <stowage/count.hpp>
#include <stowage/report/field_report.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stowage::inline v0_1 {

/// What the reports of a plan are written from. Nothing in it depends on the types of the plan.
struct plan_report {
  /// In declaration order.
  std::vector<field_report> fields;
  /// Sum of all fields, without padding.
  std::size_t total_bytes = 0;
  /// Bytes of the one allocation.
  std::size_t slab_bytes = 0;
  /// Its alignment, in bytes.
  std::size_t slab_alignment = 1;
  /// The plan's hash: the same for the same layout.
  std::uint64_t hash = 0;
  /// What zeroing everything clears.
  std::size_t zero_all_bytes = 0;
  /// The tokens of a row pass, and what it clears; absent and 0 where none was asked for.
  std::optional<std::size_t> tokens{};
  /// What a row pass over `tokens` clears; 0 where none was asked for.
  std::size_t zero_rows_bytes = 0;

  /// Fields that take memory.
  [[nodiscard]] std::size_t present_fields() const {
    std::size_t count = 0;
    for (const field_report& field : fields) count += field.present() ? 1U : 0U;
    return count;
  }
  /// "0x" and 16 digits.
  [[nodiscard]] std::string hash_text() const {
    std::string text{"0x"};
    for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[hash >> shift & 0xfU];
    return text;
  }
};

namespace detail {

template <class Fields, class Params>
STOWAGE_NOINLINE plan_report report_of(const plan<Fields, Params>& plan, std::optional<std::size_t> count) {
  plan_report report;
  report.fields.reserve(plan.field_count);
  for (std::size_t field = 0; field < plan.field_count; ++field) {
    report.fields.push_back(report_field(plan, field));
    if (count) report.fields.back().zero_bytes = plan.zero_bytes(field, stowage::tokens{*count});
  }
  report.total_bytes = plan.total_bytes();
  report.slab_bytes = plan.slab_bytes();
  report.slab_alignment = plan.slab_alignment();
  report.hash = plan.hash();
  report.zero_all_bytes = plan.zero_all_bytes();
  report.tokens = count;
  if (count) report.zero_rows_bytes = plan.zero_rows_bytes(stowage::tokens{*count});
  return report;
}

} // namespace detail

/// Reports a plan.
template <class Fields, class Params> plan_report make_report(const plan<Fields, Params>& plan) {
  return detail::report_of(plan, std::nullopt);
}
/// The same, with what a row pass over `count` tokens clears.
template <class Fields, class Params>
plan_report make_report(const plan<Fields, Params>& plan, tokens count) {
  return detail::report_of(plan, count.value);
}

/// Order of a report's fields.
enum class report_order : unsigned char { declaration, bytes, name };
/// Which fields a report shows: those that take memory, or those that do not.
enum class report_filter : unsigned char { all, present, absent };
/// How a report groups its fields: by zero policy, or by the name up to the last dot.
enum class report_groups : unsigned char { none, policy, prefix };

/// Which fields a report shows, in which order, and in which groups.
struct report_view {
  /// In which order.
  report_order order = report_order::declaration;
  /// Which fields.
  report_filter only = report_filter::all;
  /// In which groups.
  report_groups groups = report_groups::none;
  /// At most so many fields, the largest, which then come by bytes; 0: all.
  std::size_t largest = 0;
};

/// The fields that a view shows, by number.
inline std::vector<std::size_t> select_fields(const plan_report& report, const report_view& view) {
  std::vector<std::size_t> selected;
  for (std::size_t field = 0; field < report.fields.size(); ++field) {
    const bool present = report.fields[field].present();
    if (view.only == report_filter::all || (view.only == report_filter::present) == present)
      selected.push_back(field);
  }
  // Equal ones stay in the order of their declaration.
  const auto by_bytes = [&](std::size_t one, std::size_t other) {
    const std::size_t bytes = report.fields[one].bytes();
    const std::size_t other_bytes = report.fields[other].bytes();
    return bytes != other_bytes ? bytes > other_bytes : one < other;
  };
  const auto by_name = [&](std::size_t one, std::size_t other) {
    return report.fields[one].name < report.fields[other].name;
  };
  if (view.largest != 0 || view.order == report_order::bytes) {
    std::sort(selected.begin(), selected.end(), by_bytes);
    if (view.largest != 0 && selected.size() > view.largest) selected.resize(view.largest);
  }
  if (view.order == report_order::name) std::sort(selected.begin(), selected.end(), by_name);
  return selected;
}

/// What a view calls the group of a field: its zero policy, or its name up to the last dot, "(top)" without one.
inline std::string_view group_of(const field_report& field, report_groups groups) {
  switch (groups) {
    case report_groups::none: return {};
    case report_groups::policy: return field.policy;
    case report_groups::prefix: break;
  }
  const std::size_t dot = field.name.rfind('.');
  return dot == std::string_view::npos ? std::string_view{"(top)"} : field.name.substr(0, dot);
}

/// One group of a view; fields by number, in the view's order.
struct report_group {
  /// What the view calls it; empty where it has no groups.
  std::string_view name;
  /// Its fields, by number.
  std::vector<std::size_t> fields;
  /// Bytes of its fields, all copies together.
  std::size_t bytes = 0;
};

/// A view's fields, group by group: in the order of their first field. One group without a name where the view has none.
inline std::vector<report_group> group_fields(const plan_report& report, const report_view& view) {
  std::vector<report_group> groups;
  for (const std::size_t field : select_fields(report, view)) {
    const std::string_view name = group_of(report.fields[field], view.groups);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [name](const report_group& each) { return each.name == name; });
    if (group == groups.end()) group = groups.insert(groups.end(), report_group{name, {}, 0});
    group->fields.push_back(field);
    group->bytes += report.fields[field].bytes();
  }
  return groups;
}

} // namespace stowage::inline v0_1
