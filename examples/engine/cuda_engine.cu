#include "cuda_engine.hpp"

#include "cuda_kernels.cuh"
#include "kernels.hpp"

#include <stowage/report.hpp>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace engine {

namespace {

void check(cudaError_t code, const char* what) {
  if (code != cudaSuccess)
    throw std::runtime_error(std::string("engine: ") + what + ": CUDA says " + cudaGetErrorString(code));
}
void check(cublasStatus_t code, const char* what) {
  if (code != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string("engine: ") + what + ": cuBLAS says " + cublasGetStatusString(code));
}
/// Behind a launch: whether it could be launched.
void launched() { check(cudaGetLastError(), "launching a kernel"); }

cudaStream_t make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  return stream;
}
cublasHandle_t make_blas() {
  cublasHandle_t handle = nullptr;
  check(cublasCreate(&handle), "making a handle");
  return handle;
}

unsigned count_of(std::size_t number) { return static_cast<unsigned>(number); }
unsigned blocks_of_warps(std::size_t outputs) {
  return count_of((outputs + kernels::warps - 1) / kernels::warps);
}

stowage::bf16 to_bf16(float number) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  return {static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16)};
}

} // namespace

// [start]
template <class Fields>
cuda_engine<Fields>::cuda_engine(const model& model, const engine_limits& limits, stowage::any_backend device,
                                 stowage::any_backend pinned)
    : shape_(model.shape), epsilon_(model.norm_epsilon), stream_(make_stream()),
      arena_(stowage::make_plan<Fields>(engine_params{model.shape, limits}), device,
             {.stream = stream_.get()}),
      host_(stowage::make_plan<host_buffers>(engine_params{model.shape, limits}), pinned,
            {.stream = stream_.get()}),
      sequences_(arena_.params(), host_->step.parts()), blas_(make_blas()) {
  check(cublasSetStream(blas_.get(), stream_.get()), "setting the stream");
  check(cublasSetWorkspace(blas_.get(), arena_->blas_workspace.data(), arena_->blas_workspace.bytes()),
        "setting the workspace");
  upload(model);
  capture(clearing::pass, 1);
}
// [start]

template <class Fields> void cuda_engine<Fields>::upload(const model& model) {
  const std::size_t hidden_size = shape_.hidden;
  const std::size_t kv_width = shape_.kv_heads * shape_.head_dim;
  const auto& to = arena_->weights;
  send(model.embedding, to.embedding.data());
  send(model.output_norm.template row<float>(0), hidden_size, to.norms.row(2 * shape_.layers).data());
  for (std::size_t index = 0; index < shape_.layers; ++index) {
    const layer_weights& layer = model.layers[index];
    send(layer.attention_norm.template row<float>(0), hidden_size, to.norms.row(2 * index).data());
    send(layer.feed_forward_norm.template row<float>(0), hidden_size, to.norms.row(2 * index + 1).data());
    stowage::bf16* const qkv = to.qkv.row(index).data();
    send(layer.query, qkv);
    send(layer.key, qkv + hidden_size * hidden_size);
    send(layer.value, qkv + (hidden_size + kv_width) * hidden_size);
    send(layer.output, to.output.row(index).data());
    stowage::bf16* const gate_up = to.gate_up.row(index).data();
    send(layer.gate, gate_up);
    send(layer.up, gate_up + shape_.feed_forward * hidden_size);
    send(layer.down, to.down.row(index).data());
  }
  float* const rotations = host_->numbers.data();
  for (std::size_t position = 0; position < arena_.params().max_context; ++position)
    make_rotation(position, shape_.head_dim, model.rotation_base, rotations + position * shape_.head_dim);
  send(rotations, arena_->rotations.size(), arena_->rotations.data());
}

