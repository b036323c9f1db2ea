#pragma once

#include <stowage/llm/forward_params.hpp>
#include <stowage/llm/scratch_layouts.hpp>
#include <stowage/stowage.hpp>

#include <cstddef>
#include <cstdint>

namespace stowage::inline v0_1::llm {

/// Tag of the buffers that a prefill needs cleared: `zero_tagged<prefill_essentials>`.
struct prefill_essentials;
/// Tag of the buffers on the checksum list.
struct checksummed;

// What each layer kind puts into the buffers that it shares with others.
/// Output of an attention layer.
using attention_output = part<bf16, shape<symbols::M, symbols::heads * symbols::head_dim>>;
/// Output of a Mamba-2 layer.
using mamba_output = part<bf16, shape<symbols::M, symbols::d_inner>>;
/// Output of a latent attention layer, before its up projection.
using latent_output = part<bf16, shape<symbols::M, symbols::heads * symbols::mla_width>, when<symbols::mla>>;

/// Queries, keys, values and gates of a gated delta net layer; the GEMM writes ceil16(M) rows.
using gdn_qkvz = part<bf16, shape<pad<16>(symbols::M), symbols::qkvz>>;
/// Input projection of a Mamba-2 layer.
using mamba_in_proj = part<bf16, shape<symbols::M, symbols::in_proj>>;
/// Inner activations of the shared expert.
using shared_expert_inner = part<bf16, shape<symbols::M, symbols::shared_intermediate>>;
/// Betas and decays of a gated delta net layer.
using gdn_ba = part<bf16, shape<symbols::M, 2 * symbols::linear_value_heads>>;
/// Input of the experts, projected to their latent width.
using moe_latent_input = part<bf16, shape<symbols::M, symbols::moe_latent>>;
/// Rotary part of the keys of latent attention, one head for all.
using latent_rope_keys = part<bf16, shape<symbols::M, symbols::rope_head_dim>, when<symbols::mla>>;
/// Queries of latent attention at their low rank.
using latent_queries = part<bf16, shape<symbols::M, symbols::q_lora_rank>, when<symbols::mla>>;
/// Input of the convolution of a Mamba-2 layer: x, B and C.
using mamba_xbc = part<bf16, shape<symbols::M, symbols::d_xbc>>;
/// Output of the convolution of a gated delta net layer.
using gdn_conv_output = part<float, shape<symbols::M, symbols::qkvz>>;
/// Rotary part of the queries of latent attention.
using latent_rope_queries =
    part<bf16, shape<symbols::M, symbols::heads * symbols::rope_head_dim>, when<symbols::mla>>;

/// Activations of the dense layer in int8.
using ffn_act_int8 = part<std::int8_t, shape<pad<16>(symbols::M), symbols::ffn_k>>;
/// The same in NVFP4, two elements a byte.
using ffn_act_nvfp4 = part<fp4_e2m1, shape<symbols::M, symbols::ffn_k>>;
/// The same in FP8.
using ffn_act_fp8 = part<fp8_e4m3, shape<symbols::M, symbols::ffn_k>>;

/// The GPU buffers of one forward pass of a hybrid engine: attention, Mamba-2, gated delta net, experts,
/// latent attention, hyper-connections, LoRA, and FP8, NVFP4 and GGUF paths. 46 buffers; sizes are those of
/// the arena's fact sheet, byte for byte.
struct forward_buffers {
  /// Hidden states between layers.
  buffer<bf16, shape<symbols::M, symbols::hidden>, zero::rows, tag<prefill_essentials>, tag<checksummed>>
      hidden_states;
  /// The residual stream, added to the output of each layer.
  buffer<bf16, shape<symbols::M, symbols::hidden>, zero::rows, tag<prefill_essentials>, tag<checksummed>>
      residual;
  /// Output of a norm: input of a projection, up to d_inner wide.
  buffer<bf16, shape<symbols::M, symbols::max_dim>, zero::rows, tag<checksummed>> norm_output;
  /// Queries (with gates), keys and values; the GEMM writes ceil16(M) rows.
  buffer<bf16, shape<pad<16>(symbols::M), symbols::qkv_width>, zero::rows, tag<checksummed>> qkv_output;
  /// Output of whichever mixer the layer has.
  buffer<alternatives<attention_output, mamba_output, latent_output>, zero::rows, tag<checksummed>>
      attn_output;
  /// Router logits of each token, for all experts.
  buffer<bf16, shape<symbols::M, symbols::num_experts + symbols::zero_expert_num>, zero::rows,
         when<symbols::moe>, placeholder<256>, tag<prefill_essentials>, tag<checksummed>>
      gate_logits;
  /// The router logits in f32.
  buffer<float, shape<symbols::M, symbols::num_experts + symbols::zero_expert_num>, zero::never,
         when<symbols::moe>, placeholder<256>>
      gate_logits_f32;
  /// Input of the router in f32.
  buffer<float, shape<symbols::M, symbols::hidden>, zero::never, when<symbols::moe>, placeholder<256>>
      moe_router_in_f32;
  /// Weighted sum of the experts' outputs; the GEMM writes ceil16(M) rows.
  buffer<bf16, shape<pad<16>(symbols::M), symbols::hidden>, zero::rows, tag<prefill_essentials>,
         tag<checksummed>>
      moe_output;
  /// Logits of the sampled rows: a row a sequence, the rows of a verify step, or fewer where M is small.
  buffer<bf16, shape<min(symbols::M, max(symbols::R + 1, 160)), symbols::vocab>, zero::full> logits;
  /// Projections of linear layers; keys and values of attention layers; the shared expert.
  buffer<alternatives<gdn_qkvz, mamba_in_proj, key_value_parts, shared_expert_inner>, zero::rows,
         at_least<256>, tag<checksummed>>
      ssm_qkvz;
  /// Second projection of a linear layer; input of latent experts; latent queries or their rotary keys.
  buffer<alternatives<gdn_ba, moe_latent_input, latent_rope_keys, latent_queries>, zero::rows, at_least<256>,
         tag<checksummed>>
      ssm_ba;
  /// A linear layer's projection in the order of its heads; attention output, gated or latent.
  buffer<alternatives<gdn_qkvz, mamba_xbc, attention_output, latent_output>, zero::rows, at_least<256>,
         tag<checksummed>>
      ssm_deinterleaved;
  /// A token's gates, then as many betas.
  buffer<float, shape<symbols::M, 2, symbols::linear_value_heads>, zero::rows, at_least<256>,
         tag<checksummed>>
      ssm_gates;
  /// Output of the convolution in f32; rotary part of latent queries.
  buffer<alternatives<gdn_conv_output, latent_rope_queries>, zero::rows, at_least<256>, tag<checksummed>>
      ssm_conv_out_f32;
  /// Routing and metadata of a step; its three uses exclude each other.
  buffer<alternatives<prefill_parts, decode_parts, batched_prefill_parts>, zero::full, at_least<65536>>
      scratch;
  /// Scratch of the Mamba-2 scan; absent in models without one.
  buffer<regions<ssd_parts>, zero::never, when<(symbols::mamba_num_heads > 0 && symbols::ssm_state_size > 0)>>
      ssd_scratch;
  /// Tokens of the batch.
  buffer<std::uint32_t, shape<symbols::M>, zero::never, at_least<256>> token_ids;
  /// Gate projections of the experts of each token, or of the dense layer.
  buffer<bf16, shape<symbols::K, symbols::expert_width>, zero::rows, tag<prefill_essentials>,
         tag<checksummed>>
      expert_gate_out;
  /// Up projections of the same.
  buffer<bf16, shape<symbols::K, symbols::expert_width>, zero::rows, tag<prefill_essentials>,
         tag<checksummed>>
      expert_up_out;
  /// Down projections of the same, before they are added up.
  buffer<bf16, shape<symbols::K, choose(symbols::moe, symbols::top_k* symbols::moe_in, symbols::hidden)>,
         zero::rows, tag<prefill_essentials>, tag<checksummed>>
      expert_down_out;
  /// Scratch of the chunked gated delta net; for head dimensions of 128 only.
  buffer<regions<gdn_parts>, zero::never,
         when<(symbols::linear_value_heads > 0 && symbols::linear_key_head_dim == 128 &&
               symbols::linear_value_head_dim == 128)>>
      gdn_fla_scratch;
  /// Activations of the dense layer in q8_1; absent in models of experts.
  buffer<regions<q8_activation_parts<symbols::ffn_k>>, zero::never, when<(!symbols::moe)>> ffn_act_q8;
  /// Quantised activations in the format of the path.
  buffer<alternatives<ffn_act_int8, ffn_act_nvfp4, ffn_act_fp8>, zero::never, when<(!symbols::moe)>>
      ffn_act_a;
  /// Scales of the quantised activations.
  buffer<float, shape<pad<16>(symbols::M), symbols::ffn_k / 32>, zero::never, when<(!symbols::moe)>>
      ffn_act_scale;
  /// The scales again, transposed.
  buffer<float, shape<symbols::ffn_k / 128, pad<16>(symbols::M)>, zero::never, when<(!symbols::moe)>>
      ffn_act_scale_kmajor;
  /// Gate at column 0, up at column `intermediate`; for batches of at most 16 rows.
  buffer<bf16, shape<16, 2 * symbols::intermediate>, zero::never, when<(!symbols::moe)>> ffn_gate_up_fused;
  /// Input of an FP8 projection.
  buffer<fp8_e4m3, shape<pad<16>(symbols::M), symbols::proj_k>, zero::never> fp8_act;
  /// Its scales: one for 128 elements of a row.
  buffer<float, shape<pad<16>(symbols::M), cdiv(symbols::proj_k, 128)>, zero::never> fp8_act_scale;
  /// The same scales, transposed.
  buffer<float, shape<cdiv(symbols::proj_k, 128), pad<16>(symbols::M)>, zero::never> fp8_act_scale_kmajor;
  /// The FP8 path of the experts; absent in models without experts.
  buffer<regions<moe_fp8_parts>, zero::never, when<symbols::moe>> moe_fp8_scratch;
  /// One weight matrix, expanded from Q2.
  buffer<bf16,
         shape<max(symbols::intermediate, symbols::qkvz, symbols::in_proj,
                   symbols::heads* choose(symbols::attn_gated, 2, 1) * symbols::head_dim,
                   2 * symbols::kv_heads * symbols::head_dim),
               symbols::hidden>,
         zero::never, when<symbols::lever_q2>>
      q2_dequant_scratch;
  /// Activations in q8_1, for products with Q2 weights.
  buffer<regions<q8_activation_parts<q2_width>>, zero::never, when<symbols::lever_q2_mmq>> q2_act_q8;
  /// Partial results of split-K decode attention: an accumulator, a maximum and a sum each.
  buffer<float, shape<symbols::splitk_slots, symbols::head_dim + 2>, zero::full, tag<checksummed>>
      splitk_workspace;
  /// Output projection of low rank, by group.
  buffer<bf16, shape<symbols::M, symbols::o_groups * symbols::o_lora_rank>, zero::never, at_least<256>>
      o_latent;
  /// Weight of a norm without weights: RMS norms scale by 1 + w.
  buffer<bf16, shape<symbols::max_dim>, zero::never, zero_at_construction> norm_unit_w;
  /// Residual streams of the hyper-connections.
  buffer<float, shape<symbols::M, symbols::hc_mult, symbols::hidden>, zero::never,
         when<symbols::hyper_connections>, placeholder<256>>
      hc_streams;
  /// Weight of each stream behind a layer.
  buffer<float, shape<symbols::M, symbols::hc_mult>, zero::never, when<symbols::hyper_connections>,
         at_least<256>, placeholder<256>>
      hc_post;
  /// Matrix that mixes the streams of a token.
  buffer<float, shape<symbols::M, symbols::hc_mult, symbols::hc_mult>, zero::never,
         when<symbols::hyper_connections>, at_least<256>, placeholder<256>>
      hc_comb;
  /// Scratch of hyper-connections of low rank.
  buffer<alternatives<hc_decode_parts, hc_prefill_parts>, zero::never,
         when<(symbols::hyper_connections && symbols::hc_lowrank > 0)>, placeholder<256>>
      hc_lowrank_scratch;
  /// Scratch of the block selection of sparse attention.
  buffer<regions<qsa_parts>, zero::never, when<(symbols::index_topk > 0 && symbols::index_ratio > 0)>,
         placeholder<256>>
      qsa_select_scratch;
  /// Input of a projection times an adapter's first matrix.
  buffer<bf16, shape<symbols::M, symbols::adapter_max_rank>, zero::never, when<symbols::adapters>> lora_xa;
  /// What the adapters add to a projection, as wide as the widest one.
  buffer<bf16,
         shape<symbols::M, max(symbols::hidden, symbols::intermediate,
                               choose(symbols::attn_gated, 2, 1) * symbols::heads * symbols::head_dim)>,
         zero::never, when<symbols::adapters>>
      lora_delta;
  /// Activations between an adapter's feed-forward projections.
  buffer<bf16, shape<symbols::M, symbols::intermediate>, zero::never, when<symbols::adapters>> lora_hact;
  /// Adapter slot of each token.
  buffer<std::int32_t, shape<symbols::M>, zero::never, when<symbols::adapters>> lora_seq_slot;
  /// bf16 copies of each linear layer's projections: [qkvz, hidden], then [hidden, value_dim].
  buffer<bf16, shape<symbols::ssm_layers, symbols::qkvz + symbols::value_dim, symbols::hidden>, zero::never,
         when<symbols::lever_rowwise>>
      ssm_rowwise_w_bf16;
};

/// The plan of a forward arena.
using forward_plan = plan<forward_buffers, forward_params>;
static_assert(forward_plan::field_count == 46);

} // namespace stowage::inline v0_1::llm
