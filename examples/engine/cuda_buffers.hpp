// The field lists of the CUDA half: the groups of the CPU half in bf16, the weights, and what the host sees.
#pragma once

#include "buffers.hpp"

namespace engine {

// [lists]
/// The weights as bf16: what they are dequantised to when the engine starts.
struct weight_buffers {
  stowage::buffer<stowage::bf16, stowage::shape<vocabulary, hidden>, stowage::zero::never> embedding;
  stowage::buffer<stowage::bf16, stowage::shape<layers, qkv_width, hidden>, stowage::zero::never> qkv;
  stowage::buffer<stowage::bf16, stowage::shape<layers, hidden, hidden>, stowage::zero::never> output;
  stowage::buffer<stowage::bf16, stowage::shape<layers, 2, feed_forward, hidden>, stowage::zero::never>
      gate_up;
  stowage::buffer<stowage::bf16, stowage::shape<layers, hidden, feed_forward>, stowage::zero::never> down;
  /// Before attention and before the feed-forward half of each layer, and before the logits.
  stowage::buffer<float, stowage::shape<2 * layers + 1, hidden>, stowage::zero::never> norms;
};

template <class Habit = stowage::zero::never> struct cuda_buffers {
  stowage::buffer<stowage::regions<step_parts>, stowage::zero::never> step;
  stowage::buffer<float, stowage::shape<M, hidden>, Habit> hidden_states;
  stowage::buffer<stowage::bf16, stowage::shape<stowage::pad<tile_rows>(M), hidden>, Habit> normalised;
  attention_buffers<stowage::bf16, Habit> attention;
  feed_forward_buffers<stowage::bf16, Habit> feed_forward;
  sampling_buffers<Habit> sampling;
  cache_buffers<stowage::bf16> cache;
  stowage::buffer<float, stowage::shape<context, head_dim>, stowage::zero::never> rotations;
  weight_buffers weights;
  /// Given to cuBLAS, so that it allocates nothing by itself.
  stowage::buffer<std::byte, stowage::shape<32 << 20>, stowage::zero::never> blas_workspace;
};

/// Pinned memory: what the host writes before a step, reads behind it, and sends when the engine starts.
struct host_buffers {
  stowage::buffer<stowage::regions<step_parts>, stowage::zero::never> step;
  stowage::buffer<std::uint64_t, stowage::shape<R>, stowage::zero::never> best;
  stowage::buffer<float, stowage::shape<R, vocabulary>, stowage::zero::never> logits;
  stowage::buffer<float, stowage::shape<stowage::max(context* head_dim, widest)>, stowage::zero::never>
      numbers;
  stowage::buffer<stowage::bf16, stowage::shape<hidden * widest>, stowage::zero::never> weights;
};
// [lists]

} // namespace engine
