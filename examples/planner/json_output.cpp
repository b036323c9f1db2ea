#include "json_output.hpp"

#include "config_reader.hpp"
#include "json_text.hpp"

#include <stowage/report/json.hpp>

#include <nlohmann/json.hpp>

#include <optional>
#include <string_view>
#include <utility>

namespace planner {
namespace {

using json = nlohmann::ordered_json;

json inputs_of(const plan_report& report) {
  const stowage::llm::forward_params& params = report.params;
  json inputs;
  inputs["config"] = report.wanted.config;
  for (const config_key& key : config_keys()) {
    if (key.number != nullptr) inputs[std::string{key.spellings[0]}] = params.*key.number;
    if (key.flag != nullptr) inputs[std::string{key.spellings[0]}] = params.*key.flag;
  }
  inputs["num_ssm_layers"] = params.num_ssm_layers;
  inputs["max_batch_tokens"] = params.max_batch_tokens.value;
  inputs["max_seq_len"] = params.max_seq_len;
  inputs["kv_block_size"] = params.kv_block_size;
  inputs["max_batch_size"] = params.max_batch_size;
  inputs["sm_count"] = params.sm_count;
  inputs["adapter_max_rank"] = params.adapter_max_rank;
  inputs["levers"] = lever_names_of(params.switches);
  inputs["splitk"] = splitk_spelling_of(params.switches.splitk);
  if (report.wanted.tokens) inputs["tokens"] = *report.wanted.tokens;
  if (!report.missing.empty()) inputs["missing"] = report.missing;
  return inputs;
}

std::string_view name_of(pass_kind kind) {
  switch (kind) {
    case pass_kind::construction: return "construction";
    case pass_kind::zero_all: return "zero_all";
    case pass_kind::zero_rows: return "zero_rows";
    case pass_kind::zero_row_range: return "zero_row_range";
    case pass_kind::prefill_essentials: return "prefill_essentials";
  }
  return "";
}

json pass_of(const pass_report& pass) {
  json result;
  result["pass"] = name_of(pass.kind);
  if (pass.kind == pass_kind::zero_rows || pass.kind == pass_kind::zero_row_range) {
    result["first_token"] = pass.first;
    result["end_token"] = pass.last;
  }
  result["promised_bytes"] = pass.promised_bytes;
  result["cleared_bytes"] = pass.cleared_bytes;
  if (pass.seconds) {
    result["milliseconds"] = *pass.seconds * 1e3;
    const std::optional<double> rate = pass.gigabytes_per_second();
    result["gigabytes_per_second"] = rate ? json(*rate) : json(nullptr);
  }
  result["ok"] = pass.ok();
  if (!pass.ok()) result["problem"] = pass.problem;
  return result;
}

/// Whether an operation does what it is to do, behind what is known of it.
json with_result(json result, const std::string& problem) {
  result["ok"] = problem.empty();
  if (!problem.empty()) result["problem"] = problem;
  return result;
}

json checksum_of(const checksum_report& report) {
  json buffers = json::array();
  for (const buffer_checksum& buffer : report.buffers) {
    json sums;
    sums["name"] = buffer.found.name;
    sums["bytes"] = buffer.found.bytes;
    sums["sum"] = buffer.found.sum;
    sums["sum_of_squares"] = buffer.found.sum_of_squares;
    sums["sum_of_magnitudes"] = buffer.found.sum_of_magnitudes;
    buffers.push_back(with_result(std::move(sums), buffer.problem));
  }
  json result;
  result["buffers"] = std::move(buffers);
  return with_result(std::move(result), report.problem);
}

json rowwise_of(const rowwise_report& report) {
  json result;
  result["absent"] = report.absence.empty() ? json(nullptr) : json(report.absence);
  result["takes"] = report.takes;
  result["bytes_per_take"] = report.bytes_per_take;
  result["bytes"] = report.bytes;
  result["refused"] = report.refusal;
  return with_result(std::move(result), report.problem);
}

json decode_metadata_of(const decode_metadata_report& report) {
  json result;
  result["rows"] = report.layout.rows;
  json& offsets = result["offsets"];
  offsets["positions"] = report.layout.positions;
  offsets["seq_slot"] = report.layout.seq_slot;
  offsets["slots"] = report.layout.slots;
  offsets["seq_lens"] = report.layout.seq_lens;
  offsets["unused"] = report.layout.unused;
  offsets["block_table"] = report.layout.block_table;
  result["bytes"] = report.layout.bytes;
  result["scratch_offset"] = report.offset;
  result["scratch_bytes"] = report.scratch_bytes;
  return with_result(std::move(result), report.problem);
}

json moe_fp8_of(const moe_fp8_report& report) {
  json result;
  result["absent"] = report.absence.empty() ? json(nullptr) : json(report.absence);
  json& carvings = result["carvings"] = json::array();
  for (const moe_carving& carving : report.carvings) {
    json each;
    each["rows"] = carving.rows;
    each["bytes"] = carving.bytes;
    carvings.push_back(std::move(each));
  }
  result["refused"] = report.refusal;
  return with_result(std::move(result), report.problem);
}

json batched_prefill_of(const batched_prefill_report& report) {
  json result;
  result["streams"] = report.streams;
  result["chunk"] = report.chunk;
  result["bytes"] = report.bytes;
  result["largest_chunk"] = report.largest_chunk;
  result["refused"] = report.refusal;
  return with_result(std::move(result), report.problem);
}

json operations_of(const operations_report& report) {
  json result;
  result["checksum"] = checksum_of(report.checksum);
  result["rowwise_slab"] = rowwise_of(report.rowwise);
  result["decode_metadata"] = decode_metadata_of(report.decode_metadata);
  result["moe_fp8"] = moe_fp8_of(report.moe_fp8);
  result["batched_prefill"] = batched_prefill_of(report.batched_prefill);
  return result;
}

} // namespace

std::string plan_as_json(const plan_report& report) {
  json document;
  document["inputs"] = inputs_of(report);
  document.update(json::parse(stowage::to_json(report.plan, report.wanted.view)));
  return json_text(document);
}

std::string run_as_json(const run_report& report) {
  json document;
  document["inputs"] = inputs_of(report.plan);
  document["present_buffers"] = report.plan.plan.present_fields();
  document["total_bytes"] = report.plan.plan.total_bytes;
  document["slab_bytes"] = report.plan.plan.slab_bytes;
  document["hash"] = report.plan.plan.hash_text();
  json& passes = document["passes"] = json::array();
  for (const pass_report& pass : report.passes) passes.push_back(pass_of(pass));
  document["operations"] = operations_of(report.operations);
  json& release = document["release"];
  release["ok"] = report.release_problem.empty();
  if (!report.release_problem.empty()) release["problem"] = report.release_problem;
  document["ok"] = report.ok();
  return json_text(document);
}

std::string valid_utf8(const std::string& text) {
  const std::string valid = json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  return json::parse(valid).get<std::string>();
}

} // namespace planner
