#include "cpu_engine.hpp"

#include "kernels.hpp"

#include <cblas.h>

#include <algorithm>
#include <atomic>
#include <cmath>

// OpenBLAS has threads of its own; here a call is the share of one of the engine's threads. Weak, so that another BLAS
// will do.
// NOLINTNEXTLINE(readability-redundant-declaration)
extern "C" [[gnu::weak]] void openblas_set_num_threads(int);

namespace engine {

namespace {

int blas_size(std::size_t size) { return static_cast<int>(size); }

/// Eight sums, so that the compiler may use vectors.
float dot_product(const float* left, const float* right, std::size_t count) {
  float sums[8] = {};
  for (std::size_t at = 0; at < count; at += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += left[at + lane] * right[at + lane];
  }
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

} // namespace

template <class Fields>
cpu_engine<Fields>::cpu_engine(const model& model, const engine_limits& limits, stowage::any_backend backend)
    : model_(model), arena_(stowage::make_plan<Fields>(engine_params{model.shape, limits}), backend),
      sequences_(arena_.params(), arena_->step.parts()), workers_(limits.threads) {
  const std::size_t dim = model.shape.head_dim;
  for (std::size_t position = 0; position < limits.max_context; ++position)
    make_rotation(position, dim, model.rotation_base, arena_->rotations.row(position).data());
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
}

// [requests]
template <class Fields>
std::uint32_t cpu_engine<Fields>::prefill(std::size_t sequence, std::span<const std::uint32_t> tokens,
                                          const sampling& how) {
  const std::size_t most = arena_.params().max_tokens.value;
  for (std::size_t first = 0; first < tokens.size(); first += most) { // a long prompt goes in pieces
    sequences_.begin_prefill(sequence, tokens.subspan(first, std::min(most, tokens.size() - first)));
    prefill_step();
  }
  return sample(arena_->sampling, 0, how);
}

template <class Fields>
void cpu_engine<Fields>::decode(std::span<const std::size_t> sequences, std::span<std::uint32_t> tokens,
                                const sampling& how) {
  sequences_.begin_decode(sequences, tokens);
  decode_step();
  for (std::size_t row = 0; row < sequences.size(); ++row) tokens[row] = sample(arena_->sampling, row, how);
}
// [requests]

template <class Fields> void cpu_engine<Fields>::prefill_step() {
  const std::size_t count = rows();
  const model_shape& shape = model_.shape;
  const std::size_t width = arena_->attention.qkv.extent(1);
  const std::size_t heads_width = shape.heads * shape.head_dim;
  float* const states = arena_->hidden_states.data();
  float* const qkv = arena_->attention.qkv.data();
  float* const gate_up = arena_->feed_forward.gate_up.data();

  arena_.zero_rows({}, stowage::tokens{count});
  embed();
  for (std::size_t index = 0; index < shape.layers; ++index) {
    const layer_weights& layer = model_.layers[index];
    normalise_rows(layer.attention_norm, count, states);
    multiply(layer.query, arena_->normalised.data(), qkv, width, false);
    multiply(layer.key, arena_->normalised.data(), qkv + heads_width, width, false);
    multiply(layer.value, arena_->normalised.data(), qkv + heads_width + layer.key.rows, width, false);
    store(index);
    attend_prefill(index);
    multiply(layer.output, arena_->attention.output.data(), states, shape.hidden, true);

    normalise_rows(layer.feed_forward_norm, count, states);
    multiply(layer.gate, arena_->normalised.data(), gate_up, 2 * shape.feed_forward, false);
    multiply(layer.up, arena_->normalised.data(), gate_up + shape.feed_forward, 2 * shape.feed_forward,
             false);
    workers_.split(count, 1, [&](std::size_t first, std::size_t last) {
      for (std::size_t row = first; row < last; ++row) {
        const float* both = gate_up + row * 2 * shape.feed_forward;
        float* activated = arena_->feed_forward.activated.data() + row * shape.feed_forward;
        for (std::size_t at = 0; at < shape.feed_forward; ++at)
          activated[at] = gated(both[at], both[shape.feed_forward + at]);
      }
    });
    multiply(layer.down, arena_->feed_forward.activated.data(), states, shape.hidden, true);
  }
  normalise_rows(model_.output_norm, 1, states + (count - 1) * shape.hidden);
  quantise_rows(arena_->normalised.data(), shape.hidden, 1);
  make_logits(1);
}

// [decode]
template <class Fields> void cpu_engine<Fields>::decode_step() {
  const std::size_t count = rows();
  const model_shape& shape = model_.shape;
  const std::size_t width = arena_->attention.qkv.extent(1);
  float* const states = arena_->hidden_states.data();
  float* const qkv = arena_->attention.qkv.data();
  float* const activated = arena_->feed_forward.activated.data();
  const auto add_to_states = [&](std::size_t row, std::size_t n, float value) {
    states[row * shape.hidden + n] += value;
  };

  arena_.zero_rows({}, stowage::tokens{count});
  embed();
  for (std::size_t index = 0; index < shape.layers; ++index) {
    const layer_weights& layer = model_.layers[index];
    normalise_rows(layer.attention_norm, count, states);
    quantise_rows(arena_->normalised.data(), shape.hidden, count);
    std::size_t column = 0;
    for (const matrix* weights : {&layer.query, &layer.key, &layer.value}) {
      multiply_quantised(*weights, count, [&](std::size_t row, std::size_t n, float value) {
        qkv[row * width + column + n] = value;
      });
      column += weights->rows;
    }
    store(index);
    attend_decode(index);
    quantise_rows(arena_->attention.output.data(), shape.hidden, count);
    multiply_quantised(layer.output, count, add_to_states);

    normalise_rows(layer.feed_forward_norm, count, states);
    quantise_rows(arena_->normalised.data(), shape.hidden, count);
    workers_.split(shape.feed_forward, 16, [&](std::size_t first, std::size_t last) {
      multiply_slice(layer.gate, first, last, count, [&](std::size_t row, std::size_t n, float value) {
        activated[row * shape.feed_forward + n] = value;
      });
      multiply_slice(layer.up, first, last, count, [&](std::size_t row, std::size_t n, float value) {
        float& gate = activated[row * shape.feed_forward + n];
        gate = gated(gate, value);
      });
    });
    quantise_rows(activated, shape.feed_forward, count);
    multiply_quantised(layer.down, count, add_to_states);
  }
  normalise_rows(model_.output_norm, count, states);
  quantise_rows(arena_->normalised.data(), shape.hidden, count);
  make_logits(count);
}
// [decode]

template <class Fields> void cpu_engine<Fields>::embed() {
  const step_parts& step = arena_->step.parts();
  for (std::size_t row = 0; row < rows(); ++row)
    dequantise(model_.embedding, step.tokens.data()[row], arena_->hidden_states.row(row).data());
}

template <class Fields>
void cpu_engine<Fields>::normalise_rows(const matrix& weights, std::size_t rows, const float* from) {
  for (std::size_t row = 0; row < rows; ++row)
    normalise(from + row * weights.columns, weights, model_.norm_epsilon, arena_->normalised.row(row).data());
}

template <class Fields>
float* cpu_engine<Fields>::cached(const stowage::tensor_handle<float, 5, false>& cache, std::size_t sequence,
                                  std::size_t position, std::size_t layer) const {
  const auto& pages = arena_->step->pages;
  const std::size_t page = pages.data()[sequence * pages.extent(1) + position / page_tokens];
  const std::size_t token = (page * cache.extent(1) + layer) * page_tokens + position % page_tokens;
  return cache.data() + token * cache.extent(3) * cache.extent(4);
}

template <class Fields> void cpu_engine<Fields>::store(std::size_t layer) {
  const model_shape& shape = model_.shape;
  const step_parts& step = arena_->step.parts();
  const std::size_t kv_width = shape.kv_heads * shape.head_dim;
  workers_.split(rows(), 8, [&](std::size_t first, std::size_t last) {
    for (std::size_t row = first; row < last; ++row) {
      float* const qkv = arena_->attention.qkv.data() + row * arena_->attention.qkv.extent(1);
      const std::size_t position = step.positions.data()[row];
      const std::size_t sequence = step.sequences.data()[row];
      for (std::size_t head = 0; head < shape.heads + shape.kv_heads; ++head)
        rotate(qkv + head * shape.head_dim, shape.head_dim, arena_->rotations.row(position).data());
      const float* keys = qkv + shape.heads * shape.head_dim;
      std::copy_n(keys, kv_width, cached(arena_->cache.keys, sequence, position, layer));
      std::copy_n(keys + kv_width, kv_width, cached(arena_->cache.values, sequence, position, layer));
    }
  });
}

template <class Fields> void cpu_engine<Fields>::attend_prefill(std::size_t layer) {
  const model_shape& shape = model_.shape;
  const step_parts& step = arena_->step.parts();
  const auto& scratch = arena_->scratch.template as<prefill_parts>();
  const std::size_t count = rows();
  const std::size_t sequence = step.sequences.data()[0];
  const std::size_t begin = step.positions.data()[0]; // tokens before this piece of the prompt
  const std::size_t length = begin + count;
  const std::size_t dim = shape.head_dim;
  const std::size_t width = arena_->attention.qkv.extent(1);
  const float scale = 1.0F / std::sqrt(static_cast<float>(dim));
  workers_.run(workers_.count(), [&](std::size_t worker) {
    float* const keys = scratch.keys.row(worker).data();
    float* const values = scratch.values.row(worker).data();
    float* const scores = scratch.scores.row(worker).data();
    for (std::size_t head = worker; head < shape.heads; head += workers_.count()) {
      const std::size_t kv_head = head / (shape.heads / shape.kv_heads);
      for (std::size_t position = 0; position < length; ++position) {
        std::copy_n(cached(arena_->cache.keys, sequence, position, layer) + kv_head * dim, dim,
                    keys + position * dim);
        std::copy_n(cached(arena_->cache.values, sequence, position, layer) + kv_head * dim, dim,
                    values + position * dim);
      }
      const std::size_t tile = scratch.scores.extent(1);
      for (std::size_t first = 0; first < count; first += tile) {
        const std::size_t queries = std::min(tile, count - first);
        const std::size_t reach = begin + first + queries; // keys that the last of the queries sees
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, blas_size(queries), blas_size(reach),
                    blas_size(dim), scale, arena_->attention.qkv.data() + first * width + head * dim,
                    blas_size(width), keys, blas_size(dim), 0.0F, scores, blas_size(reach));
        for (std::size_t query = 0; query < queries; ++query) {
          float* const row = scores + query * reach;
          const std::size_t seen = begin + first + query + 1;
          const float largest = *std::max_element(row, row + seen);
          float sum = 0.0F;
          for (std::size_t at = 0; at < seen; ++at) sum += row[at] = std::exp(row[at] - largest);
          for (std::size_t at = 0; at < seen; ++at) row[at] /= sum;
          std::fill(row + seen, row + reach, 0.0F);
        }
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, blas_size(queries), blas_size(dim),
                    blas_size(reach), 1.0F, scores, blas_size(reach), values, blas_size(dim), 0.0F,
                    arena_->attention.output.data() + (first * shape.heads + head) * dim,
                    blas_size(shape.heads * dim));
      }
    }
  });
}