/// In pieces of as many rows as the pinned buffer holds.
template <class Fields> void cuda_engine<Fields>::send(const matrix& weights, stowage::bf16* target) {
  const std::size_t most = host_->weights.size() / weights.columns;
  for (std::size_t first = 0; first < weights.rows; first += most) {
    const std::size_t rows = std::min(most, weights.rows - first);
    for (std::size_t row = 0; row < rows; ++row) {
      dequantise(weights, first + row, host_->numbers.data());
      std::transform(host_->numbers.data(), host_->numbers.data() + weights.columns,
                     host_->weights.data() + row * weights.columns, to_bf16);
    }
    arena_.backend().copy_from_host(stream_.get(), target + first * weights.columns, host_->weights.data(),
                                    rows * weights.columns * sizeof(stowage::bf16));
    arena_.backend().synchronize(stream_.get());
  }
}

template <class Fields>
void cuda_engine<Fields>::send(const float* values, std::size_t count, float* target) {
  if (values != host_->numbers.data()) std::copy_n(values, count, host_->numbers.data());
  arena_.backend().copy_from_host(stream_.get(), target, host_->numbers.data(), count * sizeof(float));
  arena_.backend().synchronize(stream_.get());
}

template <class Fields>
std::uint32_t cuda_engine<Fields>::prefill(std::size_t sequence, std::span<const std::uint32_t> tokens,
                                           const sampling&) {
  const std::size_t most = arena_.params().max_tokens.value;
  for (std::size_t first = 0; first < tokens.size(); first += most) {
    sequences_.begin_prefill(sequence, tokens.subspan(first, std::min(most, tokens.size() - first)));
    prefill_step();
    finish(); // before the host writes the metadata of the next piece
  }
  return token_of(host_->best.data()[0]);
}

template <class Fields>
void cuda_engine<Fields>::decode(std::span<const std::size_t> sequences, std::span<std::uint32_t> tokens,
                                 const sampling&) {
  sequences_.begin_decode(sequences, tokens);
  replay();
  finish();
  for (std::size_t row = 0; row < sequences.size(); ++row) tokens[row] = token_of(host_->best.data()[row]);
}

template <class Fields> std::span<const float> cuda_engine<Fields>::logits(std::size_t row) {
  const auto from = arena_->sampling.logits.row(row);
  const auto to = host_->logits.row(row);
  arena_.backend().copy_to_host(stream_.get(), to.data(), from.data(), from.size_bytes());
  finish();
  return to;
}

template <class Fields> void cuda_engine<Fields>::copy_step() {
  arena_.backend().copy_from_host(stream_.get(), arena_->step.data(), host_->step.data(),
                                  arena_->step.bytes());
}
template <class Fields> void cuda_engine<Fields>::copy_best() {
  arena_.backend().copy_to_host(stream_.get(), host_->best.data(), arena_->sampling.best.data(),
                                arena_->sampling.best.bytes());
}
template <class Fields> void cuda_engine<Fields>::finish() { arena_.backend().synchronize(stream_.get()); }

// [graph]
template <class Fields> void cuda_engine<Fields>::capture(clearing how, std::size_t rows) {
  step_.reset();
  graph_.reset();
  zero_node_.reset();
  check(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal), "beginning a capture");
  copy_step();
  if (how == clearing::pass) {
    zero_node_ = stowage::cuda::capture_zero_rows(arena_, stream_.get(), stowage::tokens{rows});
  } else {
    clear_by_hand(how, rows);
  }
  launch_decode();
  copy_best();
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream_.get(), &graph), "ending a capture");
  graph_.reset(graph);
  cudaGraphExec_t step = nullptr;
  check(cudaGraphInstantiate(&step, graph, 0), "instantiating a graph");
  step_.reset(step);
  ++instantiations_;
  rows_in_graph_ = rows;
  generation_ = arena_.generation();
}

template <class Fields> void cuda_engine<Fields>::replay() {
  arena_.require_generation(generation_);
  const std::size_t rows = host_->step->rows.data()[0];
  if (zero_node_ && rows != rows_in_graph_) {
    zero_node_->update(step_.get(), arena_.row_segments(stowage::tokens{rows}).view());
    rows_in_graph_ = rows;
  }
  check(cudaGraphLaunch(step_.get(), stream_.get()), "launching a graph");
}
// [graph]

