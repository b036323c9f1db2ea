#include <stowage/llm/forward_buffers.hpp>

#include <cstddef>
#include <cstdint>

namespace {

using stowage::tokens;
using stowage::llm::forward_buffers;
using stowage::llm::forward_params;
using stowage::llm::levers;

// qwen3-next-80b-a3b of examples/configs: M = 1, S = 4096, B = 16, N = 32.
constexpr forward_params qwen3_next(std::size_t batch) {
  forward_params params{{.vocab_size = 151936,
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
                         .attn_gated = true}};
  params.max_batch_tokens = tokens{batch};
  params.max_seq_len = 4096;
  params.kv_block_size = 16;
  params.max_batch_size = 32;
  params.sm_count = 132;
  return params;
}

constexpr auto one = stowage::make_plan<forward_buffers>(qwen3_next(1));
static_assert(one.field_count == 46);
static_assert(one.bytes<&forward_buffers::hidden_states>() == 4096);       // 2048 * 2
static_assert(one.bytes<&forward_buffers::qkv_output>() == 294912);        // 16 * (32 + 4) * 256 * 2
static_assert(one.bytes<&forward_buffers::attn_output>() == 8192);         // 16 * 256 * 2
static_assert(one.bytes<&forward_buffers::gate_logits>() == 1024);         // 512 * 2
static_assert(one.bytes<&forward_buffers::logits>() == 303872);            // 151936 * 2
static_assert(one.bytes<&forward_buffers::ssm_qkvz>() == 393216);          // 16 * 12288 * 2
static_assert(one.bytes<&forward_buffers::ssm_ba>() == 256);               // 64 * 2, floor 256
static_assert(one.bytes<&forward_buffers::ssm_deinterleaved>() == 393216); // 16 * 12288 * 2
static_assert(one.bytes<&forward_buffers::ssm_gates>() == 256);            // 2 * 32 * 4
static_assert(one.bytes<&forward_buffers::scratch>() == 32768 + 24 * 160 + 160 * 257 * 4);
static_assert(one.bytes<&forward_buffers::moe_fp8_scratch>() == 136964);
static_assert(one.bytes<&forward_buffers::gdn_fla_scratch>() ==
              (1 + 16) * 32 * (3 * 64 * 128 * 2 + 128 * 128 * 2 + 64 * 4));
static_assert(one.bytes<&forward_buffers::splitk_workspace>() == 132 * 258 * 4);
static_assert(!one.present<&forward_buffers::ffn_act_a>() && !one.present<&forward_buffers::lora_xa>());
static_assert(one.bytes<&forward_buffers::hc_streams>() == 256);
static_assert(one.layout<&forward_buffers::hc_streams>().state == stowage::field_state::placeholder);

// One token of a capacity of 8193: padded buffers are cleared to 16 rows, not whole.
constexpr auto large = stowage::make_plan<forward_buffers>(qwen3_next(8193));
static_assert(large.bytes<&forward_buffers::qkv_output>() == 8208u * 9216 * 2);
static_assert(large.zero_bytes<&forward_buffers::qkv_output>(tokens{1}) == 16 * 9216 * 2);
static_assert(large.zero_bytes<&forward_buffers::qkv_output>(tokens{17}) == 32 * 9216 * 2);
static_assert(large.zero_bytes<&forward_buffers::moe_output>(tokens{1}) == 16 * 2048 * 2);
static_assert(large.zero_bytes<&forward_buffers::ssm_deinterleaved>(tokens{1}) == 16 * 12288 * 2);
// Keys (hidden by the projection's rows) and values, from row 8193.
static_assert(large.zero_bytes<&forward_buffers::ssm_qkvz>(tokens{1}) == 16 * 12288 * 2 + 16 * 512 * 2);
static_assert(large.zero_bytes<&forward_buffers::hidden_states>(tokens{1}) == 4096);
static_assert(large.zero_bytes<&forward_buffers::hidden_states>(tokens{8193}) == 8193u * 4096);
static_assert(large.zero_rows_bytes(tokens{8193}) == large.zero_all_bytes());

// The levers bring their buffers.
constexpr forward_params with_levers = [] {
  forward_params params = qwen3_next(1);
  params.adapter_max_rank = 16;
  params.switches = levers{.gguf_native_q2 = true, .gguf_native_q2_mmq = true, .fp8_rowwise = true};
  return params;
}();
constexpr auto armed = stowage::make_plan<forward_buffers>(with_levers);
static_assert(armed.bytes<&forward_buffers::q2_dequant_scratch>() == 12288u * 2048 * 2);
static_assert(armed.bytes<&forward_buffers::q2_act_q8>() == 4 * 5632 + 1048576);
static_assert(armed.bytes<&forward_buffers::lora_xa>() == 16 * 2);
static_assert(armed.bytes<&forward_buffers::lora_delta>() == 2 * 16 * 256 * 2);
static_assert(armed.bytes<&forward_buffers::ssm_rowwise_w_bf16>() ==
              36u * (12288u * 2048 * 2 + 2048u * 4096 * 2));
static_assert(armed.hash() != one.hash());

// Offsets are aligned and nothing overlaps: each field ends before the next one in the slab begins.
constexpr bool is_packed(const stowage::llm::forward_plan& plan) {
  for (std::size_t field = 0; field < 46; ++field) {
    if (plan.bytes(field) == 0) continue;
    if (plan.offset(field) % 256 != 0 || plan.offset(field) + plan.bytes(field) > plan.slab_bytes())
      return false;
    for (std::size_t other = 0; other < 46; ++other) {
      if (other == field || plan.bytes(other) == 0 || plan.offset(other) < plan.offset(field)) continue;
      if (plan.offset(other) < plan.offset(field) + plan.bytes(field)) return false;
    }
  }
  return true;
}
static_assert(is_packed(one) && is_packed(armed));

} // namespace
