// The weights of a model of the Llama architecture, where they lie in its file.
#pragma once

#include "buffers.hpp"
#include "gguf.hpp"

#include <vector>

namespace engine {

struct layer_weights {
  matrix attention_norm, query, key, value, output;
  matrix feed_forward_norm, gate, up, down;
};

struct model {
  /// Throws std::runtime_error where the file lacks something or its sizes do not go together.
  explicit model(const gguf_file& file);

  model_shape shape;
  float norm_epsilon, rotation_base;
  matrix embedding; ///< of the tokens, and of the logits: they share it
  matrix output_norm;
  std::vector<layer_weights> layers;
};

} // namespace engine
