#pragma once

#include <stowage/buffer.hpp>
#include <stowage/llm/forward_params.hpp>

#include <cstdint>

namespace stowage::llm {

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

} // namespace stowage::llm
