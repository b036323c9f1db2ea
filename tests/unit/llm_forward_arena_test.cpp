// The forward arena against the independent reference: ten models, four batch sizes, with and without levers.

#include "layout_checker.hpp"
#include "memory.hpp"

#include <stowage/arena.hpp>
#include <stowage/backend/recording.hpp>
#include <stowage/llm/forward_buffers.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace {

using stowage::tokens;
using stowage::llm::forward_buffers;
using stowage::llm::forward_params;
using stowage::llm::forward_plan;
using stowage::llm::model_config;
using stowage::llm::splitk_kind;

struct named_model {
  const char* name;
  model_config config;
};

#include "forward_arena_table.inc"

constexpr std::size_t fields = 46;
constexpr std::size_t columns = 6 + fields;
static_assert(std::size(expected) == 10 * 4 * 2 * columns);

forward_params params_of(const model_config& model, std::size_t batch, bool levers) {
  forward_params params{model};
  params.max_batch_tokens = tokens{batch};
  params.max_seq_len = 4096;
  params.kv_block_size = 16;
  params.max_batch_size = 32;
  params.sm_count = 132;
  if (levers) {
    params.adapter_max_rank = 16;
    params.switches = {true, true, true, {splitk_kind::automatic, 0}};
  }
  return params;
}

std::size_t policy_of(std::size_t field) {
  constexpr std::string_view full = " logits scratch splitk_workspace ";
  constexpr std::string_view rows =
      " hidden_states residual norm_output qkv_output attn_output gate_logits moe_output "
      "ssm_qkvz ssm_ba ssm_deinterleaved ssm_gates ssm_conv_out_f32 expert_gate_out "
      "expert_up_out expert_down_out ";
  const std::string name = " " + std::string(forward_plan::name(field)) + " ";
  if (full.find(name) != std::string_view::npos) return 1;
  return rows.find(name) != std::string_view::npos ? 0 : 2;
}

TEST_CASE("forward arena: every size, the total and the row passes are those of the reference") {
  for (const std::uint64_t* row = std::begin(expected); row != std::end(expected); row += columns) {
    const named_model& model = models[row[0]];
    CAPTURE(model.name);
    CAPTURE(row[1]);
    CAPTURE(row[2]);
    const auto plan = stowage::make_plan<forward_buffers>(params_of(model.config, row[1], row[2] != 0));
    for (std::size_t field = 0; field < fields; ++field) {
      CAPTURE(plan.name(field));
      CHECK(plan.bytes(field) == row[6 + field]);
    }
    CHECK(plan.total_bytes() == row[3]);
    CHECK(plan.zero_rows_bytes(tokens{1}) == row[4]);
    CHECK(plan.zero_rows_bytes(tokens{17}) == row[5]);
    CHECK(plan.zero_rows_bytes(tokens{row[1]}) == plan.zero_all_bytes());
    test::check_layout_of(plan, policy_of);
  }
}

const forward_params qwen3_next = params_of(models[9].config, 1, false);

TEST_CASE("forward arena: what a row pass clears at M = 8193, T = 1") {
  REQUIRE(std::string_view(models[9].name) == "qwen3-next-80b-a3b");
  forward_params params = qwen3_next;
  params.max_batch_tokens = tokens{8193};
  const auto plan = stowage::make_plan<forward_buffers>(params);
  const tokens one{1};
  CHECK(plan.zero_bytes<&forward_buffers::hidden_states>(one) == 2048 * 2);
  CHECK(plan.zero_bytes<&forward_buffers::qkv_output>(one) == 16 * (16 * 2 + 2 * 2) * 256 * 2);
  CHECK(plan.zero_bytes<&forward_buffers::moe_output>(one) == 16 * 2048 * 2);
  // Keys, values at row 8193, and the larger projection: 16 * 12288 * 2 hides the keys.
  CHECK(plan.zero_bytes<&forward_buffers::ssm_qkvz>(one) == 16 * 12288 * 2 + 16 * 512 * 2);
  CHECK(plan.zero_bytes<&forward_buffers::ssm_gates>(one) == 256);
  CHECK(plan.zero_bytes<&forward_buffers::ssm_gates>(tokens{2}) == 2 * 2 * 32 * 4);
  CHECK(plan.zero_bytes<&forward_buffers::expert_gate_out>(one) == 16 * 5632 * 2);
  CHECK(plan.zero_bytes<&forward_buffers::expert_gate_out>(tokens{17}) == 32 * 5632 * 2);
  CHECK(plan.zero_bytes<&forward_buffers::logits>(one) == 160 * 151936 * 2);
  CHECK(plan.zero_bytes<&forward_buffers::token_ids>(one) == 0);
}

TEST_CASE("forward arena: the decode metadata, part by part") {
  const auto plan = stowage::make_plan<forward_buffers>(qwen3_next);
  const stowage::arena arena(plan, stowage::recording_backend<>{});
  using metadata = stowage::llm::decode_metadata<stowage::llm::symbols::R>;
  const auto& decode = arena->scratch.as<stowage::llm::decode_parts>();
  const metadata& parts = decode.metadata.as<metadata>();
  const auto* start = reinterpret_cast<const std::byte*>(parts.positions.data());
  const auto at = [&](const void* address) { return static_cast<const std::byte*>(address) - start; };
  // R = 32 rows, 4096 / 16 + 1 = 257 blocks.
  CHECK(start - reinterpret_cast<const std::byte*>(arena->scratch.data()) == 32768);
  CHECK(at(parts.seq_slot.data()) == 4 * 32);
  CHECK(at(parts.slots.data()) == 8 * 32);
  CHECK(at(parts.seq_lens.data()) == 16 * 32);
  CHECK(at(parts.block_table.data()) == 24 * 32);
  CHECK(parts.block_table.bytes() == 4 * 32 * 257);
  CHECK(parts.block_table.extents() == std::array<std::size_t, 2>{32, 257});
}