// [splits]
template <class Fields> void cpu_engine<Fields>::attend_decode(std::size_t layer) {
  const auto& weights = arena_->attention.split_weights;
  const auto& outputs = arena_->attention.split_outputs;
  const std::size_t each = weights.extent(1);
  const std::size_t pieces = weights.extent(2);
  const std::size_t dim = outputs.extent(3);
  const std::size_t count = rows();
  workers_.split(count * each * pieces, 1, [&](std::size_t first, std::size_t last) {
    for (std::size_t item = first; item < last; ++item) {
      const std::size_t row = item / pieces / each;
      if (item % pieces * split_tokens > arena_->step->positions.data()[row]) continue; // no such piece
      attend_split(layer, row, item / pieces % each, item % pieces);
    }
  });
  for (std::size_t head = 0; head < count * each; ++head) {
    const float* found = weights.data() + head * pieces * 2;
    float largest = found[0];
    for (std::size_t split = 1; split < pieces; ++split)
      if (found[2 * split + 1] > 0.0F) largest = std::max(largest, found[2 * split]);
    float* const output = arena_->attention.output.data() + head * dim;
    std::fill_n(output, dim, 0.0F);
    float sum = 0.0F;
    for (std::size_t split = 0; split < pieces; ++split) {
      if (found[2 * split + 1] == 0.0F) continue; // the row pass left it so
      const float weight = std::exp(found[2 * split] - largest);
      sum += weight * found[2 * split + 1];
      const float* values = outputs.data() + (head * pieces + split) * dim;
      for (std::size_t at = 0; at < dim; ++at) output[at] += weight * values[at];
    }
    for (std::size_t at = 0; at < dim; ++at) output[at] /= sum;
  }
}
// [splits]

