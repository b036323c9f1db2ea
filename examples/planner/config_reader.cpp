#include "config_reader.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <istream>
#include <limits>
#include <string>
#include <system_error>

namespace planner {
namespace {

using nlohmann::json;
using stowage::llm::model_config;

// Keys that are looked up by name because they fill no member by themselves.
constexpr std::string_view layer_types_key = "layer_types";
constexpr std::string_view interval_key = "full_attention_interval";
constexpr std::string_view model_type_key = "model_type";
constexpr std::string_view rope_scaling_key = "rope_scaling";
constexpr std::string_view text_config_key = "text_config";
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

/// Bytes of the character that a text begins with; 0 where that is a control character, a line separator or
/// no well-formed UTF-8.
std::size_t printable_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  if (first < 0xC2 || first > 0xF4) return 0;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (text.size() < length) return 0;
  unsigned character = first & (0xFFu >> (length + 1));
  for (std::size_t index = 1; index < length; ++index) {
    const auto next = static_cast<unsigned char>(text[index]);
    if ((next & 0xC0u) != 0x80u) return 0;
    character = character << 6 | (next & 0x3Fu);
  }
  const bool overlong = (length == 3 && character < 0x800) || (length == 4 && character < 0x10000);
  const bool surrogate = character >= 0xD800 && character <= 0xDFFF;
  const bool breaks_line = character < 0xA0 || character == 0x2028 || character == 0x2029;
  return overlong || surrogate || breaks_line || character > 0x10FFFF ? 0 : length;
}

/// The text on one line: what a terminal or a log could take for something else becomes a question mark.
std::string one_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = printable_length(text);
    if (length == 0) {
      line.push_back('?');
      text.remove_prefix(1);
    } else {
      line.append(text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  return line;
}

/// A parser quotes what it last read, which can be megabytes.
std::string shortened(std::string_view text, std::size_t largest_size) {
  if (text.size() <= largest_size) return std::string{text};
  return std::string{text.substr(0, largest_size)}.append("...");
}

[[noreturn]] void refuse(std::string_view source, std::string_view problem) {
  throw config_error(one_line(std::string{source}.append(": ").append(problem)));
}

std::string integer_from(std::int64_t smallest) {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  return "an integer from " + std::to_string(smallest) + " to " + std::to_string(largest);
}

/// A value of the config and the key it was found under, such as "text_config.hidden_size".
struct entry {
  const json* value = nullptr;
  std::string key;

  explicit operator bool() const { return value != nullptr; }
};

/// A value as a message shows it.
std::string describe(const json& value) {
  if (value.is_array()) return "an array";
  if (value.is_object()) return "an object";
  if (!value.is_string()) return value.dump();
  // Written as JSON in ASCII. Cutting may split a character, which dump is told to replace.
  const json text = shortened(value.get_ref<const std::string&>(), 40);
  return "the string " + text.dump(-1, ' ', true, json::error_handler_t::replace);
}

/// The values of one config under the rules of the format: text_config over the object around it, null as
/// absent.
class config_values {
public:
  /// `outer` is an object and outlives this.
  config_values(const json& outer, std::string_view source) : outer_(outer), source_(source) {
    text_config_ = member(outer_, text_config_key, "");
    if (text_config_ && !text_config_.value->is_object()) refuse_value(text_config_, "an object");
  }

  [[nodiscard]] entry find(std::string_view spelling) const {
    // A text_config inside text_config overrides nothing.
    if (text_config_) {
      if (entry nested = member(*text_config_.value, spelling, text_config_.key)) return nested;
    }
    return member(outer_, spelling, "");
  }

  /// The first spelling decides wherever it stands, so text_config.num_local_experts loses to num_experts.
  [[nodiscard]] entry find(const config_key& key) const {
    for (const std::string_view spelling : key.spellings) {
      if (spelling.empty()) break;
      if (entry found = find(spelling)) return found;
    }
    return {};
  }

  [[nodiscard]] static entry member(const json& object, std::string_view spelling, std::string_view parent) {
    const auto found = object.find(std::string{spelling});
    if (found == object.end() || found->is_null()) return {};
    std::string key{parent};
    if (!key.empty()) key.push_back('.');
    return {&*found, key.append(spelling)};
  }

  [[nodiscard]] std::int64_t number(const entry& found, std::int64_t smallest = 0) const {
    const json& value = *found.value;
    const std::string wanted = integer_from(smallest);
    if (!value.is_number()) refuse_value(found, wanted);
    if (value.is_number_float()) {
      // Also integers of more than 64 bits: the parser has no other place for them.
      const double real = value.get<double>();
      if (real < 0) refuse_value(found, wanted, "negative");
      if (real >= 9223372036854775808.0) refuse_value(found, wanted, "too large");
      refuse_value(found, wanted + ", written without a point or an exponent");
    }
    if (value.is_number_unsigned()) {
      const auto magnitude = value.get<std::uint64_t>();
      if (magnitude > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
        refuse_value(found, wanted, "too large");
      }
    }
    const auto result = value.get<std::int64_t>();
    if (result < smallest) refuse_value(found, wanted, result < 0 ? "negative" : "");
    return result;
  }

  [[nodiscard]] bool flag(const entry& found) const {
    if (!found.value->is_boolean()) refuse_value(found, "true or false");
    return found.value->get<bool>();
  }

  [[nodiscard]] const std::string& text(const entry& found) const {
    if (!found.value->is_string()) refuse_value(found, "a string");
    return found.value->get_ref<const std::string&>();
  }

  [[noreturn]] void refuse_value(const entry& found, std::string_view wanted,
                                 std::string_view why = "") const {
    std::string problem = found.key + ": is " + describe(*found.value);
    if (!why.empty()) problem.append(" (").append(why).append(")");
    refuse(source_, problem.append("; wanted ").append(wanted));
  }

  [[noreturn]] void refuse_missing(std::string_view key, std::string_view wanted) const {
    refuse(source_, std::string{key}.append(": is missing; wanted ").append(wanted));
  }

private:
  const json& outer_;
  std::string_view source_;
  entry text_config_;
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

model_config to_model_config(const json& document, std::string_view source) {
  if (!document.is_object()) {
    refuse(source, "the top level is " + describe(document) + "; wanted an object of config.json keys");
  }
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
  return model;
}

/// Reads a text without keeping it, so that syntax and nesting are known before anything is built from them.
class syntax_check final : public nlohmann::json_sax<json> {
public:
  [[nodiscard]] bool too_deep() const { return depth_ > deepest_config_nesting; }
  [[nodiscard]] std::string_view problem() const { return problem_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(json::number_integer_t) override { return true; }
  bool number_unsigned(json::number_unsigned_t) override { return true; }
  bool number_float(json::number_float_t, const json::string_t&) override { return true; }
  bool string(json::string_t&) override { return true; }
  bool binary(json::binary_t&) override { return true; }
  bool key(json::string_t&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const json::exception& error) override {
    problem_ = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    const std::size_t bracket = problem_.find("] ");
    if (problem_.starts_with('[') && bracket != std::string::npos) problem_.erase(0, bracket + 2);
    return false;
  }

private:
  bool open() {
    ++depth_;
    return !too_deep();
  }
  bool close() {
    --depth_;
    return true;
  }

  std::size_t depth_ = 0;
  std::string problem_;
};

json parse(const std::string& text, std::string_view source) {
  // The parser would take a zero byte for the end of the text. No JSON has one; UTF-16 has many.
  const std::size_t zero = text.find('\0');
  if (zero != std::string::npos) {
    refuse(source,
           "cannot be read as JSON: byte " + std::to_string(zero + 1) + " is zero; wanted UTF-8 text");
  }
  syntax_check check;
  if (!json::sax_parse(text, &check)) {
    if (check.too_deep()) {
      refuse(source, "nested deeper than " + std::to_string(deepest_config_nesting) + " arrays and objects");
    }
    refuse(source, "cannot be read as JSON: " + shortened(check.problem(), 200));
  }
  return json::parse(text);
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

model_config read_model_config(std::istream& input, std::string_view source_name) {
  return to_model_config(parse(read_text(input, source_name), source_name), source_name);
}

model_config read_model_config_file(const std::filesystem::path& path) {
  const std::string source = path.empty() ? "(empty path)" : path.string();
  // Asked before opening: opening a FIFO waits for a writer.
  std::error_code error;
  const std::filesystem::file_type type = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::not_found) refuse(source, "no such file");
  if (type == std::filesystem::file_type::none) refuse(source, "cannot be looked at: " + error.message());
  if (type == std::filesystem::file_type::directory) {
    refuse(source, "is a directory; wanted the path of the config.json in it");
  }
  if (type != std::filesystem::file_type::regular) refuse(source, "is not a regular file");

  errno = 0;
  std::ifstream input(path, std::ios::binary);
  if (!input) {
    const std::string reason = errno != 0 ? ": " + std::generic_category().message(errno) : std::string{};
    refuse(source, "cannot be opened" + reason);
  }
  return read_model_config(input, source);
}

} // namespace planner
