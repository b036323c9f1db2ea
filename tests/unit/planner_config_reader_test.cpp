#include "../support/messages.hpp"

#include <planner/config_reader.hpp>
#include <planner/config_source.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <ios>
#include <istream>
#include <sstream>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#ifndef STOWAGE_SOURCE_DIR
#error "define STOWAGE_SOURCE_DIR as the root of the sources, in quotes"
#endif

namespace {

using planner::config_error;
using planner::config_key;
using planner::config_keys;
using planner::read_model_config;
using planner::read_model_config_file;
using stowage::llm::model_config;
using test::contains;

static_assert(std::is_aggregate_v<model_config>);
static_assert(std::is_trivially_copyable_v<model_config>);
static_assert(model_config{} == model_config{.vocab_size = 0, .attn_gated = false});
static_assert(std::is_base_of_v<std::runtime_error, config_error>);

model_config read(const std::string& text) {
  std::istringstream input(text);
  return read_model_config(input, "x.json");
}

/// The keys that every config needs, then these.
std::string with(std::string_view more) {
  std::string text = R"({"hidden_size": 64, "num_attention_heads": 4)";
  if (!more.empty()) text.append(", ").append(more);
  return text.append("}");
}

std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const config_error& error) {
    return error.what();
  }
  return "not refused";
}

std::string file_refusal(const std::filesystem::path& path) {
  try {
    read_model_config_file(path);
  } catch (const config_error& error) {
    return error.what();
  }
  return "not refused";
}

/// A message that a log line and a terminal can take.
bool is_one_clean_line(std::string_view message) {
  for (const char character : message) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte < 0x20 || byte == 0x7F) return false;
  }
  return !message.empty();
}

void check_equal(const model_config& found, const model_config& expected) {
  for (const config_key& key : config_keys()) {
    const std::string name{key.spellings[0]};
    CAPTURE(name);
    if (key.number != nullptr) CHECK(found.*key.number == expected.*key.number);
    if (key.flag != nullptr) CHECK(found.*key.flag == expected.*key.flag);
  }
  CHECK(found.num_ssm_layers == expected.num_ssm_layers);
  CHECK(found == expected);
}

/// A folder of its own, gone with the test.
class temporary_folder {
public:
  temporary_folder() {
    static int number = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("stowage_config_reader_" + std::to_string(::getpid()) + "_" + std::to_string(number++));
    std::filesystem::create_directory(path_);
  }
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  [[nodiscard]] std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

private:
  std::filesystem::path path_;
};

// --- The real configs ---------------------------------------------------------------

struct real_config {
  const char* file = nullptr;
  model_config expected;
};

const real_config real_configs[] = {
    {"deepseek-v3.json",
     {.vocab_size = 129280,
      .hidden_size = 7168,
      .intermediate_size = 18432,
      .num_hidden_layers = 61,
      .num_attention_heads = 128,
      .num_key_value_heads = 128,
      .head_dim = 56,
      .num_experts = 256,
      .num_experts_per_tok = 8,
      .moe_intermediate_size = 2048,
      .kv_lora_rank = 512,
      .q_lora_rank = 1536,
      .qk_rope_head_dim = 64}},
    {"llama-3.1-70b.json",
     {.vocab_size = 128256,
      .hidden_size = 8192,
      .intermediate_size = 28672,
      .num_hidden_layers = 80,
      .num_attention_heads = 64,
      .num_key_value_heads = 8,
      .head_dim = 128}},
    {"llama-3.1-8b.json",
     {.vocab_size = 128256,
      .hidden_size = 4096,
      .intermediate_size = 14336,
      .num_hidden_layers = 32,
      .num_attention_heads = 32,
      .num_key_value_heads = 8,
      .head_dim = 128}},
    {"mistral-7b-v0.1.json",
     {.vocab_size = 32000,
      .hidden_size = 4096,
      .intermediate_size = 14336,
      .num_hidden_layers = 32,
      .num_attention_heads = 32,
      .num_key_value_heads = 8,
      .head_dim = 128}},
    {"mixtral-8x7b.json",
     {.vocab_size = 32000,
      .hidden_size = 4096,
      .intermediate_size = 14336,
      .num_hidden_layers = 32,
      .num_attention_heads = 32,
      .num_key_value_heads = 8,
      .head_dim = 128,
      .num_experts = 8,
      .num_experts_per_tok = 2,
      .moe_intermediate_size = 14336}},
    {"nemotron-h-8b.json",
     {.vocab_size = 131072,
      .hidden_size = 4096,
      .intermediate_size = 21504,
      .num_hidden_layers = 52,
      .num_attention_heads = 32,
      .num_key_value_heads = 8,
      .head_dim = 128,
      .mamba_num_heads = 128,
      .mamba_head_dim = 64,
      .n_groups = 8,
      .ssm_state_size = 128}},
    {"qwen3-30b-a3b.json",
     {.vocab_size = 151936,
      .hidden_size = 2048,
      .intermediate_size = 6144,
      .num_hidden_layers = 48,
      .num_attention_heads = 32,
      .num_key_value_heads = 4,
      .head_dim = 128,
      .num_experts = 128,
      .num_experts_per_tok = 8,
      .moe_intermediate_size = 768}},
    {"qwen3-4b.json",
     {.vocab_size = 151936,
      .hidden_size = 2560,
      .intermediate_size = 9728,
      .num_hidden_layers = 36,
      .num_attention_heads = 32,
      .num_key_value_heads = 8,
      .head_dim = 128}},
    {"qwen3-8b.json",
     {.vocab_size = 151936,
      .hidden_size = 4096,
      .intermediate_size = 12288,
      .num_hidden_layers = 36,
      .num_attention_heads = 32,
      .num_key_value_heads = 8,
      .head_dim = 128}},
    {"qwen3-next-80b-a3b.json",
     {.vocab_size = 151936,
      .hidden_size = 2048,
      .intermediate_size = 5632,
      .num_hidden_layers = 48,
      .num_attention_heads = 16,
      .num_key_value_heads = 2,
      .head_dim = 256,
      .linear_num_key_heads = 16,
      .linear_key_head_dim = 128,
      .linear_num_value_heads = 32,
      .linear_value_head_dim = 128,
      .num_experts = 512,
      .num_experts_per_tok = 10,
      .moe_intermediate_size = 512,
      .shared_expert_intermediate_size = 512,
      .num_ssm_layers = 36,
      .attn_gated = true}},
};

