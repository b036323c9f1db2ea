#pragma once

// Models of examples/configs, as the planner reads them, for tests and benchmarks; `capacity` is M.

#include <stowage/llm/forward_params.hpp>

#include <cstddef>

namespace test {

/// 32 sequences of at most 4096 tokens, 132 multiprocessors.
constexpr stowage::llm::forward_params engine_limits(std::size_t capacity) {
  stowage::llm::forward_params params;
  params.max_batch_tokens = stowage::tokens{capacity};
  params.max_seq_len = 4096;
  params.kv_block_size = 16;
  params.max_batch_size = 32;
  params.sm_count = 132;
  return params;
}

constexpr stowage::llm::forward_params qwen3_next(std::size_t capacity) {
  stowage::llm::forward_params params = engine_limits(capacity);
  params.vocab_size = 151936;
  params.hidden_size = 2048;
  params.intermediate_size = 5632;
  params.num_hidden_layers = 48;
  params.num_attention_heads = 16;
  params.num_key_value_heads = 2;
  params.head_dim = 256;
  params.attn_gated = true;
  params.linear_num_key_heads = 16;
  params.linear_key_head_dim = 128;
  params.linear_num_value_heads = 32;
  params.linear_value_head_dim = 128;
  params.num_ssm_layers = 36;
  params.num_experts = 512;
  params.num_experts_per_tok = 10;
  params.moe_intermediate_size = 512;
  params.shared_expert_intermediate_size = 512;
  return params;
}

constexpr stowage::llm::forward_params deepseek_v3(std::size_t capacity) {
  stowage::llm::forward_params params = engine_limits(capacity);
  params.vocab_size = 129280;
  params.hidden_size = 7168;
  params.intermediate_size = 18432;
  params.num_hidden_layers = 61;
  params.num_attention_heads = 128;
  params.num_key_value_heads = 128;
  params.head_dim = 56; // hidden_size / num_attention_heads
  params.num_experts = 256;
  params.num_experts_per_tok = 8;
  params.moe_intermediate_size = 2048;
  params.kv_lora_rank = 512;
  params.q_lora_rank = 1536;
  params.qk_rope_head_dim = 64;
  return params;
}

constexpr stowage::llm::forward_params llama(std::size_t capacity) {
  stowage::llm::forward_params params = engine_limits(capacity);
  params.vocab_size = 128256;
  params.hidden_size = 4096;
  params.intermediate_size = 14336;
  params.num_hidden_layers = 32;
  params.num_attention_heads = 32;
  params.num_key_value_heads = 8;
  params.head_dim = 128;
  return params;
}

} // namespace test
