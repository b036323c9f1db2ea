// All buffers of the engine: what their sizes depend on, and the field lists of its CPU and its CUDA half. The groups
// are shared. docs/an-engine-on-stowage.md walks through them.
#pragma once

#include <stowage/stowage.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace engine {

// [params]
/// Read from the model's file.
struct model_shape {
  std::size_t layers, hidden, heads, kv_heads, head_dim, feed_forward, vocabulary;
};
/// Chosen by whoever starts the engine.
struct engine_limits {
  stowage::tokens max_tokens{512};     ///< rows of a step: the longest piece of a prompt
  stowage::sequences max_sequences{1}; ///< rows of a decode step
  stowage::pages cache_pages{128};     ///< of all sequences together
  std::size_t max_context = 2048;      ///< tokens of one sequence
  std::size_t threads = 1;
  std::size_t top_k = 0; ///< the most tokens that sampling chooses from; 0 takes the best one
};
struct engine_params : model_shape, engine_limits {};
// [params]

// [symbols]
inline constexpr stowage::dim<&engine_limits::max_tokens> M{"M"};
inline constexpr stowage::dim<&engine_limits::max_sequences> N{"N"};
inline constexpr stowage::dim<&engine_limits::cache_pages> P{"P"};
inline constexpr stowage::dim<&engine_limits::max_context> context{};
inline constexpr stowage::dim<&engine_limits::threads> threads{};
inline constexpr stowage::dim<&engine_limits::top_k> top_k{};
inline constexpr stowage::dim<&model_shape::layers> layers{};
inline constexpr stowage::dim<&model_shape::hidden> hidden{};
inline constexpr stowage::dim<&model_shape::heads> heads{};
inline constexpr stowage::dim<&model_shape::kv_heads> kv_heads{};
inline constexpr stowage::dim<&model_shape::head_dim> head_dim{};
inline constexpr stowage::dim<&model_shape::feed_forward> feed_forward{};
inline constexpr stowage::dim<&model_shape::vocabulary> vocabulary{};

/// Tokens of a page of the cache, keys of a piece of attention that is computed by itself, rows of a tile of the
/// decode kernels, bins of the sampler.
inline constexpr std::size_t page_tokens = 16, split_tokens = 256, tile_rows = 4, sampling_bins = 256;

/// Rows of a decode step. It has a token a sequence, so a pass over T tokens reaches min(T, N) of them.
inline constexpr auto R = stowage::min(M, N);
inline constexpr auto qkv_width = (heads + 2 * kv_heads) * head_dim;
inline constexpr auto context_pages = stowage::cdiv(context, page_tokens);
inline constexpr auto splits = stowage::cdiv(context, split_tokens);
inline constexpr auto widest = stowage::max(hidden, feed_forward);
// [symbols]

/// 32 activations as 16-bit integers, with their scale and their sum: what the decode kernels multiply 4-bit and 8-bit
/// weights with.
struct activation_block {
  static constexpr std::string_view element_name = "q16";
  static constexpr std::size_t elements_per_block = 32;
  float scale;
  float sum; ///< of the 32 values, for the weights' minimum
  std::int16_t numbers[32];
};
static_assert(sizeof(activation_block) == 72);

// [groups]
/// What a step is about, written by the host. One block, so that it goes to a device in one copy.
struct step_parts {
  stowage::part<std::uint32_t, stowage::shape<1>> rows;
  stowage::part<std::uint32_t, stowage::shape<M>> tokens;
  stowage::part<std::uint32_t, stowage::shape<M>> positions;
  /// The sequence of each row.
  stowage::part<std::uint32_t, stowage::shape<M>> sequences;
  /// Where the tokens of each sequence lie in the cache.
  stowage::part<std::uint32_t, stowage::shape<N, context_pages>> pages;
};

/// Keys and values of all sequences, in pages that hold the same tokens of every layer.
template <class Real> struct cache_buffers {
  stowage::buffer<Real, stowage::shape<P, layers, page_tokens, kv_heads, head_dim>, stowage::zero::never>
      keys;
  stowage::buffer<Real, stowage::shape<P, layers, page_tokens, kv_heads, head_dim>, stowage::zero::never>
      values;
};

