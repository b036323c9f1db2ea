#pragma once

#include <stowage/cursor.hpp>
#include <stowage/formula.hpp>
#include <stowage/llm/forward_params.hpp>

#include <cstddef>
#include <span>

namespace stowage::inline v0_1::llm {

/// The bf16 copies of one linear-attention layer's projections.
struct rowwise_layer {
  /// [qkvz, hidden]
  std::span<bf16> input_projection;
  /// [hidden, value_dim]
  std::span<bf16> output_projection;
};

/// Takes the next layer's pair from the rowwise slab, `stowage::cursor slab(arena->ssm_rowwise_w_bf16);`,
/// which holds exactly one pair for each linear-attention layer. From any thread. Throws what cursor::take
/// throws; a failed take leaves the slab as it was.
[[nodiscard]] inline rowwise_layer take_rowwise_layer(cursor& slab, const forward_params& params) {
  const std::size_t input = evaluate(symbols::qkvz * symbols::hidden, params);
  const std::size_t both =
      evaluate((symbols::qkvz + symbols::value_dim) * symbols::hidden * sizeof(bf16), params);
  const std::span<std::byte> taken = slab.take(both, alignof(bf16));
  const std::span<bf16> pair{reinterpret_cast<bf16*>(taken.data()), both / sizeof(bf16)};
  return {pair.first(input), pair.subspan(input)};
}

} // namespace stowage::inline v0_1::llm
