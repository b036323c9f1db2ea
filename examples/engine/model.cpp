#include "model.hpp"

#include <stdexcept>
#include <string>

namespace engine {

namespace {

void require(bool right, const char* what) {
  if (!right) throw std::runtime_error(std::string("engine: this model is not supported: ") + what);
}

} // namespace

model::model(const gguf_file& file)
    : shape{}, norm_epsilon(file.real("llama.attention.layer_norm_rms_epsilon")),
      rotation_base(file.has("llama.rope.freq_base") ? file.real("llama.rope.freq_base") : 10000.0F),
      embedding(file.tensor("token_embd.weight")) {
  require(file.text("general.architecture") == "llama", "its architecture is not llama");
  shape.layers = file.integer("llama.block_count");
  shape.hidden = file.integer("llama.embedding_length");
  shape.heads = file.integer("llama.attention.head_count");
  shape.kv_heads = file.integer("llama.attention.head_count_kv");
  shape.feed_forward = file.integer("llama.feed_forward_length");
  shape.vocabulary = embedding.rows;
  require(shape.heads != 0 && shape.kv_heads != 0 && shape.heads % shape.kv_heads == 0,
          "its numbers of heads");
  shape.head_dim = shape.hidden / shape.heads;
  require(shape.head_dim * shape.heads == shape.hidden, "its heads do not divide its hidden size");
  require(shape.head_dim % 32 == 0 && shape.head_dim <= 128, "its heads' size is not 32, 64, 96 or 128");

  const auto load = [&file](const std::string& name, std::size_t rows, std::size_t columns) {
    const matrix found = file.tensor(name);
    require(found.rows == rows && found.columns == columns, name.c_str());
    require((found.type == tensor_type::f32) == (rows == 1), name.c_str());
    return found;
  };
  embedding = load("token_embd.weight", shape.vocabulary, shape.hidden);
  require(embedding.type == tensor_type::q8_0, "its embedding is not Q8_0");
  output_norm = load("output_norm.weight", 1, shape.hidden);
  const std::size_t kv_width = shape.kv_heads * shape.head_dim;
  for (std::size_t index = 0; index < shape.layers; ++index) {
    const std::string block = "blk." + std::to_string(index) + ".";
    layer_weights layer;
    layer.attention_norm = load(block + "attn_norm.weight", 1, shape.hidden);
    layer.query = load(block + "attn_q.weight", shape.hidden, shape.hidden);
    layer.key = load(block + "attn_k.weight", kv_width, shape.hidden);
    layer.value = load(block + "attn_v.weight", kv_width, shape.hidden);
    layer.output = load(block + "attn_output.weight", shape.hidden, shape.hidden);
    layer.feed_forward_norm = load(block + "ffn_norm.weight", 1, shape.hidden);
    layer.gate = load(block + "ffn_gate.weight", shape.feed_forward, shape.hidden);
    layer.up = load(block + "ffn_up.weight", shape.feed_forward, shape.hidden);
    layer.down = load(block + "ffn_down.weight", shape.hidden, shape.feed_forward);
    layers.push_back(layer);
  }
}

} // namespace engine