template <class Fields>
void cpu_engine<Fields>::attend_split(std::size_t layer, std::size_t row, std::size_t head,
                                      std::size_t split) {
  const model_shape& shape = model_.shape;
  const step_parts& step = arena_->step.parts();
  const std::size_t dim = shape.head_dim;
  const std::size_t sequence = step.sequences.data()[row];
  const std::size_t offset = head / (shape.heads / shape.kv_heads) * dim;
  const std::size_t first = split * split_tokens;
  const std::size_t last = std::min<std::size_t>(first + split_tokens, step.positions.data()[row] + 1);
  const float* query = arena_->attention.qkv.data() + row * arena_->attention.qkv.extent(1) + head * dim;
  const float scale = 1.0F / std::sqrt(static_cast<float>(dim));

  std::array<float, split_tokens> scores;
  float largest = -INFINITY;
  for (std::size_t position = first; position < last; ++position) {
    const float* key = cached(arena_->cache.keys, sequence, position, layer) + offset;
    scores[position - first] = scale * dot_product(query, key, dim);
    largest = std::max(largest, scores[position - first]);
  }
  const std::size_t piece = (row * shape.heads + head) * arena_->attention.split_weights.extent(2) + split;
  float* const output = arena_->attention.split_outputs.data() + piece * dim;
  std::fill_n(output, dim, 0.0F);
  float sum = 0.0F;
  for (std::size_t position = first; position < last; ++position) {
    const float weight = std::exp(scores[position - first] - largest);
    const float* value = cached(arena_->cache.values, sequence, position, layer) + offset;
    sum += weight;
    for (std::size_t at = 0; at < dim; ++at) output[at] += weight * value[at];
  }
  arena_->attention.split_weights.data()[2 * piece] = largest;
  arena_->attention.split_weights.data()[2 * piece + 1] = sum;
}

