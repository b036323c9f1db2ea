// The engine on a GPU: a prompt goes through cuBLAS, the steps after it through one CUDA graph.
#pragma once

#include "cuda_buffers.hpp"
#include "model.hpp"
#include "sampler.hpp"
#include "sequences.hpp"

#include <stowage/backend/any.hpp>
#include <stowage/cuda/backend.hpp>
#include <stowage/cuda/graph.hpp>

#include <cublas_v2.h>

#include <memory>
#include <optional>
#include <span>

namespace engine {

/// How a decode step clears what it must find cleared. All but `pass` are for comparison; they clear what
/// `Fields` has a row policy for.
enum class clearing { none, whole_memsets, row_memsets, pass };

/// `Fields` is cuda_buffers<>, or what the zeroing experiment compares it with. Takes the best token; there is no
/// sampling here.
template <class Fields = cuda_buffers<>> class cuda_engine {
public:
  using arena_type = stowage::arena<Fields, engine_params, stowage::any_backend>;

  /// Allocates once on the device and once in pinned memory, and copies the weights. Throws stowage::cuda::error and
  /// std::runtime_error.
  cuda_engine(const model& model, const engine_limits& limits, stowage::any_backend device,
              stowage::any_backend pinned);
  ~cuda_engine() { cudaStreamSynchronize(stream_.get()); }
  cuda_engine(const cuda_engine&) = delete;
  cuda_engine& operator=(const cuda_engine&) = delete;

  [[nodiscard]] sequence_table& sequences() { return sequences_; }
  [[nodiscard]] arena_type& arena() { return arena_; }
  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }

  std::uint32_t prefill(std::size_t sequence, std::span<const std::uint32_t> tokens, const sampling& = {});
  void decode(std::span<const std::size_t> sequences, std::span<std::uint32_t> tokens, const sampling& = {});
  /// Of a row of the last step, copied to the host.
  [[nodiscard]] std::span<const float> logits(std::size_t row);

  /// A decode step for the metadata that is there, without the graph: what a zeroing experiment repeats.
  void decode_step();
  /// Captures the decode step again, with another way of clearing. The memsets are for `rows` rows; the pass is updated
  /// when a step has another number.
  void capture(clearing how, std::size_t rows);
  /// Graphs instantiated so far: one, and one more for each capture().
  [[nodiscard]] std::size_t instantiations() const { return instantiations_; }
  /// Launches the captured step for the metadata that is there.
  void replay();

private:
  void upload(const model& model);
  void send(const matrix& weights, stowage::bf16* target);
  void send(const float* values, std::size_t count, float* target);
  void prefill_step();
  void clear_by_hand(clearing how, std::size_t rows);
  void copy_step();
  void copy_best();
  void finish();
  void launch_decode();
  /// Logits and the best token: of each row, or of the last one alone as row 0.
  void launch_logits(bool last_row);
  /// Whole matrices through cuBLAS: bf16 results, or f32 ones that are added to.
  template <class Real>
  void multiply(const stowage::bf16* weights, std::size_t outputs, std::size_t width,
                const stowage::bf16* input, Real* result);

  struct deleter {
    void operator()(CUstream_st* stream) const { cudaStreamDestroy(stream); }
    void operator()(cublasContext* handle) const { cublasDestroy(handle); }
    void operator()(CUgraph_st* graph) const { cudaGraphDestroy(graph); }
    void operator()(CUgraphExec_st* graph) const { cudaGraphExecDestroy(graph); }
  };
  template <class Handle> using owner = std::unique_ptr<Handle, deleter>;

  model_shape shape_;
  float epsilon_;
  owner<CUstream_st> stream_;
  arena_type arena_;
  stowage::arena<host_buffers, engine_params, stowage::any_backend> host_;
  sequence_table sequences_;
  owner<cublasContext> blas_;
  owner<CUgraph_st> graph_;
  owner<CUgraphExec_st> step_;
  std::optional<stowage::cuda::zero_node> zero_node_;
  std::size_t rows_in_graph_ = 0, instantiations_ = 0;
  std::uint64_t generation_ = 0;
};

} // namespace engine