/// `Habit` is the policy of the buffers that the zeroing experiment calls waste: never in the engine, rows in the
/// lists that the experiment and the benchmark compare it with.
template <class Real, class Habit> struct attention_buffers {
  stowage::buffer<Real, stowage::shape<M, qkv_width>, Habit> qkv;
  /// Input of a multiplication by tiles of 4 rows, which reads whole tiles.
  stowage::buffer<Real, stowage::shape<stowage::pad<tile_rows>(M), heads, head_dim>, Habit> output;
  /// Largest score, and sum of the weights, of each piece of a sequence. A sequence has as many pieces as it has
  /// tokens for; those that it lacks hold 0 from the row pass, and count as nothing when pieces are put together.
  stowage::buffer<float, stowage::shape<R, heads, splits, 2>, stowage::zero::rows> split_weights;
  /// The weighted values of each piece. Nobody looks at those of a piece whose sum is 0.
  stowage::buffer<float, stowage::shape<R, heads, splits, head_dim>, Habit> split_outputs;
};

template <class Real, class Habit> struct feed_forward_buffers {
  stowage::buffer<Real, stowage::shape<M, 2, feed_forward>, Habit> gate_up;
  stowage::buffer<Real, stowage::shape<stowage::pad<tile_rows>(M), feed_forward>, Habit> activated;
};

template <class Habit> struct sampling_buffers {
  stowage::buffer<float, stowage::shape<R, vocabulary>, Habit> logits;
  /// The largest logit so far, and its token, as one number that grows with the logit: a maximum over it begins at 0.
  stowage::buffer<std::uint64_t, stowage::shape<R>, stowage::zero::rows> best;
  /// How many logits lie how far below the largest.
  stowage::buffer<std::uint32_t, stowage::shape<R, sampling_bins>, stowage::zero::rows,
                  stowage::when<(top_k > 0)>>
      histogram;
  /// Tokens to choose from, and their weights.
  stowage::buffer<std::uint32_t, stowage::shape<R, top_k>, Habit, stowage::when<(top_k > 0)>> candidates;
  stowage::buffer<float, stowage::shape<R, top_k>, Habit, stowage::when<(top_k > 0)>> weights;
};
// [groups]

// [scratch]
/// Scratch of a prefill on the CPU: the matrix that is multiplied, as numbers that a BLAS takes, and keys,
/// values and scores of one head a thread.
struct prefill_parts {
  stowage::part<float, stowage::shape<hidden * widest>> weights;
  stowage::part<float, stowage::shape<threads, context, head_dim>> keys;
  stowage::part<float, stowage::shape<threads, context, head_dim>> values;
  stowage::part<float, stowage::shape<threads, 64, context>> scores;
};
/// Scratch of a decode step on the CPU: the input of the multiplication at hand, in integers. Whole tiles of rows.
struct decode_parts {
  stowage::part<activation_block, stowage::shape<stowage::pad<tile_rows>(R), widest>> quantised;
};
// [scratch]

// [lists]
template <class Habit = stowage::zero::never> struct cpu_buffers {
  stowage::buffer<stowage::regions<step_parts>, stowage::zero::never> step;
  stowage::buffer<float, stowage::shape<M, hidden>, Habit> hidden_states;
  stowage::buffer<float, stowage::shape<M, hidden>, Habit> normalised;
  attention_buffers<float, Habit> attention;
  feed_forward_buffers<float, Habit> feed_forward;
  sampling_buffers<Habit> sampling;
  cache_buffers<float> cache;
  /// Cosine and sine of each position and pair of dimensions, made at start-up.
  stowage::buffer<float, stowage::shape<context, head_dim>, stowage::zero::never> rotations;
  /// A step is a prefill or a decode step, never both.
  stowage::buffer<stowage::alternatives<prefill_parts, decode_parts>, stowage::zero::never> scratch;
};
// [lists]

} // namespace engine