template <class Fields> void cuda_engine<Fields>::decode_step() {
  copy_step();
  arena_.zero_rows(stream_.get(), stowage::tokens{host_->step->rows.data()[0]});
  launch_decode();
  copy_best();
}

template <class Fields> void cuda_engine<Fields>::clear_by_hand(clearing how, std::size_t rows) {
  if (how == clearing::none) return;
  const auto& plan = arena_.plan();
  for (std::size_t field = 0; field < plan.field_count; ++field) {
    if (!plan.present(field) || stowage::report_field(plan, field).policy != "rows") continue;
    const std::size_t bytes =
        how == clearing::whole_memsets ? plan.bytes(field) : plan.zero_bytes(field, stowage::tokens{rows});
    check(cudaMemsetAsync(arena_.address(field), 0, bytes, stream_.get()), "clearing a buffer");
  }
}

// [decode]
template <class Fields> void cuda_engine<Fields>::launch_decode() {
  using namespace kernels;
  const Fields view = arena_.device_view();
  const step_parts step = view.step.parts();
  const cudaStream_t on = stream_.get();
  const unsigned rows =
      count_of(std::min(arena_.params().max_sequences.value, arena_.params().max_tokens.value));
  const auto width = count_of(shape_.hidden);
  const auto wide = count_of(shape_.feed_forward);
  const auto head_count = count_of(shape_.heads);
  const auto qkv_size = count_of(view.attention.qkv.extent(1));
  const dim3 pieces(rows, head_count, count_of(view.attention.split_weights.extent(2)));
  float* const states = view.hidden_states.data();
  const stowage::bf16* const normal = view.normalised.data();

  embed<<<rows, block_size, 0, on>>>(step, view.weights.embedding.data(), states, width);
  for (unsigned layer = 0; layer < shape_.layers; ++layer) {
    const float* norms = view.weights.norms.row(std::size_t{2} * layer).data();
    const auto of_layer = [layer](const auto& weights) {
      return weights.data() + layer * weights.row_elements();
    };
    normalise<<<rows, block_size, 0, on>>>(step, states, norms, epsilon_, view.normalised.data(), width,
                                           false);
    kernels::multiply<<<blocks_of_warps(qkv_size), block_size, 0, on>>>(
        step, rows, of_layer(view.weights.qkv), normal, width, view.attention.qkv.data(), qkv_size);
    rotate_and_store<<<rows, block_size, 0, on>>>(step, view.attention.qkv.data(), view.rotations.data(),
                                                  view.cache, head_count, layer);
    attend_splits<<<pieces, block_size, 0, on>>>(step, view.attention, view.cache, layer);
    join_splits<<<dim3(rows, head_count), block_size, 0, on>>>(step, view.attention);
    multiply_add<<<blocks_of_warps(width), block_size, 0, on>>>(
        step, of_layer(view.weights.output), view.attention.output.data(), width, states, width);
    normalise<<<rows, block_size, 0, on>>>(step, states, norms + width, epsilon_, view.normalised.data(),
                                           width, false);
    multiply_gated<<<blocks_of_warps(wide), block_size, 0, on>>>(
        step, of_layer(view.weights.gate_up), normal, width, view.feed_forward.activated.data(), wide);
    multiply_add<<<blocks_of_warps(width), block_size, 0, on>>>(
        step, of_layer(view.weights.down), view.feed_forward.activated.data(), wide, states, width);
  }
  launch_logits(false);
}
// [decode]

