#include "run_command.hpp"

#include "json_output.hpp"
#include "memory_check.hpp"
#include "operations.hpp"
#include "plan_command.hpp"
#include "poisoned_backend.hpp"
#include "promise.hpp"
#include "run_memory.hpp"
#include "table_output.hpp"

#include <stowage/arena.hpp>
#include <stowage/count.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace planner {
namespace {

using stowage::tokens;
using stowage::llm::forward_buffers;
using stowage::llm::forward_plan;

// What the handles of an arena say of the rows of its tokens: worked out in another way than the
// passes.

/// Calls visit(handle) for every tensor in the row buffers; rows are tokens.
template <class Visit> void visit_row_tensors(const forward_buffers& buffers, const Visit& visit) {
  namespace llm = stowage::llm;
  visit(buffers.hidden_states);
  visit(buffers.residual);
  visit(buffers.norm_output);
  visit(buffers.qkv_output);
  visit(buffers.attn_output.as<llm::attention_output>());
  visit(buffers.attn_output.as<llm::mamba_output>());
  visit(buffers.attn_output.as<llm::latent_output>());
  visit(buffers.gate_logits);
  visit(buffers.moe_output);
  visit(buffers.ssm_qkvz.as<llm::gdn_qkvz>());
  visit(buffers.ssm_qkvz.as<llm::mamba_in_proj>());
  visit(buffers.ssm_qkvz.as<llm::key_value_parts>().keys);
  visit(buffers.ssm_qkvz.as<llm::key_value_parts>().values);
  visit(buffers.ssm_qkvz.as<llm::shared_expert_inner>());
  visit(buffers.ssm_ba.as<llm::gdn_ba>());
  visit(buffers.ssm_ba.as<llm::moe_latent_input>());
  visit(buffers.ssm_ba.as<llm::latent_rope_keys>());
  visit(buffers.ssm_ba.as<llm::latent_queries>());
  visit(buffers.ssm_deinterleaved.as<llm::gdn_qkvz>());
  visit(buffers.ssm_deinterleaved.as<llm::mamba_xbc>());
  visit(buffers.ssm_deinterleaved.as<llm::attention_output>());
  visit(buffers.ssm_deinterleaved.as<llm::latent_output>());
  visit(buffers.ssm_gates);
  visit(buffers.ssm_conv_out_f32.as<llm::gdn_conv_output>());
  visit(buffers.ssm_conv_out_f32.as<llm::latent_rope_queries>());
  visit(buffers.expert_gate_out);
  visit(buffers.expert_up_out);
  visit(buffers.expert_down_out);
}

/// Whether every byte in the rows of the first `count` tokens is `value`.
bool rows_are(const forward_buffers& buffers, std::size_t count, std::byte value) {
  bool all = true;
  visit_row_tensors(buffers, [&](const auto& tensor) {
    const std::span<const std::byte> rows =
        std::as_bytes(tensor.rows(0, std::min(count, tensor.row_count())));
    all = all && count_bytes(rows, value) == rows.size();
  });
  return all;
}

// The passes.

/// For passes that are not looked at through the handles.
constexpr auto no_check = [] { return std::string{}; };

/// Compares what a pass promised with what the memory says. `check` says what is off as the handles see it.
/// Then what is not poison any more becomes poison for the next pass.
template <class Check>
void compare(pass_report& report, const forward_arena& arena, const promise& promised, const Check& check) {
  const std::string seen_by_handles = check();
  for (std::size_t field = 0; field < forward_plan::field_count; ++field) {
    if (!arena.plan().present(field)) continue;
    const std::vector<byte_range>& ranges = promised.cleared[field];
    const std::span<std::byte> memory{arena.address(field), arena.plan().bytes(field)};
    const memory_state state = check_memory(memory, ranges);
    for (const byte_range& range : ranges) {
      fill_with_poison(memory.subspan(range.begin, range.end - range.begin));
    }
    if (state.touched != 0) fill_with_poison(memory);
    report.promised_bytes += size_of(ranges);
    report.cleared_bytes += state.cleared;
    if (!report.ok() || (state.missed == 0 && state.touched == 0)) continue;
    report.problem = std::string{forward_plan::name(field)}
                         .append(": ")
                         .append(std::to_string(state.missed))
                         .append(" promised bytes are not cleared, ")
                         .append(std::to_string(state.touched))
                         .append(" others are touched");
  }
  if (report.ok()) report.problem = seen_by_handles;
}

/// The arena under test, and whether a device does its passes.
struct tested {
  forward_arena& arena;
  bool on_device = false;