TEST_CASE("forward arena: keys from row 0, values from row M") {
  forward_params params = qwen3_next;
  params.max_batch_tokens = tokens{17};
  const stowage::arena arena(stowage::make_plan<forward_buffers>(params), stowage::recording_backend<>{});
  const auto& parts = arena->ssm_qkvz.as<stowage::llm::key_value_parts>();
  CHECK(static_cast<void*>(parts.keys.data()) == static_cast<void*>(arena->ssm_qkvz.data()));
  CHECK(parts.values.data() - parts.keys.data() == 17 * 512);
  CHECK(parts.keys.extents() == std::array<std::size_t, 2>{32, 512});
}

TEST_CASE("forward arena: passes of a real arena") {
  forward_params params = params_of(models[9].config, 17, false);
  params.vocab_size = 1000; // less memory
  params.linear_num_value_heads = 4;
  params.intermediate_size = 64;
  params.num_experts = 8;
  const auto plan = stowage::make_plan<forward_buffers>(params);
  stowage::recording_backend<> backend;
  stowage::arena arena(plan, backend);
  CHECK(test::first_difference(arena->norm_unit_w.data(), 4096, {{0, 4096}}) == 4096);

  test::poison_bytes(arena.slab(), plan.slab_bytes());
  arena.zero_tagged<stowage::llm::prefill_essentials>();
  for (std::size_t field = 0; field < fields; ++field) {
    CAPTURE(plan.name(field));
    const std::string name = " " + std::string(plan.name(field)) + " ";
    const bool essential = std::string_view(" hidden_states residual gate_logits moe_output expert_gate_out "
                                            "expert_up_out expert_down_out ")
                               .find(name) != std::string_view::npos;
    if (plan.bytes(field) == 0) continue;
    CHECK(test::first_difference(arena.address(field), plan.bytes(field),
                                 {{0, essential ? plan.bytes(field) : 0}}) == plan.bytes(field));
  }

  test::poison_bytes(arena.slab(), plan.slab_bytes());
  arena.zero_all();
  for (std::size_t field = 0; field < fields; ++field) {
    CAPTURE(plan.name(field));
    if (plan.bytes(field) == 0) continue;
    CHECK(test::first_difference(arena.address(field), plan.bytes(field),
                                 {{0, policy_of(field) < 2 ? plan.bytes(field) : 0}}) == plan.bytes(field));
  }
  CHECK(arena.release().ok());
}

TEST_CASE("forward arena: inputs that are refused say which and why") {
  const auto message_of = [](const forward_params& params) -> std::string {
    try {
      static_cast<void>(stowage::make_plan<forward_buffers>(params));
    } catch (const stowage::size_error& error) {
      return error.what();
    }
    return "";
  };
  forward_params params = qwen3_next;
  params.max_batch_size = 129;
  CHECK(message_of(params).find("stowage: field 'logits': input max_batch_size (N) = 129 is above its limit "
                                "of 128, in bf16 [min(M, "
                                "max(R + 1, 160)), vocab]") == 0);
  params = qwen3_next;
  params.max_batch_size = 128;
  CHECK(message_of(params).empty());
  params.hidden_size = -1;
  CHECK(message_of(params).find(
            "stowage: field 'hidden_states': input hidden_size (hidden) = -1 is negative") == 0);
  params = qwen3_next;
  params.hidden_size = std::int64_t{1} << 62;
  params.max_batch_tokens = tokens{16};
  CHECK(message_of(params).find(
            "stowage: field 'hidden_states': 16 * 4611686018427387904 does not fit in 64 bits, in "
            "bf16 [M, hidden]") == 0);
}

TEST_CASE("forward arena: split-K policies") {
  forward_params params = qwen3_next;
  const auto workspace = [&] {
    return stowage::make_plan<forward_buffers>(params).bytes<&forward_buffers::splitk_workspace>();
  };
  CHECK(workspace() == 132 * 258 * 4);
  params.switches.splitk = {splitk_kind::automatic, 0};
  CHECK(workspace() == 32 * 16 * 16 * 258 * 4); // cdiv(264, 16) = 17, at most 16
  params.switches.splitk = {splitk_kind::pinned, 7};
  CHECK(workspace() == 32 * 16 * 7 * 258 * 4);
  params.switches.splitk = {splitk_kind::pinned, 99};
  CHECK(workspace() == 32 * 16 * 16 * 258 * 4);
  params.switches.splitk = {splitk_kind::pinned, 0};
  CHECK(workspace() == 32 * 16 * 1 * 258 * 4);
  params.switches.splitk = {};
  params.sm_count = 0;
  CHECK(workspace() == 1 * 258 * 4);
  params.switches.splitk = {splitk_kind::automatic, 0};
  params.num_attention_heads = 0;
  CHECK(workspace() == 0);
}

} // namespace