template <class Fields> void cpu_engine<Fields>::make_logits(std::size_t rows) {
  const auto& sampling = arena_->sampling;
  workers_.split(model_.shape.vocabulary, 64, [&](std::size_t first, std::size_t last) {
    multiply_slice(model_.embedding, first, last, rows, [&](std::size_t row, std::size_t n, float value) {
      sampling.logits.data()[row * model_.shape.vocabulary + n] = value;
    });
    for (std::size_t row = 0; row < rows; ++row) {
      const float* logits = sampling.logits.data() + row * model_.shape.vocabulary;
      const auto n = static_cast<std::uint32_t>(std::max_element(logits + first, logits + last) - logits);
      std::atomic_ref best(sampling.best.data()[row]);
      const std::uint64_t mine = ranked(logits[n], n);
      std::uint64_t seen = best.load();
      while (seen < mine && !best.compare_exchange_weak(seen, mine)) {}
    }
  });
}

template <class Fields>
void cpu_engine<Fields>::multiply(const matrix& weights, const float* input, float* result,
                                  std::size_t stride, bool add) {
  const auto& scratch = arena_->scratch.template as<prefill_parts>();
  workers_.split(weights.rows, 8, [&](std::size_t first, std::size_t last) {
    float* const slice = scratch.weights.data() + first * weights.columns;
    for (std::size_t row = first; row < last; ++row)
      dequantise(weights, row, slice + (row - first) * weights.columns);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, blas_size(rows()), blas_size(last - first),
                blas_size(weights.columns), 1.0F, input, blas_size(weights.columns), slice,
                blas_size(weights.columns), add ? 1.0F : 0.0F, result + first, blas_size(stride));
  });
}

template <class Fields>
void cpu_engine<Fields>::quantise_rows(const float* values, std::size_t width, std::size_t rows) {
  const auto& quantised = arena_->scratch.template as<decode_parts>().quantised;
  for (std::size_t row = 0; row < rows; ++row)
    quantise(values + row * width, width, quantised.data() + row * (quantised.extent(1) / 32));
}

template <class Fields>
template <class Write>
void cpu_engine<Fields>::multiply_quantised(const matrix& weights, std::size_t rows, const Write& write) {
  workers_.split(weights.rows, 16, [&](std::size_t first, std::size_t last) {
    multiply_slice(weights, first, last, rows, write);
  });
}

// [tiles]
template <class Fields>
template <class Write>
void cpu_engine<Fields>::multiply_slice(const matrix& weights, std::size_t first, std::size_t last,
                                        std::size_t rows, const Write& write) {
  const auto& quantised = arena_->scratch.template as<decode_parts>().quantised;
  const std::size_t stride = quantised.extent(1) / 32;
  for (std::size_t n = first; n < last; ++n) {
    if (rows == 1) {
      write(0, n, dot<1>(weights, n, quantised.data(), stride)[0]);
      continue;
    }
    for (std::size_t tile = 0; tile < rows;
         tile += tile_rows) { // whole tiles are read, rows of the batch written
      const auto values = dot<tile_rows>(weights, n, quantised.data() + tile * stride, stride);
      for (std::size_t row = tile; row < std::min(rows, tile + tile_rows); ++row)
        write(row, n, values[row - tile]);
    }
  }
}
// [tiles]

template class cpu_engine<cpu_buffers<>>;
template class cpu_engine<cpu_buffers<stowage::zero::rows>>;

} // namespace engine
