#pragma once

#include <cstdint>

namespace stowage::inline v0_1::llm {

/// What the sizes of a forward pass depend on in a model: numbers and switches of its Hugging Face
/// `config.json`. A plain aggregate that any program can fill; it reads no file. A number the model lacks is
/// 0. The numbers are signed so that a negative one reaches the size formulas as it is and is an error there,
/// instead of wrapping. Each comment says what the number counts and which key or keys it comes from.
struct model_config {
  // The model as a whole.

  /// Entries of the vocabulary, the width of the logits. `vocab_size`.
  std::int64_t vocab_size = 0;
  /// Elements of a token's hidden state. `hidden_size`.
  std::int64_t hidden_size = 0;
  /// Elements of a token inside a dense feed-forward layer. `intermediate_size`.
  std::int64_t intermediate_size = 0;
  /// Layers of every kind together. `num_hidden_layers`.
  std::int64_t num_hidden_layers = 0;

  // Attention.

  /// Query heads of an attention layer. `num_attention_heads`.
  std::int64_t num_attention_heads = 0;
  /// Key and value heads of an attention layer. `num_key_value_heads`, else as many as query heads.
  std::int64_t num_key_value_heads = 0;
  /// Elements of one attention head. `head_dim` or `attention_head_dim`, else hidden_size over
  /// num_attention_heads, rounded down.
  std::int64_t head_dim = 0;

  // Mamba-2 layers.

  /// Heads of a Mamba-2 layer. `mamba_num_heads`.
  std::int64_t mamba_num_heads = 0;
  /// Elements of one Mamba-2 head. `mamba_head_dim`.
  std::int64_t mamba_head_dim = 0;
  /// Groups of heads that share one B and one C vector. `n_groups`.
  std::int64_t n_groups = 0;
  /// Elements of the recurrent state for each channel. `ssm_state_size`.
  std::int64_t ssm_state_size = 0;

  // Gated delta net layers.

  /// Key heads of a linear-attention layer. `linear_num_key_heads`.
  std::int64_t linear_num_key_heads = 0;
  /// Elements of one of its key heads. `linear_key_head_dim`.
  std::int64_t linear_key_head_dim = 0;
  /// Value heads of a linear-attention layer. `linear_num_value_heads`.
  std::int64_t linear_num_value_heads = 0;
  /// Elements of one of its value heads. `linear_value_head_dim`.
  std::int64_t linear_value_head_dim = 0;

  // Mixture of experts.

  /// Routed experts of a layer; the model is a mixture of experts when it is above 0. `num_experts`,
  /// `n_routed_experts` or `num_local_experts`.
  std::int64_t num_experts = 0;
  /// Experts that each token is sent to; 0 in a model without experts. `num_experts_per_tok` or
  /// `experts_per_token`.
  std::int64_t num_experts_per_tok = 0;
  /// Elements of a token inside one expert. `moe_intermediate_size`, else in a mixture of experts
  /// intermediate_size.
  std::int64_t moe_intermediate_size = 0;
  /// Elements of a token inside the shared expert. `shared_expert_intermediate_size` or
  /// `moe_shared_expert_intermediate_size`.
  std::int64_t shared_expert_intermediate_size = 0;
  /// Elements of a token that enter and leave the experts where that is not the hidden state.
  /// `moe_latent_size`.
  std::int64_t moe_latent_size = 0;
  /// Router outputs beyond the experts, for experts that compute nothing. `zero_expert_num`.
  std::int64_t zero_expert_num = 0;

  // Latent attention (MLA) and low-rank output projections.

  /// Elements of a token's compressed keys and values; the model has latent attention when it is above 0.
  /// `kv_lora_rank`.
  std::int64_t kv_lora_rank = 0;
  /// Elements of a token's compressed query. `q_lora_rank`.
  std::int64_t q_lora_rank = 0;
  /// Elements of a query or key head that carry the position. `qk_rope_head_dim`.
  std::int64_t qk_rope_head_dim = 0;
  /// Groups of the low-rank output projection. `o_groups`.
  std::int64_t o_groups = 0;
  /// Elements of each of those groups. `o_lora_rank`.
  std::int64_t o_lora_rank = 0;

  // Hyper-connections.

  /// Residual streams of a token; the model has hyper-connections when it is above 0. `hc_mult`.
  std::int64_t hc_mult = 0;
  /// Elements of a token in the low-rank mixing of the streams. `hc_lowrank`.
  std::int64_t hc_lowrank = 0;

  // Sparse attention index.

  /// Tokens that the index selects for each query. `index_topk`.
  std::int64_t index_topk = 0;
  /// Tokens that one entry of the index stands for. `index_compress_ratio`.
  std::int64_t index_compress_ratio = 0;
  /// Query heads of the index. `index_n_heads`.
  std::int64_t index_n_heads = 0;
  /// Elements of one of its heads. `index_head_dim`.
  std::int64_t index_head_dim = 0;

  // Found out, not read under a key of its own.

  /// Linear-attention layers. The `linear_attention` entries of `layer_types`; without that list, all layers
  /// but every `full_attention_interval`-th; without that too, 0.
  std::int64_t num_ssm_layers = 0;

  // Switches.

  /// Each query head has a gate as wide as itself, so that the query projection is twice as wide.
  /// `attn_output_gate` or `attn_gated`, else true for model types that begin with `qwen3_next`.
  bool attn_gated = false;
  /// Positions are three streams (time, height, width) instead of one. `mrope_interleaved`, at the top or
  /// inside `rope_scaling`.
  bool mrope_interleaved = false;

  friend constexpr bool operator==(const model_config&, const model_config&) = default;
};

} // namespace stowage::inline v0_1::llm