template <class Fields> void cuda_engine<Fields>::launch_logits(bool last_row) {
  using namespace kernels;
  const Fields view = arena_.device_view();
  const step_parts step = view.step.parts();
  const cudaStream_t on = stream_.get();
  const unsigned rows =
      last_row ? 1U
               : count_of(std::min(arena_.params().max_sequences.value, arena_.params().max_tokens.value));
  const auto width = count_of(shape_.hidden);
  const auto words = count_of(shape_.vocabulary);
  normalise<<<rows, block_size, 0, on>>>(step, view.hidden_states.data(),
                                         view.weights.norms.row(2 * shape_.layers).data(), epsilon_,
                                         view.normalised.data(), width, last_row);
  kernels::multiply<<<blocks_of_warps(words), block_size, 0, on>>>(step, rows, view.weights.embedding.data(),
                                                                   view.normalised.data(), width,
                                                                   view.sampling.logits.data(), words);
  rank<<<dim3(32, rows), block_size, 0, on>>>(step, rows, view.sampling.logits.data(), words,
                                              view.sampling.best.data());
  launched();
}

template <class Fields> void cuda_engine<Fields>::prefill_step() {
  using namespace kernels;
  const Fields view = arena_.device_view();
  const step_parts step = view.step.parts();
  const cudaStream_t on = stream_.get();
  const unsigned rows = host_->step->rows.data()[0];
  const auto width = count_of(shape_.hidden);
  const auto wide = count_of(shape_.feed_forward);
  const auto head_count = count_of(shape_.heads);
  const auto qkv_size = count_of(view.attention.qkv.extent(1));
  float* const states = view.hidden_states.data();

  copy_step();
  arena_.zero_rows(on, stowage::tokens{rows});
  embed<<<rows, block_size, 0, on>>>(step, view.weights.embedding.data(), states, width);
  for (unsigned layer = 0; layer < shape_.layers; ++layer) {
    const float* norms = view.weights.norms.row(std::size_t{2} * layer).data();
    const auto of_layer = [layer](const auto& weights) {
      return weights.data() + layer * weights.row_elements();
    };
    normalise<<<rows, block_size, 0, on>>>(step, states, norms, epsilon_, view.normalised.data(), width,
                                           false);
    multiply(of_layer(view.weights.qkv), qkv_size, width, view.normalised.data(), view.attention.qkv.data());
    rotate_and_store<<<rows, block_size, 0, on>>>(step, view.attention.qkv.data(), view.rotations.data(),
                                                  view.cache, head_count, layer);
    attend_whole<<<dim3(rows, head_count), block_size, 0, on>>>(step, view.attention, view.cache, layer);
    multiply(of_layer(view.weights.output), width, width, view.attention.output.data(), states);
    normalise<<<rows, block_size, 0, on>>>(step, states, norms + width, epsilon_, view.normalised.data(),
                                           width, false);
    multiply(of_layer(view.weights.gate_up), std::size_t{2} * wide, width, view.normalised.data(),
             view.feed_forward.gate_up.data());
    activate<<<rows, block_size, 0, on>>>(view.feed_forward.gate_up.data(),
                                          view.feed_forward.activated.data(), wide);
    multiply(of_layer(view.weights.down), width, wide, view.feed_forward.activated.data(), states);
  }
  launch_logits(true);
  copy_best();
}

template <class Fields>
template <class Real>
void cuda_engine<Fields>::multiply(const stowage::bf16* weights, std::size_t outputs, std::size_t width,
                                   const stowage::bf16* input, Real* result) {
  // cuBLAS counts by columns: its [outputs, rows] is our [rows, outputs].
  constexpr bool add = std::is_same_v<Real, float>;
  const float one = 1.0F;
  const float keep = add ? 1.0F : 0.0F;
  const int rows = static_cast<int>(host_->step->rows.data()[0]);
  const int n = static_cast<int>(outputs);
  const int k = static_cast<int>(width);
  check(cublasGemmEx(blas_.get(), CUBLAS_OP_T, CUBLAS_OP_N, n, rows, k, &one, weights, CUDA_R_16BF, k, input,
                     CUDA_R_16BF, k, &keep, result, add ? CUDA_R_32F : CUDA_R_16BF, n, CUBLAS_COMPUTE_32F,
                     CUBLAS_GEMM_DEFAULT),
        "multiplying");
}

template class cuda_engine<cuda_buffers<>>;
template class cuda_engine<cuda_buffers<stowage::zero::rows>>;

} // namespace engine