TEST_CASE("ten real configs") {
  for (const real_config& config : real_configs) {
    CAPTURE(config.file);
    const std::filesystem::path folder = std::filesystem::path{STOWAGE_SOURCE_DIR} / "examples" / "configs";
    check_equal(read_model_config_file(folder / config.file), config.expected);
  }
}

// --- Keys -----------------------------------------------------------------------------

TEST_CASE("every key that is read is listed, with all its spellings and in order") {
  std::string listed;
  for (const config_key& key : config_keys()) {
    for (const std::string_view spelling : key.spellings) {
      if (!spelling.empty()) listed.append(spelling).append(spelling == key.spellings[0] ? " " : "* ");
    }
    CHECK_FALSE(key.note.empty());
    CHECK_FALSE((key.number != nullptr && key.flag != nullptr));
  }
  CHECK(listed ==
        "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads "
        "head_dim attention_head_dim* mamba_num_heads mamba_head_dim n_groups ssm_state_size "
        "linear_num_key_heads linear_key_head_dim linear_num_value_heads linear_value_head_dim "
        "num_experts n_routed_experts* num_local_experts* num_experts_per_tok experts_per_token* "
        "moe_intermediate_size shared_expert_intermediate_size moe_shared_expert_intermediate_size* "
        "moe_latent_size zero_expert_num kv_lora_rank q_lora_rank qk_rope_head_dim o_groups o_lora_rank "
        "hc_mult hc_lowrank index_topk index_compress_ratio index_n_heads index_head_dim "
        "attn_output_gate attn_gated* mrope_interleaved "
        "layer_types full_attention_interval model_type rope_scaling text_config ");
}

TEST_CASE("each key reaches its own member") {
  check_equal(read(R"({"vocab_size": 1, "hidden_size": 2, "intermediate_size": 3, "num_hidden_layers": 4,
      "num_attention_heads": 5, "num_key_value_heads": 6, "head_dim": 7, "mamba_num_heads": 8,
      "mamba_head_dim": 9, "n_groups": 10, "ssm_state_size": 11, "linear_num_key_heads": 12,
      "linear_key_head_dim": 13, "linear_num_value_heads": 14, "linear_value_head_dim": 15,
      "num_experts": 16, "num_experts_per_tok": 17, "moe_intermediate_size": 18,
      "shared_expert_intermediate_size": 19, "moe_latent_size": 20, "zero_expert_num": 21,
      "kv_lora_rank": 22, "q_lora_rank": 23, "qk_rope_head_dim": 24, "o_groups": 25, "o_lora_rank": 26,
      "hc_mult": 27, "hc_lowrank": 28, "index_topk": 29, "index_compress_ratio": 30, "index_n_heads": 31,
      "index_head_dim": 32, "layer_types": ["linear_attention"], "attn_output_gate": true,
      "mrope_interleaved": true})"),
              {.vocab_size = 1,
               .hidden_size = 2,
               .intermediate_size = 3,
               .num_hidden_layers = 4,
               .num_attention_heads = 5,
               .num_key_value_heads = 6,
               .head_dim = 7,
               .mamba_num_heads = 8,
               .mamba_head_dim = 9,
               .n_groups = 10,
               .ssm_state_size = 11,
               .linear_num_key_heads = 12,
               .linear_key_head_dim = 13,
               .linear_num_value_heads = 14,
               .linear_value_head_dim = 15,
               .num_experts = 16,
               .num_experts_per_tok = 17,
               .moe_intermediate_size = 18,
               .shared_expert_intermediate_size = 19,
               .moe_latent_size = 20,
               .zero_expert_num = 21,
               .kv_lora_rank = 22,
               .q_lora_rank = 23,
               .qk_rope_head_dim = 24,
               .o_groups = 25,
               .o_lora_rank = 26,
               .hc_mult = 27,
               .hc_lowrank = 28,
               .index_topk = 29,
               .index_compress_ratio = 30,
               .index_n_heads = 31,
               .index_head_dim = 32,
               .num_ssm_layers = 1,
               .attn_gated = true,
               .mrope_interleaved = true});
}

TEST_CASE("what a config lacks is 0 or false") {
  check_equal(read(with("")),
              {.hidden_size = 64, .num_attention_heads = 4, .num_key_value_heads = 4, .head_dim = 16});
}

TEST_CASE("aliases: each is read, and the first of the order wins") {
  CHECK(read(with(R"("num_experts": 3)")).num_experts == 3);
  CHECK(read(with(R"("n_routed_experts": 5)")).num_experts == 5);
  CHECK(read(with(R"("num_local_experts": 7)")).num_experts == 7);
  CHECK(read(with(R"("num_local_experts": 7, "n_routed_experts": 5, "num_experts": 3)")).num_experts == 3);
  CHECK(read(with(R"("num_local_experts": 7, "n_routed_experts": 5)")).num_experts == 5);
  CHECK(read(with(R"("num_experts": 0, "n_routed_experts": 5)")).num_experts == 0);

  CHECK(read(with(R"("num_experts": 8, "num_experts_per_tok": 2)")).num_experts_per_tok == 2);
  CHECK(read(with(R"("num_experts": 8, "experts_per_token": 3)")).num_experts_per_tok == 3);
  CHECK(read(with(R"("num_experts": 8, "experts_per_token": 3, "num_experts_per_tok": 2)"))
            .num_experts_per_tok == 2);

  CHECK(read(with(R"("shared_expert_intermediate_size": 2)")).shared_expert_intermediate_size == 2);
  CHECK(read(with(R"("moe_shared_expert_intermediate_size": 3)")).shared_expert_intermediate_size == 3);
  CHECK(read(with(R"("moe_shared_expert_intermediate_size": 3, "shared_expert_intermediate_size": 2)"))
            .shared_expert_intermediate_size == 2);

  CHECK(read(with(R"("head_dim": 24)")).head_dim == 24);
  CHECK(read(with(R"("attention_head_dim": 40)")).head_dim == 40);
  CHECK(read(with(R"("attention_head_dim": 40, "head_dim": 24)")).head_dim == 24);

  CHECK(read(with(R"("attn_output_gate": true)")).attn_gated);
  CHECK(read(with(R"("attn_gated": true)")).attn_gated);
  CHECK_FALSE(read(with(R"("attn_gated": true, "attn_output_gate": false)")).attn_gated);
}

