#include "promise.hpp"

#include <stowage/count.hpp>
#include <stowage/report/field_report.hpp>

#include <utility>

namespace planner {

using stowage::tokens;
using stowage::llm::forward_buffers;
using stowage::llm::forward_plan;

namespace {

promise reached_rows(const forward_plan& plan, std::size_t first, std::size_t last, bool with_full) {
  promise result;
  plan.visit_row_pass(first, last, with_full, [&](std::size_t field, std::size_t begin, std::size_t end) {
    result.cleared[field].push_back({begin, end});
  });
  for (std::size_t field = 0; field < forward_plan::field_count; ++field) {
    result.expect(well_formed(result.cleared[field], plan.bytes(field)), plan.name(field),
                  "the ranges of the row pass are out of order or out of bounds");
  }
  return result;
}

} // namespace

promise whole_fields(const forward_plan& plan, const std::vector<std::size_t>& fields) {
  promise result;
  for (const std::size_t field : fields) {
    if (plan.present(field)) result.cleared[field].push_back({0, plan.bytes(field)});
  }
  return result;
}

promise zeroed_fields(const forward_plan& plan) {
  std::vector<std::size_t> fields;
  for (std::size_t field = 0; field < forward_plan::field_count; ++field) {
    if (stowage::report_field(plan, field).policy != "never") fields.push_back(field);
  }
  promise result = whole_fields(plan, fields);
  std::size_t bytes = 0;
  for (const std::vector<byte_range>& ranges : result.cleared) bytes += size_of(ranges);
  result.expect(bytes == plan.zero_all_bytes(), "plan",
                "zero_all_bytes() is another sum than that of its buffers");
  return result;
}

promise prefill_essentials(const forward_plan& plan) {
  return whole_fields(plan, {forward_plan::index_of<&forward_buffers::hidden_states>(),
                             forward_plan::index_of<&forward_buffers::residual>(),
                             forward_plan::index_of<&forward_buffers::gate_logits>(),
                             forward_plan::index_of<&forward_buffers::moe_output>(),
                             forward_plan::index_of<&forward_buffers::expert_gate_out>(),
                             forward_plan::index_of<&forward_buffers::expert_up_out>(),
                             forward_plan::index_of<&forward_buffers::expert_down_out>()});
}

promise first_rows(const forward_plan& plan, std::size_t count) {
  promise result = reached_rows(plan, 0, count, true);
  std::size_t total = 0;
  for (std::size_t field = 0; field < forward_plan::field_count; ++field) {
    const std::size_t bytes = size_of(result.cleared[field]);
    total += bytes;
    result.expect(bytes == plan.zero_bytes(field, tokens{count}), plan.name(field),
                  "the ranges of the row pass have other bytes than zero_bytes()");
  }
  result.expect(total == plan.zero_rows_bytes(tokens{count}), "plan",
                "the ranges of the row pass have other bytes than zero_rows_bytes()");
  if (count > 0 && count >= plan.params().max_batch_tokens.value) {
    result.expect(result.cleared == zeroed_fields(plan).cleared, "plan",
                  "a row pass over all tokens does not clear everything");
  }
  return result;
}

promise later_rows(const forward_plan& plan, std::size_t first, std::size_t last) {
  promise result = reached_rows(plan, first, last, false);
  const promise before = reached_rows(plan, 0, first, false);
  const promise together = reached_rows(plan, 0, last, false);
  for (std::size_t field = 0; field < forward_plan::field_count; ++field) {
    std::vector<byte_range> ranges = result.cleared[field];
    ranges.insert(ranges.end(), before.cleared[field].begin(), before.cleared[field].end());
    result.expect(merged(std::move(ranges)) == merged(together.cleared[field]), plan.name(field),
                  "row passes over two ranges do not clear what one over both does");
  }
  return result;
}

} // namespace planner
