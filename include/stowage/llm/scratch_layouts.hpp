#pragma once

#include <stowage/buffer.hpp>
#include <stowage/llm/decode_meta.hpp>
#include <stowage/llm/forward_params.hpp>
#include <stowage/regions.hpp>
#include <stowage/traits/align.hpp>
#include <stowage/traits/starts_at.hpp>

#include <cstddef>
#include <cstdint>

// The carved buffers of the forward arena: which parts they have and how they lie.

namespace stowage::inline v0_1::llm {

/// The scratch buffer in the prefill of one sequence.
struct prefill_parts {
  /// Experts chosen for each token.
  part<std::uint32_t, shape<symbols::M, symbols::top_k>> routing_indices;
  /// Weight of each chosen expert.
  part<float, shape<symbols::M, symbols::top_k>> routing_weights;
  /// Positions; under MRoPE a stream each for time, height and width.
  part<std::uint32_t, shape<symbols::position_streams, symbols::M>> positions;
  /// Where each token goes in the key-value cache.
  part<std::uint64_t, shape<symbols::M>> slots;
  /// Blocks of the sequence in the key-value cache.
  part<std::int32_t, shape<symbols::blocks>> block_table;
  /// Tokens of the sequence.
  part<std::int32_t, shape<1>> seq_len;
};

/// Rows that a speculative verify step has at most.
inline constexpr constant verify_rows{160};

/// The scratch buffer in decode and verify steps: a fixed region, then the metadata of the step.
struct decode_parts {
  /// A region of the engine's own; 32768 bytes whatever the batch.
  part<std::byte, shape<32768>> fixed;
  /// Of a decode step, or of a verify step.
  part<alternatives<decode_metadata<symbols::R>, decode_metadata<verify_rows>>> metadata;
};

/// Streams of a batched prefill.
inline constexpr constant batched_streams{8};

struct batched_chunk_definition {
  static constexpr std::string_view name = "chunk";
  static constexpr auto formula = max(cdiv(symbols::M, batched_streams), 1);
};
/// Tokens of one stream of a batched prefill.
inline constexpr derived<batched_chunk_definition> batched_chunk{};

struct batched_tokens_definition {
  static constexpr std::string_view name = "tot";
  static constexpr auto formula = batched_streams * batched_chunk;
};
/// Tokens of all streams of a batched prefill.
inline constexpr derived<batched_tokens_definition> batched_tokens{};

/// The scratch buffer in the prefill of several sequences at once: `Streams` sequences, the longest of
/// `Chunk` tokens, `Total` tokens in all. Every part is padded to 8 bytes. Sizing the buffer and asking
/// whether a batch fits (batched_prefill.hpp) evaluate these same shapes.
template <auto Streams, auto Chunk, auto Total> struct batched_prefill_parts_of {
  /// Indices and weights of the chosen experts, padded to 64 bytes.
  part<std::byte, shape<pad<64>(8 * Total * symbols::top_k)>> routing;
  /// Metadata of each stream.
  part<std::byte, shape<Streams, max(16 * Chunk + 64, 4096)>> stream_metadata;
  /// Positions of all tokens.
  part<std::uint32_t, shape<symbols::position_streams, pad<2>(Total)>> positions;
  /// Where each token goes in the key-value cache.
  part<std::int64_t, shape<Total>> slots;
  /// Addresses of the streams' states.
  part<std::uint64_t, shape<Streams>> state_addresses;
  /// Addresses of their convolution states.
  part<std::uint64_t, shape<Streams>> conv_state_addresses;
  /// First token of each stream, and their number at the end.
  part<std::int32_t, shape<pad<2>(Streams + 1)>> stream_starts;
  /// Tokens of each sequence.
  part<std::int32_t, shape<pad<2>(Streams)>> seq_lens;
  /// Address of each stream's block table.
  part<std::uint64_t, shape<Streams>> block_table_addresses;
};

/// What the scratch buffer is sized for: 8 streams of equal chunks that make up the largest batch.
using batched_prefill_parts = batched_prefill_parts_of<batched_streams, batched_chunk, batched_tokens>;

/// Keys, then values at row M: the values of a token lie behind the keys of all. A GEMM may write ceil16(M)
/// rows of either, so keys can spill into rows where values are written afterwards.
struct key_value_parts {
  /// Keys of the batch.
  part<bf16, shape<pad<16>(symbols::M), symbols::kv_width>> keys;
  /// Values of the batch, from row M on.
  part<bf16, shape<pad<16>(symbols::M), symbols::kv_width>, starts_at<symbols::M * symbols::kv_width>> values;
};

struct ssd_chunks_definition {
  static constexpr std::string_view name = "nc";
  static constexpr auto formula = cdiv(symbols::M, 64) + 1;
};
/// Chunks of 64 tokens in the Mamba-2 scan.
inline constexpr derived<ssd_chunks_definition> ssd_chunks{};

/// Scratch of the Mamba-2 state space dual scan.
struct ssd_parts {
  /// Time step of each token.
  part<float, shape<symbols::mamba_num_heads, ssd_chunks, 64>> dt;
  /// Running sum of time step times decay, within a chunk.
  part<float, shape<symbols::mamba_num_heads, ssd_chunks, 64>> da_cumsum;
  /// Products of C and B, for each pair of a chunk's tokens.
  part<float, shape<ssd_chunks, max(symbols::n_groups, 1), 64, 64>> cb;
};

struct gdn_chunks_definition {
  static constexpr std::string_view name = "nt*nv";
  static constexpr auto formula = (cdiv(symbols::M, 64) + 16) * symbols::linear_value_heads;
};
/// Chunks of 64 tokens of all value heads in the gated delta net.
inline constexpr derived<gdn_chunks_definition> gdn_chunks{};

/// Scratch of the chunked gated delta net.
struct gdn_parts {
  /// W of each chunk.
  part<bf16, shape<gdn_chunks, 64, symbols::linear_key_head_dim>> w;
  /// U of each chunk.
  part<bf16, shape<gdn_chunks, 64, symbols::linear_value_head_dim>> u;
  /// State at the start of each chunk.
  part<bf16, shape<gdn_chunks, symbols::linear_key_head_dim, symbols::linear_value_head_dim>> s;
  /// U, corrected by the state.
  part<bf16, shape<gdn_chunks, 64, symbols::linear_value_head_dim>> uc;
  /// Running sum of the gates, within a chunk.
  part<float, shape<gdn_chunks, 64>> gc;
};

/// Activations of a feed-forward layer in q8_1: 4 bytes an element leave room for every block layout, and the
/// kernels read up to 1 MiB beyond the end.
template <auto Width> struct q8_activation_parts {
  /// The quantised rows.
  part<std::byte, shape<symbols::M, pad<256>(Width), 4>> activations;
  /// What kernels may read beyond the end; 1 MiB.
  part<std::byte, shape<1048576>> overread;
};

struct q2_width_definition {
  static constexpr std::string_view name = "q2_width";
  static constexpr auto formula =
      max(symbols::hidden, symbols::intermediate, symbols::heads* symbols::head_dim);
};
/// Widest input of a projection with Q2 weights.
inline constexpr derived<q2_width_definition> q2_width{};

struct moe_shared_k_definition {
  static constexpr std::string_view name = "shared_k";
  static constexpr auto formula = max(symbols::hidden, symbols::shared_intermediate);
};
/// Widest input of a shared expert's projection.
inline constexpr derived<moe_shared_k_definition> moe_shared_k{};

struct moe_expanded_definition {
  static constexpr std::string_view name = "expanded";
  static constexpr auto formula = symbols::M * symbols::top_k;
};
/// Token and expert pairs of M tokens.
inline constexpr derived<moe_expanded_definition> moe_expanded{};

/// The FP8 path of the experts.
struct moe_fp8_parts {
  /// Quantised inputs of the experts.
  part<fp8_e4m3, shape<max(symbols::M* moe_shared_k, moe_expanded* symbols::moe_intermediate)>, align<256>>
      activations;
  /// Their scales: one for 128 elements.
  part<float,
       shape<max(symbols::M* cdiv(moe_shared_k, 128), moe_expanded* cdiv(symbols::moe_intermediate, 128))>,
       align<256>>
      scales;
  /// Tiles to do, 8 bytes each.
  part<std::uint64_t,
       shape<(cdiv(moe_expanded, 128) + symbols::num_experts + 1) *
             cdiv(max(symbols::hidden, symbols::moe_intermediate), 64)>,
       align<256>>
      worklist;
  /// Tiles in the list.
  part<std::uint32_t, shape<1>, align<256>> total_tiles;
};

struct hc_decode_rows_definition {
  static constexpr std::string_view name = "t";
  static constexpr auto formula = min(symbols::M, 64);
};
/// Rows of a decode step.
inline constexpr derived<hc_decode_rows_definition> hc_decode_rows{};

struct hc_prefill_rows_definition {
  static constexpr std::string_view name = "ts";
  static constexpr auto formula = min(symbols::M, 2048);
};
/// Rows of a slice of a prefill.
inline constexpr derived<hc_prefill_rows_definition> hc_prefill_rows{};

/// Low-rank hyper-connections of a decode step.
struct hc_decode_parts {
  /// The streams, normalised.
  part<float, shape<hc_decode_rows, symbols::hc_mult * symbols::hidden>> normed;
  /// Their projection to the low rank.
  part<float, shape<hc_decode_rows, symbols::hc_lowrank>> low;
};

/// Low-rank hyper-connections of a slice of a prefill.
struct hc_prefill_parts {
  /// The streams, normalised.
  part<bf16, shape<hc_prefill_rows, symbols::hc_mult * symbols::hidden>> normed;
  /// The projection back from the low rank.
  part<bf16, shape<hc_prefill_rows, symbols::hc_mult * symbols::hidden>> up;
  /// The projection to the low rank.
  part<bf16, shape<hc_prefill_rows, symbols::hc_lowrank>> low;
  /// Weight of a layer's output in each stream.
  part<bf16, shape<hc_prefill_rows, symbols::hc_mult>> inj;
};

/// Rows that sparse attention selects for at a time.
inline constexpr constant qsa_rows{2048};

/// Selection of key blocks in sparse attention.
struct qsa_parts {
  /// Queries of the index heads, and the key.
  part<bf16, shape<qsa_rows, (symbols::index_heads + 1) * symbols::index_head_dim>> qk;
  /// The queries in f32.
  part<float, shape<qsa_rows, symbols::index_heads, symbols::index_head_dim>> q_post;
  /// Score of each key block.
  part<float, shape<qsa_rows, cdiv(symbols::S, symbols::index_ratio)>> scores;
  /// The blocks that were selected.
  part<std::int32_t, shape<qsa_rows, symbols::index_topk / symbols::index_ratio>> lists;
};

} // namespace stowage::inline v0_1::llm
