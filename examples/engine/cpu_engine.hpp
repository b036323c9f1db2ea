// The engine on the CPU: a prompt goes through a BLAS, the steps after it through kernels on quantised weights.
#pragma once

#include "model.hpp"
#include "sampler.hpp"
#include "sequences.hpp"
#include "workers.hpp"

#include <stowage/backend/any.hpp>

#include <span>

namespace engine {

/// `Fields` is cpu_buffers<>, or what the zeroing experiment compares it with.
template <class Fields = cpu_buffers<>> class cpu_engine {
public:
  using arena_type = stowage::arena<Fields, engine_params, stowage::any_backend>;

  /// Allocates once, through the backend. The weights stay where the model has them.
  cpu_engine(const model& model, const engine_limits& limits, stowage::any_backend backend);

  [[nodiscard]] sequence_table& sequences() { return sequences_; }
  [[nodiscard]] arena_type& arena() { return arena_; }

  /// Appends a prompt to a sequence and returns the token behind it.
  std::uint32_t prefill(std::size_t sequence, std::span<const std::uint32_t> tokens,
                        const sampling& how = {});
  /// Appends a token to each sequence, and replaces it by the token behind it.
  void decode(std::span<const std::size_t> sequences, std::span<std::uint32_t> tokens,
              const sampling& how = {});
  /// Of a row of the last step; after a prefill row 0 holds those of the last token.
  [[nodiscard]] std::span<const float> logits(std::size_t row) const {
    return arena_->sampling.logits.row(row);
  }

  /// One step, for the metadata that is there: what a zeroing experiment repeats.
  void prefill_step();
  void decode_step();

private:
  void embed();
  /// Rotates queries and keys of layer `layer`, and puts keys and values in the cache.
  void store(std::size_t layer);
  void attend_prefill(std::size_t layer);
  void attend_decode(std::size_t layer);
  void attend_split(std::size_t layer, std::size_t row, std::size_t head, std::size_t split);
  /// Logits of `rows` rows from the quantised activations.
  void make_logits(std::size_t rows);

  /// Whole matrices through the BLAS: result[row, first_column + n] = or += weights row n times input row.
  void multiply(const matrix& weights, const float* input, float* result, std::size_t stride, bool add);
  /// The same for few rows, from the quantised activations: write(row, n, value).
  template <class Write> void multiply_quantised(const matrix& weights, std::size_t rows, const Write& write);
  template <class Write>
  void multiply_slice(const matrix& weights, std::size_t first, std::size_t last, std::size_t rows,
                      const Write& write);
  void quantise_rows(const float* values, std::size_t width, std::size_t rows);
  void normalise_rows(const matrix& weights, std::size_t rows, const float* from);

  [[nodiscard]] std::size_t rows() const { return arena_->step->rows.data()[0]; }
  [[nodiscard]] float* cached(const stowage::tensor_handle<float, 5, false>& cache, std::size_t sequence,
                              std::size_t position, std::size_t layer) const;

  const model& model_;
  arena_type arena_;
  sequence_table sequences_;
  workers workers_;
};

} // namespace engine
