#include "json_output.hpp"

#include "config_reader.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string_view>

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
  return inputs;
}

json buffer_of(const buffer_report& buffer, bool with_tokens) {
  const stowage::field_report& field = buffer.field;
  json result;
  result["name"] = field.name;
  result["bytes"] = field.layout.bytes;
  result["present"] = buffer.present();
  result["offset"] = buffer.present() ? json(field.layout.offset) : json(nullptr);
  result["alignment"] = field.layout.alignment;
  result["element"] = field.element;
  result["shape"] = field.shape;
  result["zero"] = field.policy;
  if (with_tokens) result["zero_bytes"] = buffer.zero_bytes;
  return result;
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

/// Paths can be any bytes; JSON is UTF-8.
std::string to_text(const json& document) {
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace

std::string plan_as_json(const plan_report& report) {
  json document;
  document["inputs"] = inputs_of(report);
  json& buffers = document["buffers"] = json::array();
  for (const buffer_report& buffer : report.buffers) {
    buffers.push_back(buffer_of(buffer, report.wanted.tokens.has_value()));
  }
  document["total_bytes"] = report.total_bytes;
  document["slab_bytes"] = report.slab_bytes;
  document["hash"] = report.hash_text();
  if (report.wanted.tokens) document["zero_rows_bytes"] = report.zero_rows_bytes;
  return to_text(document);
}

std::string run_as_json(const run_report& report) {
  json document;
  document["inputs"] = inputs_of(report.plan);
  document["present_buffers"] = report.plan.present_buffers();
  document["total_bytes"] = report.plan.total_bytes;
  document["slab_bytes"] = report.plan.slab_bytes;
  document["hash"] = report.plan.hash_text();
  json& passes = document["passes"] = json::array();
  for (const pass_report& pass : report.passes) passes.push_back(pass_of(pass));
  json& release = document["release"];
  release["ok"] = report.release_problem.empty();
  if (!report.release_problem.empty()) release["problem"] = report.release_problem;
  document["ok"] = report.ok();
  return to_text(document);
}

} // namespace planner
