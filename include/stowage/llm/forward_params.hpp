#pragma once

#include <stowage/condition.hpp>
#include <stowage/count.hpp>
#include <stowage/formula.hpp>
#include <stowage/ladder.hpp>
#include <stowage/llm/levers.hpp>
#include <stowage/llm/model_config.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stowage::inline v0_1::llm {

/// Everything that the sizes of the forward arena depend on: the model, the limits of the engine, the target,
/// and the levers. A plain aggregate; formulas read nothing else.
struct forward_params : model_config {
  /// Most tokens of one forward pass (M).
  tokens max_batch_tokens{};
  /// Most tokens of one sequence (S).
  std::int64_t max_seq_len = 0;
  /// Tokens of a key-value cache block (B); 0 where the cache is not paged.
  std::int64_t kv_block_size = 0;
  /// Most sequences of one batch (N), at most 128.
  std::int64_t max_batch_size = 0;
  /// Multiprocessors of the target.
  std::int64_t sm_count = 0;
  /// Largest rank of a LoRA adapter; 0 without adapters.
  std::int64_t adapter_max_rank = 0;
  /// The switches that the environment or the engine sets.
  levers switches{};
  /// Decode metadata has rows for the padded batch. Right for an engine that pads a batch to one of its rungs
  /// (2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128) before it launches: a batch of 33 to 36 then runs with 48
  /// rows, which 36 rows do not hold. The plain rule, max(32, N), is right where batches run as they are.
  bool pad_decode_rows = false;

  /// The lever for Q2 weights, as a symbol reads it.
  [[nodiscard]] constexpr bool lever_q2() const { return switches.gguf_native_q2; }
  /// The lever for products with Q2 weights.
  [[nodiscard]] constexpr bool lever_q2_mmq() const { return switches.gguf_native_q2_mmq; }
  /// The lever for FP8 with a scale a row.
  [[nodiscard]] constexpr bool lever_rowwise() const { return switches.fp8_rowwise; }
  /// Whether the split-K policy is the legacy one.
  [[nodiscard]] constexpr bool splitk_legacy() const { return switches.splitk.kind == splitk_kind::legacy; }
  /// Whether it is the automatic one.
  [[nodiscard]] constexpr bool splitk_automatic() const {
    return switches.splitk.kind == splitk_kind::automatic;
  }
  /// The splits of a pinned policy; 0 for the others.
  [[nodiscard]] constexpr std::size_t splitk_pinned() const { return switches.splitk.splits; }
};

