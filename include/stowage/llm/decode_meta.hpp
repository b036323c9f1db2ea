#pragma once

#include <stowage/buffer.hpp>
#include <stowage/carve.hpp>
#include <stowage/llm/forward_params.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace stowage::inline v0_1::llm {

/// The metadata of `Rows` sequences of a decode or verify step, in one block that one copy brings to the
/// device. With R rows the parts lie at 0, 4R, 8R, 16R and 24R bytes and the whole takes 24R + 4*R*blocks.
/// The slots are aligned to 8 for every R.
template <auto Rows> struct decode_metadata {
  /// Position of each sequence's token.
  part<std::uint32_t, shape<Rows>> positions;
  /// Slot of each sequence in the state cache of the linear-attention layers.
  part<std::int32_t, shape<Rows>> seq_slot;
  /// Where each sequence's token goes in the key-value cache.
  part<std::int64_t, shape<Rows>> slots;
  /// Tokens of each sequence.
  part<std::int32_t, shape<Rows>> seq_lens;
  /// [20R, 24R): kept free, so that the block table starts at a multiple of 8.
  part<std::int32_t, shape<Rows>> unused;
  /// Blocks of each sequence in the key-value cache.
  part<std::int32_t, shape<Rows, symbols::blocks>> block_table;
};

/// Where the decode metadata of an arena lies: rows, and byte offsets from its start.
struct decode_metadata_layout {
  /// Rows of each part (R).
  std::size_t rows = 0;
  /// Offset of the positions.
  std::size_t positions = 0;
  /// Offset of the slots in the state cache.
  std::size_t seq_slot = 0;
  /// Offset of the slots in the key-value cache.
  std::size_t slots = 0;
  /// Offset of the sequences' lengths.
  std::size_t seq_lens = 0;
  /// Offset of the part that is kept free.
  std::size_t unused = 0;
  /// Offset of the block table.
  std::size_t block_table = 0;
  /// Bytes of the whole block.
  std::size_t bytes = 0;
};

/// The layout for given params: R rows, from the same region list that the arena's scratch buffer is sized
/// by. Throws size_error for a batch above 128. A template, so that only who calls it compiles it.
template <std::derived_from<forward_params> Params>
[[nodiscard]] constexpr decode_metadata_layout decode_metadata_of(const Params& params) {
  using parts = decode_metadata<symbols::R>;
  const auto layout = layout_of<parts>(params);
  return {evaluate(symbols::R, params),
          layout.template offset<&parts::positions>(),
          layout.template offset<&parts::seq_slot>(),
          layout.template offset<&parts::slots>(),
          layout.template offset<&parts::seq_lens>(),
          layout.template offset<&parts::unused>(),
          layout.template offset<&parts::block_table>(),
          layout.bytes()};
}

} // namespace stowage::inline v0_1::llm