  /// Seconds of a pass. On a device it is done twice, and the first time brings the memory there.
  template <class Pass> double time(const Pass& pass) const {
    const auto once = [&] {
      const auto start = std::chrono::steady_clock::now();
      pass();
      if (on_device) arena.backend().synchronize({});
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    if (on_device) once();
    return once();
  }
};

template <class Pass, class Check = decltype(no_check)>
pass_report verify(pass_report report, const tested& under_test, const promise& promised, const Pass& pass,
                   const Check& check = no_check) {
  forward_arena& arena = under_test.arena;
  report.problem = promised.problem;
  if (!report.ok()) return report;
  try {
    report.seconds = under_test.time(pass);
  } catch (const std::exception& error) {
    report.problem = error.what();
  }
  compare(report, arena, promised, check);
  return report;
}

pass_report verify_construction(const forward_arena& arena) {
  pass_report report{.kind = pass_kind::construction};
  compare(report, arena,
          whole_fields(arena.plan(), {forward_plan::index_of<&forward_buffers::norm_unit_w>()}), no_check);
  return report;
}

pass_report verify_first_rows(const tested& under_test, std::size_t count) {
  forward_arena& arena = under_test.arena;
  return verify(
      {.kind = pass_kind::zero_rows, .last = count}, under_test, first_rows(arena.plan(), count),
      [&] { arena.zero_rows({}, tokens{count}); },
      [&]() -> std::string {
        return rows_are(arena.fields(), count, std::byte{0}) ? "" : "rows of these tokens are not cleared";
      });
}

pass_report verify_later_rows(const tested& under_test, std::size_t first, std::size_t last) {
  forward_arena& arena = under_test.arena;
  return verify(
      {.kind = pass_kind::zero_row_range, .first = first, .last = last}, under_test,
      later_rows(arena.plan(), first, last), [&] { arena.zero_rows({}, tokens{first}, tokens{last}); },
      [&]() -> std::string {
        return rows_are(arena.fields(), first, poison) ? "" : "rows of the tokens before these are touched";
      });
}

std::string verify_release(forward_arena& arena) {
  if (const stowage::status status = arena.release(); !status.ok()) return status.message();
  if (arena.slab() != nullptr || arena->hidden_states) return "the arena still points at its memory";
  if (!arena.release().ok()) return "a second release fails";
  return check_refusals_after_release(arena);
}

/// Tokens of the row passes.
std::vector<std::size_t> token_counts(const options& wanted) {
  if (wanted.tokens) return {static_cast<std::size_t>(*wanted.tokens)};
  const auto capacity = static_cast<std::size_t>(wanted.max_batch_tokens);
  std::vector<std::size_t> counts{1, 17};
  if (std::find(counts.begin(), counts.end(), capacity) == counts.end()) counts.push_back(capacity);
  return counts;
}

} // namespace

run_report verify_passes(const options& wanted, const forward_plan& plan, stowage::any_backend memory,
                         const progress_callback& progress) {
  run_report report;
  report.plan = report_plan(wanted, plan);
  const std::size_t capacity = plan.params().max_batch_tokens.value;
  const std::vector<std::size_t> counts = token_counts(wanted);
  const auto ranges = static_cast<std::size_t>(
      std::count_if(counts.begin(), counts.end(), [capacity](std::size_t each) { return each < capacity; }));
  const std::size_t steps = 4 + counts.size() + ranges;
  std::size_t done = 0;
  const auto next = [&](std::string_view what) {
    if (progress) progress(what, done, steps);
    ++done;
  };

  next("allocate and poison");
  forward_arena arena(plan, poisoned_backend(memory));
  const tested under_test{arena, wanted.backend == backend_kind::cuda};
  if (under_test.on_device) arena.backend().synchronize({}); // before the host looks
  report.passes.push_back(verify_construction(arena));
  next("zero everything");
  report.passes.push_back(
      verify({.kind = pass_kind::zero_all}, under_test, zeroed_fields(plan), [&] { arena.zero_all(); }));
  for (const std::size_t count : counts) {
    next("zero rows");
    report.passes.push_back(verify_first_rows(under_test, count));
    if (count >= capacity) continue;
    // The batch sizes that graphs are captured for.
    constexpr std::size_t bucket = 64;
    next("zero rows");
    report.passes.push_back(
        verify_later_rows(under_test, count, std::min((count / bucket + 1) * bucket, capacity)));
  }
  next("zero prefill essentials");
  report.passes.push_back(verify({.kind = pass_kind::prefill_essentials}, under_test,
                                 prefill_essentials(plan),
                                 [&] { arena.zero_tagged<stowage::llm::prefill_essentials>(); }));
  next("operations");
  report.operations = verify_operations(arena);
  report.release_problem = verify_release(arena);
  if (progress) progress("done", steps, steps);
  return report;
}

run_result run_command(const options& wanted, const progress_callback& progress) {
  model_plan planned = plan_model(wanted);
  run_report report =
      with_memory(wanted.backend, planned.plan.slab_bytes(), [&](stowage::any_backend memory) {
        return verify_passes(wanted, planned.plan, memory, progress);
      });
  report.plan.missing = std::move(planned.missing);
  return {wanted.format == output_format::json ? run_as_json(report) : run_as_table(report), report.ok()};
}

} // namespace planner
