#include "config_reader.hpp"

#include "config_source.hpp"
#include "config_text.hpp"
#include "config_values.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <istream>
#include <limits>
#include <string>

namespace planner {
namespace {

using nlohmann::json;
using stowage::llm::model_config;

// Keys that are looked up by name because they fill no member by themselves.
constexpr std::string_view layer_types_key = "layer_types";
constexpr std::string_view interval_key = "full_attention_interval";
constexpr std::string_view model_type_key = "model_type";
constexpr std::string_view rope_scaling_key = "rope_scaling";
constexpr std::string_view mrope_key = "mrope_interleaved";

constexpr config_key keys[] = {
    {{"vocab_size"}, &model_config::vocab_size},
    {{"hidden_size"}, &model_config::hidden_size, nullptr, "required", 1},
    {{"intermediate_size"}, &model_config::intermediate_size},
    {{"num_hidden_layers"}, &model_config::num_hidden_layers},
    {{"num_attention_heads"},
     &model_config::num_attention_heads,
     nullptr,
     "required without head_dim; absent: 0"},
    {{"num_key_value_heads"}, &model_config::num_key_value_heads, nullptr, "absent: num_attention_heads"},
    {{"head_dim", "attention_head_dim"},
     &model_config::head_dim,
     nullptr,
     "absent: hidden_size / num_attention_heads, rounded down"},
    {{"mamba_num_heads"}, &model_config::mamba_num_heads},
    {{"mamba_head_dim"}, &model_config::mamba_head_dim},
    {{"n_groups"}, &model_config::n_groups},
    {{"ssm_state_size"}, &model_config::ssm_state_size},
    {{"linear_num_key_heads"}, &model_config::linear_num_key_heads},
    {{"linear_key_head_dim"}, &model_config::linear_key_head_dim},
    {{"linear_num_value_heads"}, &model_config::linear_num_value_heads},
    {{"linear_value_head_dim"}, &model_config::linear_value_head_dim},
    {{"num_experts", "n_routed_experts", "num_local_experts"}, &model_config::num_experts},
    {{"num_experts_per_tok", "experts_per_token"},
     &model_config::num_experts_per_tok,
     nullptr,
     "absent: 0; counts as 0 without experts"},
    {{"moe_intermediate_size"},
     &model_config::moe_intermediate_size,
     nullptr,
     "absent: intermediate_size with experts, else 0"},
    {{"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"},
     &model_config::shared_expert_intermediate_size},
    {{"moe_latent_size"}, &model_config::moe_latent_size},
    {{"zero_expert_num"}, &model_config::zero_expert_num},
    {{"kv_lora_rank"}, &model_config::kv_lora_rank},
    {{"q_lora_rank"}, &model_config::q_lora_rank},
    {{"qk_rope_head_dim"}, &model_config::qk_rope_head_dim},
    {{"o_groups"}, &model_config::o_groups},
    {{"o_lora_rank"}, &model_config::o_lora_rank},
    {{"hc_mult"}, &model_config::hc_mult},
    {{"hc_lowrank"}, &model_config::hc_lowrank},
    {{"index_topk"}, &model_config::index_topk},
    {{"index_compress_ratio"}, &model_config::index_compress_ratio},
    {{"index_n_heads"}, &model_config::index_n_heads},
    {{"index_head_dim"}, &model_config::index_head_dim},
    {{"attn_output_gate", "attn_gated"},
     nullptr,
     &model_config::attn_gated,
     "absent: true for a model_type that begins with qwen3_next, else false"},
    {{mrope_key},
     nullptr,
     &model_config::mrope_interleaved,
     "also read inside rope_scaling, either place sets it; absent: false"},
    {{layer_types_key}, nullptr, nullptr, "list of strings; its linear_attention entries are the SSM layers"},
    {{interval_key},
     nullptr,
     nullptr,
     "integer; without layer_types, every so many layers one is no SSM layer; absent or 0: no SSM layers"},
    {{model_type_key}, nullptr, nullptr, "string; decides the gate of attention where no key does"},
    {{rope_scaling_key}, nullptr, nullptr, "object; only mrope_interleaved is read in it"},
    {{text_config_key}, nullptr, nullptr, "object; its keys override those around it"},
};

std::int64_t count_linear_attention(const config_values& values, const entry& layer_types) {
  constexpr std::string_view wanted = "an array of strings";
  if (!layer_types.value->is_array()) values.refuse_value(layer_types, wanted);
  std::int64_t count = 0;
  for (std::size_t index = 0; index < layer_types.value->size(); ++index) {
    const json& layer = (*layer_types.value)[index];
    if (!layer.is_string()) {
      values.refuse_value({&layer, layer_types.key + "[" + std::to_string(index) + "]"}, "a string");
    }
    if (layer.get_ref<const std::string&>() == "linear_attention") ++count;
  }
  return count;
}

/// mrope_interleaved inside rope_scaling; its own place at the top is one of the keys.
bool rope_scaling_interleaves(const config_values& values) {
  const entry rope_scaling = values.find(rope_scaling_key);
  if (!rope_scaling) return false;
  if (!rope_scaling.value->is_object()) values.refuse_value(rope_scaling, "an object");
  const entry inside = config_values::member(*rope_scaling.value, mrope_key, rope_scaling.key);
  return inside && values.flag(inside);
}

/// A key without which a model of some kind cannot be planned well.
struct needed_key {
  number_member needed;
  /// The model is of that kind where this is above 0; null: every model is.
  number_member kind;
};

constexpr needed_key needed_keys[] = {
    {&model_config::vocab_size, nullptr},
    {&model_config::intermediate_size, nullptr},
    {&model_config::num_experts_per_tok, &model_config::num_experts},
    {&model_config::mamba_head_dim, &model_config::mamba_num_heads},
    {&model_config::n_groups, &model_config::mamba_num_heads},
    {&model_config::ssm_state_size, &model_config::mamba_num_heads},
    {&model_config::linear_value_head_dim, &model_config::linear_num_value_heads},
    {&model_config::linear_num_key_heads, &model_config::linear_num_value_heads},
    {&model_config::linear_key_head_dim, &model_config::linear_num_value_heads},
    {&model_config::qk_rope_head_dim, &model_config::kv_lora_rank},
    {&model_config::o_lora_rank, &model_config::o_groups},
    {&model_config::index_compress_ratio, &model_config::index_topk},
    {&model_config::index_n_heads, &model_config::index_topk},
    {&model_config::index_head_dim, &model_config::index_topk},
};

std::string_view name_of(number_member member) {
  return std::ranges::find(keys, member, &config_key::number)->spellings[0];
}

/// The needed keys that are not there. `absent` says so of a member.
template <class Absent>
std::vector<std::string> missing_keys(const model_config& model, const Absent& absent) {
  std::vector<std::string> missing;
  for (const needed_key& each : needed_keys) {
    if ((each.kind != nullptr && model.*each.kind <= 0) || !absent(each.needed)) continue;
    // Experts have a width of their own.
    if (each.needed == &model_config::intermediate_size && model.moe_intermediate_size > 0) continue;
    std::string text{name_of(each.needed)};
    text.append(": absent, counts as 0");
    if (each.kind != nullptr)
      text.append(", though ")
          .append(name_of(each.kind))
          .append(" is ")
          .append(std::to_string(model.*each.kind));
    missing.push_back(std::move(text));
  }
  return missing;
}

/// Replaces what the config says of a key, by whatever name it does.
void apply_overrides(json& document, std::span<const config_override> overrides) {
  for (const config_override& each : overrides) {
    const auto* const key = std::ranges::find_if(keys, [&each](const config_key& candidate) {
      return !each.key.empty() &&
             std::ranges::find(candidate.spellings, std::string_view{each.key}) != candidate.spellings.end();
    });
    if (key == std::end(keys) || key->spellings[0] == text_config_key ||
        key->spellings[0] == rope_scaling_key) {
      refuse("--set", shortened(each.key, 40) + ": no key that can be set; see stowage --config-help");
    }
    const auto nested = document.find(std::string{text_config_key});
    for (const std::string_view spelling : key->spellings) {
      if (nested != document.end() && nested->is_object()) nested->erase(std::string{spelling});
    }
    for (const std::string_view spelling : key->spellings) document.erase(std::string{spelling});
    json value = json::parse(each.value, nullptr, false);
    document[std::string{key->spellings[0]}] = value.is_discarded() ? json(each.value) : std::move(value);
  }
}

read_config to_model_config(const json& document, std::string_view source) {
  const config_values values(document, source);
  const auto absent = [&values](number_member member) {
    return std::ranges::none_of(
        keys, [&](const config_key& key) { return key.number == member && values.find(key); });
  };

  model_config model;
  const entry model_type = values.find(model_type_key);
  model.attn_gated = model_type && values.text(model_type).starts_with("qwen3_next");
  for (const config_key& key : keys) {
    const entry found = values.find(key);
    if (!found) continue;
    if (key.number != nullptr) model.*key.number = values.number(found, key.smallest);
    if (key.flag != nullptr) model.*key.flag = values.flag(found);
  }

  if (absent(&model_config::hidden_size)) values.refuse_missing("hidden_size", integer_from(1));
  if (absent(&model_config::num_key_value_heads)) model.num_key_value_heads = model.num_attention_heads;
  if (absent(&model_config::head_dim)) {
    if (absent(&model_config::num_attention_heads)) {
      values.refuse_missing("num_attention_heads",
                            "it or head_dim: without head_dim, a head is as wide as "
                            "hidden_size / num_attention_heads (0 heads: no attention)");
    }
    if (model.num_attention_heads > 0) model.head_dim = model.hidden_size / model.num_attention_heads;
  }

  if (model.num_experts == 0) {
    model.num_experts_per_tok = 0;
  } else if (absent(&model_config::moe_intermediate_size)) {
    model.moe_intermediate_size = model.intermediate_size;
  }

  if (rope_scaling_interleaves(values)) model.mrope_interleaved = true;

  const entry full_attention_interval = values.find(interval_key);
  const std::int64_t interval = full_attention_interval ? values.number(full_attention_interval) : 0;
  if (const entry layer_types = values.find(layer_types_key)) {
    model.num_ssm_layers = count_linear_attention(values, layer_types);
  } else if (interval > 0) {
    model.num_ssm_layers = model.num_hidden_layers - model.num_hidden_layers / interval;
  }
  return {model, missing_keys(model, absent)};
}

std::string read_text(std::istream& input, std::string_view source) {
  if (!input) refuse(source, "cannot be read");
  std::string text;
  std::array<char, 16384> block{};
  do {
    input.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block.data(), static_cast<std::size_t>(input.gcount()));
    if (text.size() > largest_config_bytes) {
      refuse(source, "has more than " + std::to_string(largest_config_bytes) +
                         " bytes (16 MiB); wanted the config.json of a model, without its weights");
    }
  } while (input);
  if (input.bad()) refuse(source, "reading failed");
  return text;
}

} // namespace

std::span<const config_key> config_keys() noexcept { return keys; }

read_config read_whole_config(std::string_view text, std::string_view source_name,
                              std::span<const config_override> overrides) {
  json document = parse_config_text(text, source_name);
  if (!document.is_object()) {
    refuse(source_name, "the top level is " + describe(document) + "; wanted an object of config.json keys");
  }
  apply_overrides(document, overrides);
  return to_model_config(document, source_name);
}

model_config read_model_config(std::istream& input, std::string_view source_name) {
  return read_whole_config(read_text(input, source_name), source_name).model;
}

read_config read_config_file(const std::filesystem::path& path, std::span<const config_override> overrides) {
  std::string source;
  const std::string text = read_config_text(path, source);
  return read_whole_config(text, source, overrides);
}

model_config read_model_config_file(const std::filesystem::path& path) {
  return read_config_file(path).model;
}

} // namespace planner
