#include "table_output.hpp"

#include "text_table.hpp"

#include <stowage/report/table.hpp>

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace planner {
namespace {

using stowage::bytes_text;

std::string inputs_text(const plan_report& report) {
  const stowage::llm::forward_params& params = report.params;
  std::string levers;
  for (const std::string_view name : lever_names_of(params.switches)) {
    levers.append(levers.empty() ? "" : " ").append(name);
  }
  text_table table({alignment::left, alignment::left});
  table.add({"model", report.wanted.config});
  table.add({"batch", "max_batch_tokens M = " + std::to_string(params.max_batch_tokens.value) +
                          ", max_batch_size N = " + std::to_string(params.max_batch_size)});
  table.add({"sequence", "max_seq_len S = " + std::to_string(params.max_seq_len) +
                             ", kv_block_size B = " + std::to_string(params.kv_block_size)});
  table.add({"target", "sm_count sm = " + std::to_string(params.sm_count)});
  table.add({"levers", (levers.empty() ? "none" : levers) + ", split-K " +
                           splitk_spelling_of(params.switches.splitk) + ", adapter_max_rank " +
                           std::to_string(params.adapter_max_rank)});
  for (const std::string& missing : report.missing) table.add({"missing", missing});
  return table.text();
}

std::string name_of(const pass_report& pass) {
  switch (pass.kind) {
    case pass_kind::construction: return "construction";
    case pass_kind::zero_all: return "zero everything";
    case pass_kind::zero_rows: return "zero rows, T = " + std::to_string(pass.last);
    case pass_kind::zero_row_range:
      return "zero rows, tokens [" + std::to_string(pass.first) + ", " + std::to_string(pass.last) + ")";
    case pass_kind::prefill_essentials: return "zero prefill essentials";
  }
  return "";
}

std::string result_text(const std::string& problem) { return problem.empty() ? "ok" : "failed: " + problem; }

std::string passes_text(const run_report& report) {
  text_table table({alignment::left, alignment::right, alignment::right, alignment::right, alignment::right,
                    alignment::left});
  table.add({"pass", "promised bytes", "cleared bytes", "ms", "GB/s", "result"});
  for (const pass_report& pass : report.passes) {
    const std::optional<double> rate = pass.gigabytes_per_second();
    table.add({name_of(pass), std::to_string(pass.promised_bytes), std::to_string(pass.cleared_bytes),
               pass.seconds ? fixed_text(*pass.seconds * 1e3, 3) : "-", rate ? fixed_text(*rate, 1) : "-",
               result_text(pass.problem)});
  }
  table.add({"release", "", "", "", "", result_text(report.release_problem)});
  return table.text();
}

std::string checksums_text(const checksum_report& report) {
  text_table table({alignment::left, alignment::right, alignment::right, alignment::right, alignment::right,
                    alignment::left});
  table.add({"checksum", "bytes", "sum", "squares", "magnitudes", "result"});
  for (const buffer_checksum& buffer : report.buffers) {
    const stowage::field_checksum& found = buffer.found;
    table.add({std::string{found.name}, std::to_string(found.bytes), exact_text(found.sum),
               exact_text(found.sum_of_squares), exact_text(found.sum_of_magnitudes),
               result_text(buffer.problem)});
  }
  return table.text();
}

/// What an operation found out, a line each; its last line says how a request too many is refused.
std::vector<std::string> with_refusal(std::vector<std::string> lines, const std::string& refusal) {
  if (!refusal.empty()) lines.push_back("refused: " + refusal);
  return lines;
}

std::vector<std::string> lines_of(const checksum_report& report) {
  return {"checksum of " + std::to_string(report.buffers.size()) + " buffers " +
          (report.ok() ? "ok" : "failed")};
}

std::vector<std::string> lines_of(const rowwise_report& report) {
  if (!report.absence.empty()) return with_refusal({"absent: " + report.absence}, report.refusal);
  return with_refusal({std::to_string(report.takes) + " takes of " + std::to_string(report.bytes_per_take) +
                       " bytes use up its " + bytes_text(report.bytes)},
                      report.refusal);
}

std::vector<std::string> lines_of(const decode_metadata_report& report) {
  const stowage::llm::decode_metadata_layout& layout = report.layout;
  return {std::to_string(layout.rows) + " rows, " + std::to_string(layout.bytes) + " bytes at " +
              std::to_string(report.offset) + " of scratch, which has " +
              std::to_string(report.scratch_bytes),
          "positions at " + std::to_string(layout.positions) + ", seq_slot " +
              std::to_string(layout.seq_slot) + ", slots " + std::to_string(layout.slots) + ", seq_lens " +
              std::to_string(layout.seq_lens) + ", unused " + std::to_string(layout.unused) +
              ", block_table " + std::to_string(layout.block_table)};
}

std::vector<std::string> lines_of(const moe_fp8_report& report) {
  if (!report.absence.empty()) return with_refusal({"absent: " + report.absence}, report.refusal);
  std::string line;
  for (const moe_carving& carving : report.carvings) {
    line.append(line.empty() ? "" : ", ")
        .append(std::to_string(carving.bytes))
        .append(carving.rows == 1 ? " bytes for 1 row"
                                  : " bytes for " + std::to_string(carving.rows) + " rows");
  }
  return with_refusal({std::move(line)}, report.refusal);
}

std::vector<std::string> lines_of(const batched_prefill_report& report) {
  const std::string batch = std::to_string(report.streams) + " x ";
  return with_refusal({batch + std::to_string(report.chunk) + " tokens take " + std::to_string(report.bytes) +
                       " bytes of scratch; " + batch + std::to_string(report.largest_chunk) +
                       " would fit, one more each not"},
                      report.refusal);
}

std::string operations_text(const operations_report& report) {
  text_table table({alignment::left, alignment::left, alignment::left});
  table.add({"operations", "result", ""});
  const auto add = [&table](std::string name, const auto& operation) {
    std::vector<std::string> lines = lines_of(operation);
    if (!operation.ok()) lines.push_back("problem: " + operation.problem);
    std::string result = operation.ok() ? "ok" : "failed";
    for (std::string& line : lines) {
      table.add({std::exchange(name, ""), std::exchange(result, ""), std::move(line)});
    }
  };
  add("checksum", report.checksum);
  add("rowwise slab", report.rowwise);
  add("decode metadata", report.decode_metadata);
  add("MoE FP8 scratch", report.moe_fp8);
  add("batched prefill", report.batched_prefill);
  return table.text();
}

} // namespace

std::string plan_as_table(const plan_report& report) {
  std::string text =
      inputs_text(report) + "\n" +
      stowage::to_table(report.plan, {.view = report.wanted.view, .colour = report.wanted.colour}) + "\n" +
      stowage::totals_table(report.plan);
  if (report.plan.tokens) {
    text += "\nA row pass over " + std::to_string(*report.plan.tokens) + " tokens clears " +
            bytes_text(report.plan.zero_rows_bytes) + "; zeroing everything clears " +
            bytes_text(report.plan.zero_all_bytes) + ".\n";
  }
  return text;
}

std::string run_as_table(const run_report& report) {
  return inputs_text(report.plan) + "\n" + stowage::totals_table(report.plan.plan) + "\n" +
         passes_text(report) + "\n" + checksums_text(report.operations.checksum) + "\n" +
         operations_text(report.operations) + "\n" +
         (report.ok() ? "all passes and operations verified\n" : "verification failed\n");
}

} // namespace planner