/// The symbols of the forward arena's formulas.
namespace symbols {

// Inputs, named as in the fact sheet of the arena.
inline constexpr dim<&forward_params::max_batch_tokens> M{"M"};
inline constexpr dim<&forward_params::max_seq_len> S{"S"};
inline constexpr dim<&forward_params::kv_block_size> B{"B"};
inline constexpr dim<&forward_params::max_batch_size> N{"N"};
inline constexpr dim<&forward_params::sm_count> sm{"sm"};
inline constexpr dim<&forward_params::adapter_max_rank> adapter_max_rank{};

inline constexpr dim<&forward_params::vocab_size> vocab{"vocab"};
inline constexpr dim<&forward_params::hidden_size> hidden{"hidden"};
inline constexpr dim<&forward_params::intermediate_size> intermediate{"intermediate"};
inline constexpr dim<&forward_params::num_attention_heads> heads{"heads"};
inline constexpr dim<&forward_params::num_key_value_heads> kv_heads{"kv_heads"};
inline constexpr dim<&forward_params::head_dim> head_dim{};
inline constexpr dim<&forward_params::attn_gated> attn_gated{};
inline constexpr dim<&forward_params::mrope_interleaved> mrope{"mrope"};
inline constexpr dim<&forward_params::mamba_num_heads> mamba_num_heads{};
inline constexpr dim<&forward_params::mamba_head_dim> mamba_head_dim{};
inline constexpr dim<&forward_params::n_groups> n_groups{};
inline constexpr dim<&forward_params::ssm_state_size> ssm_state_size{};
inline constexpr dim<&forward_params::linear_num_key_heads> linear_key_heads{"linear_key_heads"};
inline constexpr dim<&forward_params::linear_key_head_dim> linear_key_head_dim{};
inline constexpr dim<&forward_params::linear_num_value_heads> linear_value_heads{"linear_value_heads"};
inline constexpr dim<&forward_params::linear_value_head_dim> linear_value_head_dim{};
inline constexpr dim<&forward_params::num_experts> num_experts{};
inline constexpr dim<&forward_params::zero_expert_num> zero_expert_num{};
inline constexpr dim<&forward_params::num_experts_per_tok> top_k{"top_k"};
inline constexpr dim<&forward_params::moe_intermediate_size> moe_intermediate{"moe_intermediate"};
inline constexpr dim<&forward_params::shared_expert_intermediate_size> shared_intermediate{
    "shared_intermediate"};
inline constexpr dim<&forward_params::moe_latent_size> moe_latent{"moe_latent"};
inline constexpr dim<&forward_params::kv_lora_rank> kv_lora_rank{};
inline constexpr dim<&forward_params::q_lora_rank> q_lora_rank{};
inline constexpr dim<&forward_params::qk_rope_head_dim> rope_head_dim{"rope_head_dim"};
inline constexpr dim<&forward_params::o_groups> o_groups{};
inline constexpr dim<&forward_params::o_lora_rank> o_lora_rank{};
inline constexpr dim<&forward_params::hc_mult> hc_mult{};
inline constexpr dim<&forward_params::hc_lowrank> hc_lowrank{};
inline constexpr dim<&forward_params::index_topk> index_topk{};
inline constexpr dim<&forward_params::index_compress_ratio> index_ratio{"index_ratio"};
inline constexpr dim<&forward_params::index_n_heads> index_heads{"index_heads"};
inline constexpr dim<&forward_params::index_head_dim> index_head_dim{};
inline constexpr dim<&forward_params::num_ssm_layers> ssm_layers{"ssm_layers"};

inline constexpr dim<&forward_params::pad_decode_rows> pad_decode_rows{};
inline constexpr dim<&forward_params::lever_q2> lever_q2{};
inline constexpr dim<&forward_params::lever_q2_mmq> lever_q2_mmq{};
inline constexpr dim<&forward_params::lever_rowwise> lever_rowwise{};
inline constexpr dim<&forward_params::splitk_legacy> splitk_legacy{};
inline constexpr dim<&forward_params::splitk_automatic> splitk_automatic{};
inline constexpr dim<&forward_params::splitk_pinned> splitk_pinned{};

// Conditions.
/// The model has experts.
inline constexpr auto moe = num_experts > 0;
/// The model has multi-head latent attention.
inline constexpr auto mla = kv_lora_rank > 0;
/// The model has hyper-connections.
inline constexpr auto hyper_connections = hc_mult > 0;
/// The engine serves LoRA adapters.
inline constexpr auto adapters = adapter_max_rank > 0;

// Derived sizes, each under its own name.
struct decode_rows_definition {
  static constexpr std::string_view name = "R";
  /// Sequences of a batch, at most 128.
  static constexpr auto batch = at_most<128>(N);
  static constexpr auto formula =
      max(choose(pad_decode_rows, next_rung<2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128>(batch), batch), 32);
};
/// Rows of the decode metadata: room for the batch, 32 at least. A batch above 128 is an error.
inline constexpr derived<decode_rows_definition> R{};

struct qkv_width_definition {
  static constexpr std::string_view name = "qkv_width";
  static constexpr auto formula = (heads * choose(attn_gated, 2, 1) + 2 * kv_heads) * head_dim;
};
/// Elements of a token's queries (with their gates), keys and values.
inline constexpr derived<qkv_width_definition> qkv_width{};

struct kv_width_definition {
  static constexpr std::string_view name = "kv_width";
  static constexpr auto formula = kv_heads * head_dim;
};
/// Elements of a token's keys, or of its values.
inline constexpr derived<kv_width_definition> kv_width{};

struct d_inner_definition {
  static constexpr std::string_view name = "d_inner";
  static constexpr auto formula = mamba_num_heads * mamba_head_dim;
};
/// Inner width of a Mamba-2 layer.
inline constexpr derived<d_inner_definition> d_inner{};

struct d_xbc_definition {
  static constexpr std::string_view name = "d_xbc";
  static constexpr auto formula = d_inner + 2 * n_groups * ssm_state_size;
};
/// Width of a Mamba-2 layer's convolution input: x, B and C.
inline constexpr derived<d_xbc_definition> d_xbc{};

struct in_proj_definition {
  static constexpr std::string_view name = "in_proj";
  static constexpr auto formula = d_inner + d_xbc + mamba_num_heads;
};
/// Output width of a Mamba-2 layer's input projection.
inline constexpr derived<in_proj_definition> in_proj{};

struct value_dim_definition {
  static constexpr std::string_view name = "value_dim";
  static constexpr auto formula = linear_value_heads * linear_value_head_dim;
};
/// Elements of a token's values in a gated delta net layer.
inline constexpr derived<value_dim_definition> value_dim{};

struct qkvz_definition {
  static constexpr std::string_view name = "qkvz";
  static constexpr auto formula = 2 * linear_key_heads * linear_key_head_dim + 2 * value_dim;
};
/// Output width of a gated delta net layer's projection of queries, keys, values and gates.
inline constexpr derived<qkvz_definition> qkvz{};

struct max_dim_definition {
  static constexpr std::string_view name = "max_dim";
  static constexpr auto formula = max(hidden, d_inner);
};
/// Widest output of a norm.
inline constexpr derived<max_dim_definition> max_dim{};

struct mla_width_definition {
  static constexpr std::string_view name = "mla_width";
  static constexpr auto formula = kv_lora_rank + rope_head_dim;
};
/// Elements of a token's compressed key-value entry in multi-head latent attention.
inline constexpr derived<mla_width_definition> mla_width{};

struct moe_in_definition {
  static constexpr std::string_view name = "moe_in";
  static constexpr auto formula = choose(moe_latent > 0, moe_latent, hidden);
};
/// Input width of an expert.
inline constexpr derived<moe_in_definition> moe_in{};

struct expert_width_definition {
  static constexpr std::string_view name = "expert_width";
  static constexpr auto formula = choose(moe, max(top_k* moe_intermediate, intermediate), intermediate);
};
/// Inner width of all experts of a token together, or of the dense layer.
inline constexpr derived<expert_width_definition> expert_width{};

struct proj_k_definition {
  static constexpr std::string_view name = "proj_k";
  static constexpr auto formula = max(hidden, heads* head_dim, d_inner, value_dim);
};
/// Widest input of a projection.
inline constexpr derived<proj_k_definition> proj_k{};

struct ffn_k_definition {
  static constexpr std::string_view name = "ffn_k";
  static constexpr auto formula = max(hidden, intermediate);
};
/// Widest input of a feed-forward projection.
inline constexpr derived<ffn_k_definition> ffn_k{};

struct expert_rows_definition {
  static constexpr std::string_view name = "K";
  static constexpr auto formula = pad<16>(max(M, 3));
};
/// Rows of the expert buffers.
inline constexpr derived<expert_rows_definition> K{};

struct blocks_definition {
  static constexpr std::string_view name = "blocks";
  static constexpr auto formula = choose(B > 0, S / B + 1, 256);
};
/// Entries of a sequence's block table.
inline constexpr derived<blocks_definition> blocks{};

struct position_streams_definition {
  static constexpr std::string_view name = "streams";
  static constexpr auto formula = choose(mrope, 3, 1);
};
/// Position streams of a token: time, height and width under MRoPE.
inline constexpr derived<position_streams_definition> position_streams{};

struct splitk_slots_definition {
  static constexpr std::string_view name = "splitk_slots";
  /// Splits that the policy asks for, before the clamp.
  static constexpr auto wanted_splits = choose(splitk_automatic, cdiv(2 * sm, heads), splitk_pinned);
  // Without heads there is nothing to split, and nothing to divide by.
  static constexpr auto formula =
      choose(splitk_legacy, max(sm, 1), choose(heads > 0, R* heads* min(max(wanted_splits, 1), 16), 0));
};
/// Partial results of split-K decode attention: the policy decides.
inline constexpr derived<splitk_slots_definition> splitk_slots{};

} // namespace symbols
} // namespace stowage::inline v0_1::llm