TEST_CASE("null counts as absent") {
  CHECK(read(with(R"("num_experts": null, "n_routed_experts": 5)")).num_experts == 5);
  CHECK(read(with(R"("vocab_size": null)")).vocab_size == 0);
  CHECK(read(with(R"("head_dim": null)")).head_dim == 16);
  CHECK(read(with(R"("num_key_value_heads": null)")).num_key_value_heads == 4);
  CHECK(read(with(R"("attn_output_gate": null, "attn_gated": true)")).attn_gated);
  CHECK(read(with(R"("model_type": null, "rope_scaling": null, "layer_types": null, "text_config": null,
                     "full_attention_interval": null, "mrope_interleaved": null)")) == read(with("")));
  CHECK(read(with(R"("rope_scaling": {"mrope_interleaved": null})")) == read(with("")));
  CHECK(read(with(R"("layer_types": null, "num_hidden_layers": 8, "full_attention_interval": 4)"))
            .num_ssm_layers == 6);
}

TEST_CASE("defaults that come from other keys") {
  SUBCASE("head width: hidden over heads, rounded down") {
    CHECK(read(R"({"hidden_size": 7168, "num_attention_heads": 128})").head_dim == 56);
    CHECK(read(R"({"hidden_size": 100, "num_attention_heads": 3})").head_dim == 33);
    CHECK(read(R"({"hidden_size": 2, "num_attention_heads": 3})").head_dim == 0);
  }
  SUBCASE("no attention at all, said or implied by a head width") {
    const model_config said = read(R"({"hidden_size": 64, "num_attention_heads": 0})");
    CHECK(said.head_dim == 0);
    CHECK(said.num_key_value_heads == 0);
    const model_config implied = read(R"({"hidden_size": 64, "head_dim": 128})");
    CHECK(implied.head_dim == 128);
    CHECK(implied.num_attention_heads == 0);
    CHECK(implied.num_key_value_heads == 0);
  }
  SUBCASE("key and value heads: as many as query heads") {
    CHECK(read(with("")).num_key_value_heads == 4);
    CHECK(read(with(R"("num_key_value_heads": 2)")).num_key_value_heads == 2);
    CHECK(read(with(R"("num_key_value_heads": 0)")).num_key_value_heads == 0);
  }
  SUBCASE("expert width: the dense width, with experts only") {
    CHECK(read(with(R"("intermediate_size": 256, "num_experts": 8)")).moe_intermediate_size == 256);
    CHECK(read(with(R"("intermediate_size": 256)")).moe_intermediate_size == 0);
    CHECK(read(with(R"("intermediate_size": 256, "num_experts": 8, "moe_intermediate_size": 32)"))
              .moe_intermediate_size == 32);
    CHECK(read(with(R"("intermediate_size": 256, "num_experts": 8, "moe_intermediate_size": 0)"))
              .moe_intermediate_size == 0);
    CHECK(read(with(R"("moe_intermediate_size": 32)")).moe_intermediate_size == 32);
  }
  SUBCASE("top-k: 0 without experts") {
    CHECK(read(with(R"("num_experts_per_tok": 4)")).num_experts_per_tok == 0);
    CHECK(read(with(R"("num_experts_per_tok": 4, "num_experts": 0)")).num_experts_per_tok == 0);
    CHECK(read(with(R"("num_experts_per_tok": 4, "num_experts": 8)")).num_experts_per_tok == 4);
  }
  SUBCASE("gate: by the model type, where no key says") {
    CHECK(read(with(R"("model_type": "qwen3_next")")).attn_gated);
    CHECK(read(with(R"("model_type": "qwen3_next_vl")")).attn_gated);
    CHECK_FALSE(read(with(R"("model_type": "qwen3")")).attn_gated);
    CHECK_FALSE(read(with(R"("model_type": "my_qwen3_next")")).attn_gated);
    CHECK_FALSE(read(with(R"("model_type": "Qwen3_Next")")).attn_gated);
    CHECK_FALSE(read(with(R"("model_type": "qwen3_next", "attn_output_gate": false)")).attn_gated);
    CHECK_FALSE(read(with(R"("model_type": "qwen3_next", "attn_gated": false)")).attn_gated);
  }
  SUBCASE("MRoPE: at the top or inside rope_scaling") {
    CHECK(read(with(R"("mrope_interleaved": true)")).mrope_interleaved);
    CHECK(read(with(R"("rope_scaling": {"mrope_interleaved": true})")).mrope_interleaved);
    CHECK(read(with(R"("mrope_interleaved": false, "rope_scaling": {"mrope_interleaved": true})"))
              .mrope_interleaved);
    CHECK(read(with(R"("mrope_interleaved": true, "rope_scaling": {"mrope_interleaved": false})"))
              .mrope_interleaved);
    CHECK_FALSE(
        read(with(R"("mrope_interleaved": false, "rope_scaling": {"factor": 8.0})")).mrope_interleaved);
  }
}

TEST_CASE("SSM layers") {
  SUBCASE("by list") {
    CHECK(read(with(R"("layer_types": ["linear_attention", "full_attention", "linear_attention", "mamba"])"))
              .num_ssm_layers == 2);
    CHECK(read(with(R"("layer_types": ["Linear_Attention", "linear_attention ", ""])")).num_ssm_layers == 0);
  }
  SUBCASE("by interval") {
    CHECK(read(with(R"("num_hidden_layers": 48, "full_attention_interval": 4)")).num_ssm_layers == 36);
    CHECK(read(with(R"("num_hidden_layers": 10, "full_attention_interval": 4)")).num_ssm_layers == 8);
    CHECK(read(with(R"("num_hidden_layers": 3, "full_attention_interval": 4)")).num_ssm_layers == 3);
    CHECK(read(with(R"("num_hidden_layers": 3, "full_attention_interval": 1)")).num_ssm_layers == 0);
    CHECK(read(with(R"("full_attention_interval": 4)")).num_ssm_layers == 0);
  }
  SUBCASE("an interval of 0 counts as absent") {
    CHECK(read(with(R"("num_hidden_layers": 48, "full_attention_interval": 0)")).num_ssm_layers == 0);
    CHECK(read(with(R"("num_hidden_layers": 48)")).num_ssm_layers == 0);
  }
  SUBCASE("a list decides even when it is empty") {
    CHECK(read(with(R"("num_hidden_layers": 48, "full_attention_interval": 4, "layer_types": [])"))
              .num_ssm_layers == 0);
    CHECK(read(with(R"("num_hidden_layers": 48, "full_attention_interval": 4,
                       "layer_types": ["linear_attention"])"))
              .num_ssm_layers == 1);
  }
}

TEST_CASE("text_config overrides the object around it, key by key") {
  const model_config merged = read(R"({"hidden_size": 1, "vocab_size": 9, "num_attention_heads": 3,
      "text_config": {"hidden_size": 64, "vocab_size": null, "num_attention_heads": 4}})");
  CHECK(merged.hidden_size == 64);
  CHECK(merged.vocab_size == 9);
  CHECK(merged.num_attention_heads == 4);
  CHECK(merged.head_dim == 16);

  CHECK(read(R"({"text_config": {"hidden_size": 64, "num_attention_heads": 4}})") == read(with("")));
  CHECK(read(with(R"("text_config": {})")) == read(with("")));

  // What text_config says wins, by whatever name; the first of the order does within one object.
  CHECK(read(with(R"("num_experts": 3, "text_config": {"num_local_experts": 7})")).num_experts == 7);
  CHECK(read(with(R"("num_experts": 8, "text_config": {"n_routed_experts": 4})")).num_experts == 4);
  CHECK(read(with(R"("num_experts": 8, "text_config": {"n_routed_experts": null})")).num_experts == 8);
  CHECK(read(with(R"("text_config": {"num_local_experts": 7, "n_routed_experts": 5})")).num_experts == 5);
  CHECK(read(with(R"("num_local_experts": 7, "text_config": {"num_experts": 3})")).num_experts == 3);
  CHECK(read(with(R"("num_experts": null, "text_config": {"num_local_experts": 7})")).num_experts == 7);

  // One level deep: an object inside replaces the one outside, and a second text_config is none.
  CHECK_FALSE(read(with(R"("rope_scaling": {"mrope_interleaved": true},
                           "text_config": {"rope_scaling": {}})"))
                  .mrope_interleaved);
  CHECK(read(with(R"("text_config": {"rope_scaling": {"mrope_interleaved": true}})")).mrope_interleaved);
  CHECK(read(with(R"("mrope_interleaved": true, "text_config": {"rope_scaling": {}})")).mrope_interleaved);
  CHECK(read(with(R"("text_config": {"text_config": {"hidden_size": 99}})")).hidden_size == 64);

  CHECK(read(with(R"("model_type": "vision", "text_config": {"model_type": "qwen3_next"})")).attn_gated);
  CHECK(read(with(R"("num_hidden_layers": 8, "layer_types": ["full_attention"],
                     "text_config": {"layer_types": ["linear_attention", "linear_attention"]})"))
            .num_ssm_layers == 2);
  CHECK(
      read(with(R"("num_hidden_layers": 8, "text_config": {"full_attention_interval": 2})")).num_ssm_layers ==
      4);

  // What is overridden is not looked at.
  CHECK(read(R"({"hidden_size": "?", "text_config": {"hidden_size": 64, "head_dim": 1}})").hidden_size == 64);
}

TEST_CASE("keys that are not read may hold anything, and the last of two equal keys counts") {
  CHECK(read(with(R"("n_group": -1, "rope_theta": 1e6, "quantization_config": {"bits": [4.5, null]},
                     "Hidden_Size": 5, "\u0000": "\ud83d\ude00", "": {},
                     "rope_scaling": {"factor": "x"})")) == read(with("")));
  CHECK(read(with(R"("hidden_size": 128)")).hidden_size == 128);
  CHECK(read(with(R"("vocab_size": "?", "vocab_size": 7)")).vocab_size == 7);
  CHECK(read(with(R"("vocab_size": 7, "vocab_size": null)")).vocab_size == 0);
}

TEST_CASE("numbers up to 2^63 - 1") {
  CHECK(read(with(R"("vocab_size": 9223372036854775807)")).vocab_size == 9223372036854775807);
  CHECK(read(with(R"("vocab_size": 0)")).vocab_size == 0);
  CHECK(read(with(R"("vocab_size": -0)")).vocab_size == 0);
  CHECK(read(R"({"hidden_size": 1, "num_attention_heads": 1})").hidden_size == 1);
}

TEST_CASE("a byte order mark and blanks around the object are no harm") {
  CHECK(read("\xEF\xBB\xBF \r\n\t" + with("") + "\r\n \t") == read(with("")));
}

// --- Refusals: values -------------------------------------------------------------------

TEST_CASE("refused: wrong values") {
  const std::string wanted = "; wanted an integer from 0 to 9223372036854775807";
  SUBCASE("wrong type") {
    CHECK(refusal(with(R"("vocab_size": "4096")")) == R"(x.json: vocab_size: is the string "4096")" + wanted);
    CHECK(refusal(with(R"("vocab_size": true)")) == "x.json: vocab_size: is true" + wanted);
    CHECK(refusal(with(R"("vocab_size": false)")) == "x.json: vocab_size: is false" + wanted);
    CHECK(refusal(with(R"("vocab_size": [1, 2])")) == "x.json: vocab_size: is an array" + wanted);
    CHECK(refusal(with(R"("vocab_size": {"a": 1})")) == "x.json: vocab_size: is an object" + wanted);
  }
  SUBCASE("negative") {
    CHECK(refusal(with(R"("vocab_size": -1)")) == "x.json: vocab_size: is -1 (negative)" + wanted);
    CHECK(refusal(with(R"("vocab_size": -9223372036854775808)")) ==
          "x.json: vocab_size: is -9223372036854775808 (negative)" + wanted);
    CHECK(refusal(with(R"("vocab_size": -99999999999999999999)")) ==
          "x.json: vocab_size: is -1e+20 (negative)" + wanted);
  }
  SUBCASE("not an integer, also when it is whole") {
    const std::string plainly = wanted + ", written without a point or an exponent";
    CHECK(refusal(with(R"("vocab_size": 3.5)")) == "x.json: vocab_size: is 3.5" + plainly);
    CHECK(refusal(with(R"("vocab_size": 3.0)")) == "x.json: vocab_size: is 3.0" + plainly);
    CHECK(refusal(with(R"("vocab_size": 4e3)")) == "x.json: vocab_size: is 4000.0" + plainly);
    CHECK(refusal(with(R"("vocab_size": -0.0)")) == "x.json: vocab_size: is -0.0" + plainly);
  }
  SUBCASE("past 2^63 - 1") {
    CHECK(refusal(with(R"("vocab_size": 9223372036854775808)")) ==
          "x.json: vocab_size: is 9223372036854775808 (too large)" + wanted);
    CHECK(refusal(with(R"("vocab_size": 18446744073709551615)")) ==
          "x.json: vocab_size: is 18446744073709551615 (too large)" + wanted);
    CHECK(refusal(with(R"("vocab_size": 18446744073709551616)")) ==
          "x.json: vocab_size: is 1.8446744073709552e+19 (too large)" + wanted);
    CHECK(refusal(with(R"("vocab_size": 1e300)")) == "x.json: vocab_size: is 1e+300 (too large)" + wanted);
    CHECK(refusal(with(R"("vocab_size": 1e400)")) ==
          "x.json: cannot be read as JSON: number overflow parsing '1e400'");
  }
  SUBCASE("the message names the spelling that was found, and where") {
    CHECK(refusal(with(R"("num_local_experts": -8)")) ==
          "x.json: num_local_experts: is -8 (negative)" + wanted);
    CHECK(refusal(with(R"("num_experts": 8, "text_config": {"num_experts": "8"})")) ==
          R"(x.json: text_config.num_experts: is the string "8")" + wanted);
    CHECK(refusal(with(R"("text_config": {"attention_head_dim": 1.5})")) ==
          "x.json: text_config.attention_head_dim: is 1.5" + wanted +
              ", written without a point or an exponent");
  }
  SUBCASE("every integer key, every spelling") {
    for (const config_key& key : config_keys()) {
      if (key.number == nullptr) continue;
      for (const std::string_view spelling : key.spellings) {
        if (spelling.empty()) continue;
        const std::string quoted = "\"" + std::string{spelling} + "\": ";
        const std::string at = "x.json: " + std::string{spelling} + ": is ";
        CHECK(refusal(with(quoted + "-1")).starts_with(at + "-1 (negative); wanted an integer from "));
        CHECK(refusal(with(quoted + "\"1\"")).starts_with(at + "the string \"1\"; wanted an integer from "));
      }
    }
    CHECK(refusal(with(R"("full_attention_interval": -4)")) ==
          "x.json: full_attention_interval: is -4 (negative)" + wanted);
    // Checked although the list decides.
    CHECK(refusal(with(R"("full_attention_interval": "4", "layer_types": [])")) ==
          R"(x.json: full_attention_interval: is the string "4")" + wanted);
    CHECK(refusal(with(R"("num_experts_per_tok": "4")")) ==
          R"(x.json: num_experts_per_tok: is the string "4")" + wanted);
  }
  SUBCASE("flags") {
    CHECK(refusal(with(R"("attn_output_gate": 1)")) ==
          "x.json: attn_output_gate: is 1; wanted true or false");
    CHECK(refusal(with(R"("attn_gated": "true")")) ==
          R"(x.json: attn_gated: is the string "true"; wanted true or false)");
    CHECK(refusal(with(R"("mrope_interleaved": 0)")) ==
          "x.json: mrope_interleaved: is 0; wanted true or false");
    CHECK(refusal(with(R"("rope_scaling": {"mrope_interleaved": []})")) ==
          "x.json: rope_scaling.mrope_interleaved: is an array; wanted true or false");
    CHECK(refusal(with(R"("text_config": {"rope_scaling": {"mrope_interleaved": "no"}})")) ==
          R"(x.json: text_config.rope_scaling.mrope_interleaved: is the string "no"; wanted true or false)");
  }
  SUBCASE("objects and strings") {
    CHECK(refusal(with(R"("text_config": [])")) == "x.json: text_config: is an array; wanted an object");
    CHECK(refusal(with(R"("rope_scaling": "yarn")")) ==
          R"(x.json: rope_scaling: is the string "yarn"; wanted an object)");
    CHECK(refusal(with(R"("text_config": {"rope_scaling": 2})")) ==
          "x.json: text_config.rope_scaling: is 2; wanted an object");
    CHECK(refusal(with(R"("model_type": 3)")) == "x.json: model_type: is 3; wanted a string");
  }
  SUBCASE("layer_types") {
    CHECK(refusal(with(R"("layer_types": "linear_attention")")) ==
          R"(x.json: layer_types: is the string "linear_attention"; wanted an array of strings)");
    CHECK(refusal(with(R"("layer_types": {})")) ==
          "x.json: layer_types: is an object; wanted an array of strings");
    CHECK(refusal(with(R"("layer_types": ["linear_attention", 5])")) ==
          "x.json: layer_types[1]: is 5; wanted a string");
    CHECK(refusal(with(R"("layer_types": [null])")) == "x.json: layer_types[0]: is null; wanted a string");
    CHECK(refusal(with(R"("text_config": {"layer_types": [["linear_attention"]]})")) ==
          "x.json: text_config.layer_types[0]: is an array; wanted a string");
  }
}

TEST_CASE("refused: missing keys") {
  const std::string hidden = "wanted an integer from 1 to 9223372036854775807";
  CHECK(refusal("{}") == "x.json: hidden_size: is missing; " + hidden);
  CHECK(refusal(R"({"hidden_size": null})") == "x.json: hidden_size: is missing; " + hidden);
  CHECK(refusal(R"({"hidden_size": 0})") == "x.json: hidden_size: is 0; " + hidden);
  CHECK(refusal(with(R"("text_config": {"hidden_size": 0})")) ==
        "x.json: text_config.hidden_size: is 0; " + hidden);

  const std::string heads =
      "x.json: num_attention_heads: is missing; wanted it or head_dim: without head_dim, "
      "a head is as wide as hidden_size / num_attention_heads (0 heads: no attention)";
  CHECK(refusal(R"({"hidden_size": 64})") == heads);
  CHECK(refusal(R"({"hidden_size": 64, "num_attention_heads": null, "head_dim": null})") == heads);
}

// --- Refusals: text ---------------------------------------------------------------------

TEST_CASE("refused: no JSON") {
  const char* const texts[] = {"",
                               " \n",
                               "{",
                               "}",
                               "{]",
                               "[1, 2",
                               R"({"a": })",
                               R"({"a": 64,})",
                               "{'a': 64}",
                               R"({"a": 064})",
                               R"({"a": +64})",
                               R"({"a": NaN})",
                               R"({"a": 0x40})",
                               R"({"a" 64})",
                               "{a: 64}",
                               "nul",
                               "{} {}",
                               "{}x",
                               "// comment\n{}",
                               "\xFF\xFE{}",
                               "{\"a\": \"\x01\"}",
                               R"({"a": "\ud800"})",
                               R"({"a": "\x"})",
                               "\xEF\xBB{}"};
  for (const char* const text : texts) {
    CAPTURE(text);
    const std::string message = refusal(text);
    CHECK(message.starts_with("x.json: cannot be read as JSON: parse error at line "));
    CHECK(is_one_clean_line(message));
    CHECK_FALSE(contains(message, "json.exception"));
  }
  const std::string third_line = refusal("{\n  \"vocab_size\": 3,\n  \"hidden_size\" \"64\"\n}");
  CHECK(contains(third_line, "line 3, column 20"));
  // The parser alone would stop at a zero byte and be content.
  CHECK(refusal(with("") + std::string("\0 and more", 10)) ==
        "x.json: cannot be read as JSON: byte 46 is zero; wanted UTF-8 text");
  CHECK(refusal(std::string("\xFF\xFE{\0}\0", 6)) ==
        "x.json: cannot be read as JSON: byte 4 is zero; wanted UTF-8 text");
  CHECK(refusal(std::string("\0", 1)) == "x.json: cannot be read as JSON: byte 1 is zero; wanted UTF-8 text");
}

TEST_CASE("refused: no object at the top") {
  CHECK(refusal("[]") == "x.json: the top level is an array; wanted an object of config.json keys");
  CHECK(refusal("64") == "x.json: the top level is 64; wanted an object of config.json keys");
  CHECK(refusal("null") == "x.json: the top level is null; wanted an object of config.json keys");
  CHECK(refusal("true") == "x.json: the top level is true; wanted an object of config.json keys");
  CHECK(refusal("\"a\"") ==
        R"(x.json: the top level is the string "a"; wanted an object of config.json keys)");
}

std::string repeated(std::string_view part, std::size_t times) {
  std::string text;
  text.reserve(part.size() * times);
  for (std::size_t done = 0; done < times; ++done) text.append(part);
  return text;
}

TEST_CASE("nesting: 64 deep is read, deeper is refused without being built") {
  const std::string too_deep = "x.json: nested deeper than 64 arrays and objects";
  // The object around them is the first level.
  CHECK(read(with("\"deep\": " + repeated("[", 63) + repeated("]", 63))).hidden_size == 64);
  CHECK(refusal(with("\"deep\": " + repeated("[", 64) + repeated("]", 64))) == too_deep);
  CHECK(read(with("\"deep\": " + repeated("{\"a\": ", 63) + "1" + repeated("}", 63))).hidden_size == 64);
  CHECK(refusal(with("\"deep\": " + repeated("{\"a\": ", 64) + "1" + repeated("}", 64))) == too_deep);
  // Side by side is not deep.
  CHECK(read(with("\"wide\": [" + repeated("[], {}, ", 1000) + "0]")).hidden_size == 64);

  CHECK(refusal(repeated("[", 1000000)) == too_deep);
  CHECK(refusal(repeated("[", 1000000) + repeated("]", 1000000)) == too_deep);
  CHECK(refusal(repeated("{\"a\":", 1000000)) == too_deep);
  CHECK(refusal(repeated("[{\"a\":", 1000000)) == too_deep);
}

TEST_CASE("size: 16 MiB are read, a byte more is refused") {
  static_assert(planner::largest_config_bytes == 16777216);
  std::string text = with("");
  text.resize(16777216, ' ');
  CHECK(read(text).hidden_size == 64);
  text.push_back(' ');
  CHECK(refusal(text) == "x.json: has more than 16777216 bytes (16 MiB); "
                         "wanted the config.json of a model, without its weights");
}

TEST_CASE("an input without end is refused too") {
  struct endless final : std::streambuf {
    char block[4096] = {};
    int_type underflow() override {
      setg(block, block, block + sizeof(block));
      return traits_type::to_int_type(block[0]);
    }
  } buffer;
  std::istream input(&buffer);
  CHECK_THROWS_WITH_AS(read_model_config(input, "endless"), doctest::Contains("has more than 16777216 bytes"),
                       config_error);
}

TEST_CASE("a stream that fails is not taken for a short config") {
  struct broken final : std::streambuf {
    std::string text = with("");
    bool given = false;
    int_type underflow() override {
      if (given) throw std::ios_base::failure("the device is gone");
      given = true;
      setg(text.data(), text.data(), text.data() + text.size());
      return traits_type::to_int_type(text[0]);
    }
  } buffer;
  std::istream input(&buffer);
  CHECK_THROWS_WITH_AS(read_model_config(input, "device"), "device: reading failed", config_error);

  std::istringstream failed(with(""));
  failed.setstate(std::ios_base::failbit);
  CHECK_THROWS_WITH_AS(read_model_config(failed, "failed"), "failed: cannot be read", config_error);
}

TEST_CASE("messages stay one short line of valid text, whatever the input is") {
  SUBCASE("strings are written as JSON and cut") {
    CHECK(refusal(with(R"("vocab_size": "a\nb\u0000\u001b[31m\u00e9\\\"")")) ==
          R"(x.json: vocab_size: is the string "a\nb\u0000\u001b[31m\u00e9\\\"")"
          "; wanted an integer from 0 to 9223372036854775807");
    CHECK(refusal(with("\"vocab_size\": \"" + std::string(1000000, 'a') + "\"")) ==
          "x.json: vocab_size: is the string \"" + std::string(40, 'a') +
              "...\"; wanted an integer from 0 to 9223372036854775807");
    // Cut in the middle of a character.
    CHECK(refusal(with("\"vocab_size\": \"" + std::string(39, 'a') + "\xC3\xA9\"")) ==
          "x.json: vocab_size: is the string \"" + std::string(39, 'a') +
              "\\ufffd...\"; wanted an integer from 0 to 9223372036854775807");
  }
  SUBCASE("what the parser quotes is cleaned and cut") {
    const std::string invalid = refusal("{\"hidden_size\": \"\xC3(\"}");
    CHECK(contains(invalid, "ill-formed UTF-8 byte"));
    CHECK(contains(invalid, "?("));
    CHECK_FALSE(contains(invalid, "\xC3"));
    CHECK(refusal("{\"a\": \"" + std::string(1000000, 'b')).size() < 300);
    CHECK(is_one_clean_line(refusal("{\"a\": \"" + repeated("\xE2\x82\xAC", 1000))));
  }
  SUBCASE("the source name is cleaned, and kept where it is text") {
    const auto named = [](std::string_view source) -> std::string {
      std::istringstream input("[]");
      try {
        read_model_config(input, source);
      } catch (const config_error& error) {
        return error.what();
      }
      return "not refused";
    };
    const std::string rest = ": the top level is an array; wanted an object of config.json keys";
    CHECK(named("a\nb\x1B[0m\x7F") == "a?b?[0m?" + rest);
    CHECK(named({"a\0b", 3}) == "a?b" + rest);
    const std::string text = "caf\xC3\xA9 \xE6\xA8\xA1 \xF0\x9F\x98\x80";
    CHECK(named(text) == text + rest);
    // A control character of two bytes, the two line separators.
    CHECK(named("\xC2\x9B \xE2\x80\xA8 \xE2\x80\xA9") == "?? ??? ???" + rest);
    // Ill-formed, overlong, half of a surrogate pair, too large, cut short.
    CHECK(named("\xC3 \xFF \x80") == "? ? ?" + rest);
    CHECK(named("\xC0\xAF \xE0\x80\x80 \xF0\x80\x80\x80") == "?? ??? ????" + rest);
    CHECK(named("\xED\xA0\x80 \xF4\x90\x80\x80") == "??? ????" + rest);
    CHECK(named("\xF0\x9F\x98") == "???" + rest);
  }
}

TEST_CASE("values: a million are read, more are refused without being built") {
  const auto zeros = [](std::size_t count) { return with("\"x\": [0" + repeated(",0", count - 1) + "]"); };
  // The object, its two numbers and the array come first.
  CHECK(read(zeros(999996)) == read(with("")));
  CHECK(refusal(zeros(999997)) == "x.json: has more than 1000000 values; wanted the config.json of a model");
}

// --- Overrides and missing keys -----------------------------------------------------------

planner::read_config read_with(const std::string& text,
                               const std::vector<planner::config_override>& overrides) {
  return planner::read_whole_config(text, "x.json", overrides);
}

TEST_CASE("overrides replace what the config says, by whatever name and wherever it does") {
  CHECK(read_with(with(R"("n_routed_experts": 5)"), {{"num_experts", "64"}}).model.num_experts == 64);
  CHECK(read_with(with(R"("num_experts": 5)"), {{"n_routed_experts", "64"}}).model.num_experts == 64);
  CHECK(read_with(with(R"("text_config": {"num_experts": 5})"), {{"num_experts", "64"}}).model.num_experts ==
        64);
  CHECK(read_with(with(""), {{"vocab_size", "1"}, {"vocab_size", "2"}}).model.vocab_size == 2);
  CHECK(read_with(with(""), {{"attn_gated", "true"}}).model.attn_gated);
  CHECK(read_with(with(""), {{"model_type", "qwen3_next"}}).model.attn_gated);
  CHECK(read_with(with(R"("vocab_size": 9)"), {{"vocab_size", "null"}}).model.vocab_size == 0);
  CHECK(read_with("{}", {{"hidden_size", "64"}, {"head_dim", "8"}}).model.hidden_size == 64);
  const auto problem = [](const char* key, const char* value) {
    try {
      read_with(with(""), {{key, value}});
    } catch (const config_error& error) {
      return std::string{error.what()};
    }
    return std::string{"not refused"};
  };
  CHECK(problem("frob", "1") == "--set: frob: no key that can be set; see stowage --config-help");
  CHECK(problem("", "1") == "--set: : no key that can be set; see stowage --config-help");
  CHECK(problem("text_config", "{}") ==
        "--set: text_config: no key that can be set; see stowage --config-help");
  CHECK(problem("vocab_size", "many") ==
        "x.json: vocab_size: is the string \"many\"; wanted an integer from 0 to 9223372036854775807");
}

TEST_CASE("keys that matter for the model and are not there are named") {
  using lines = std::vector<std::string>;
  const auto missing = [](std::string_view more) { return read_with(with(more), {}).missing; };
  CHECK(missing("") == lines{"vocab_size: absent, counts as 0", "intermediate_size: absent, counts as 0"});
  CHECK(missing(R"("vocab_size": 0, "intermediate_size": 1)") == lines{});
  CHECK(missing(R"("vocab_size": 1, "num_experts": 8, "moe_intermediate_size": 4)") ==
        lines{"num_experts_per_tok: absent, counts as 0, though num_experts is 8"});
  CHECK(missing(R"("vocab_size": 1, "intermediate_size": 1, "kv_lora_rank": 5)") ==
        lines{"qk_rope_head_dim: absent, counts as 0, though kv_lora_rank is 5"});
}

// --- Refusals: files --------------------------------------------------------------------

TEST_CASE("files") {
  const temporary_folder folder;
  const auto write = [](const std::filesystem::path& path, std::string_view text) {
    std::ofstream(path, std::ios::binary) << text;
  };

  SUBCASE("a regular file, also through a link") {
    write(folder / "config.json", with("\"vocab_size\": 7"));
    CHECK(read_model_config_file(folder / "config.json").vocab_size == 7);
    std::filesystem::create_symlink(folder / "config.json", folder / "link.json");
    CHECK(read_model_config_file(folder / "link.json").vocab_size == 7);
  }
  SUBCASE("the message begins with the path") {
    write(folder / "config.json", with("\"vocab_size\": -7"));
    CHECK(file_refusal(folder / "config.json") ==
          (folder / "config.json").string() +
              ": vocab_size: is -7 (negative); wanted an integer from 0 to 9223372036854775807");
    write(folder / "two\nlines.json", "[]");
    CHECK(is_one_clean_line(file_refusal(folder / "two\nlines.json")));
    CHECK(contains(file_refusal(folder / "two\nlines.json"), "two?lines.json: the top level is an array"));
  }
  SUBCASE("no file") {
    CHECK(file_refusal(folder / "none.json") == (folder / "none.json").string() + ": no such file");
    CHECK(file_refusal(folder / "none/config.json") ==
          (folder / "none/config.json").string() + ": no such file");
    CHECK(file_refusal("") == "(empty path): no such file");
    std::filesystem::create_symlink(folder / "none.json", folder / "dangling.json");
    CHECK(file_refusal(folder / "dangling.json") == (folder / "dangling.json").string() + ": no such file");
  }
  SUBCASE("a path that cannot be looked at") {
    std::filesystem::create_symlink(folder / "loop.json", folder / "loop.json");
    CHECK(contains(file_refusal(folder / "loop.json"), "loop.json: cannot be looked at: "));
    CHECK(contains(file_refusal(folder / std::string(5000, 'a')), ": cannot be looked at: "));
  }
  SUBCASE("a directory is read by its config.json") {
    std::filesystem::create_directory(folder / "model");
    CHECK(file_refusal(folder / "model") ==
          (folder / "model").string() + ": is a directory without a config.json");
    write(folder / "model/config.json", with("\"vocab_size\": 7"));
    CHECK(read_model_config_file(folder / "model").vocab_size == 7);
    write(folder / "model/config.json", "[]");
    CHECK(contains(file_refusal(folder / "model"), "model/config.json: the top level is an array"));
    std::filesystem::remove(folder / "model/config.json");
    std::filesystem::create_directory(folder / "model/config.json");
    CHECK(file_refusal(folder / "model") ==
          (folder / "model/config.json").string() + ": is a directory; wanted a file");
  }
  SUBCASE("a FIFO is read to its end") {
    const std::filesystem::path fifo = folder / "fifo.json";
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    std::thread writer([&] { write(fifo, with("\"vocab_size\": 7")); });
    CHECK(read_model_config_file(fifo).vocab_size == 7);
    writer.join();
  }
  SUBCASE("a FIFO without a writer, or one that says nothing, is given up") {
    const std::filesystem::path fifo = folder / "fifo.json";
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    const planner::patience short_one{std::chrono::milliseconds{50}, std::chrono::milliseconds{200}};
    const auto given_up = [&] {
      std::string source;
      try {
        planner::read_config_text(fifo, source, short_one);
      } catch (const config_error& error) {
        return std::string{error.what()};
      }
      return std::string{"not refused"};
    };
    const std::string silent =
        fifo.string() + ": nothing came for 50 ms; wanted a config.json, and then the end of the file";
    CHECK(given_up() == silent);
    const int both_ends = ::open(fifo.c_str(), O_RDWR | O_CLOEXEC);
    REQUIRE(both_ends >= 0);
    CHECK(given_up() == silent);
    // One that drips is given up too.
    std::atomic<bool> done = false;
    std::thread drips([&] {
      while (!done && ::write(both_ends, " ", 1) == 1)
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    });
    CHECK(given_up() ==
          fifo.string() +
              ": is not complete after 200 ms; wanted a config.json, and then the end of the file");
    done = true;
    drips.join();
    ::close(both_ends);
  }
  SUBCASE("a device without an end") {
    if (std::filesystem::is_character_file("/dev/zero")) {
      CHECK(contains(file_refusal("/dev/zero"), "/dev/zero: has more than 16777216 bytes (16 MiB)"));
    }
  }
  SUBCASE("a file that may not be read") {
    write(folder / "secret.json", with(""));
    std::filesystem::permissions(folder / "secret.json", std::filesystem::perms::none);
    // A superuser may read it all the same.
    if (::access((folder / "secret.json").c_str(), R_OK) != 0) {
      CHECK(contains(file_refusal(folder / "secret.json"), "secret.json: cannot be opened: "));
    }
  }
  SUBCASE("an empty file") {
    write(folder / "empty.json", "");
    CHECK(contains(file_refusal(folder / "empty.json"),
                   "empty.json: cannot be read as JSON: parse error at line 1"));
  }
  SUBCASE("a large file") {
    write(folder / "large.json", repeated(" ", 16777217));
    CHECK(contains(file_refusal(folder / "large.json"), "large.json: has more than 16777216 bytes (16 MiB)"));
  }
}

} // namespace
