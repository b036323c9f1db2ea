// The decode metadata, for every number of rows.

#include <stowage/llm/decode_meta.hpp>
#include <stowage/llm/scratch_layouts.hpp>

#include <cstddef>
#include <cstdint>

namespace {

using stowage::llm::decode_metadata;
using stowage::llm::decode_metadata_layout;
using stowage::llm::decode_metadata_of;
using stowage::llm::forward_params;

constexpr forward_params params_of(std::int64_t batch, std::int64_t block, bool padded = false) {
  forward_params params{};
  params.max_seq_len = 4096;
  params.kv_block_size = block;
  params.max_batch_size = batch;
  params.pad_decode_rows = padded;
  return params;
}

constexpr bool is_the_layout_for(const decode_metadata_layout& layout, std::size_t rows, std::size_t blocks) {
  return layout.rows == rows && layout.positions == 0 && layout.seq_slot == 4 * rows &&
         layout.slots == 8 * rows && layout.seq_lens == 16 * rows && layout.unused == 20 * rows &&
         layout.block_table == 24 * rows && layout.bytes == 24 * rows + 4 * rows * blocks &&
         layout.slots % 8 == 0;
}

/// Every R in a range, with 257 and with 256 blocks. In several pieces, for compilers that count steps.
constexpr bool right_for_rows(std::int64_t first, std::int64_t last) {
  for (std::int64_t rows = first; rows <= last; ++rows) {
    const auto expected = static_cast<std::size_t>(rows);
    if (!is_the_layout_for(decode_metadata_of(params_of(rows, 16)), expected, 257)) return false;
    if (!is_the_layout_for(decode_metadata_of(params_of(rows, 0)), expected, 256)) return false;
  }
  return true;
}
static_assert(right_for_rows(32, 47));
static_assert(right_for_rows(48, 63));
static_assert(right_for_rows(64, 79));
static_assert(right_for_rows(80, 95));
static_assert(right_for_rows(96, 111));
static_assert(right_for_rows(112, 128));

// R = 36, in numbers.
constexpr decode_metadata_layout thirty_six = decode_metadata_of(params_of(36, 16));
static_assert(thirty_six.rows == 36);
static_assert(thirty_six.positions == 0);
static_assert(thirty_six.seq_slot == 144);
static_assert(thirty_six.slots == 288);
static_assert(thirty_six.seq_lens == 576);
static_assert(thirty_six.unused == 720);
static_assert(thirty_six.block_table == 864);
static_assert(thirty_six.bytes == 37872); // 864 + 4 * 36 * 257

// Small batches have 32 rows.
static_assert(decode_metadata_of(params_of(0, 16)).rows == 32);
static_assert(decode_metadata_of(params_of(31, 16)).rows == 32);
static_assert(is_the_layout_for(decode_metadata_of(params_of(1, 16)), 32, 257));

// Padded to rungs: 33 to 36 sequences run with 48 rows, which 36 rows do not hold.
constexpr std::size_t padded_rows(std::int64_t batch) {
  return decode_metadata_of(params_of(batch, 16, true)).rows;
}
constexpr bool padded_rows_are(std::int64_t first, std::int64_t last, std::size_t rows) {
  for (std::int64_t batch = first; batch <= last; ++batch) {
    if (padded_rows(batch) != rows) return false;
  }
  return true;
}
static_assert(padded_rows_are(1, 32, 32)); // the rungs below are lifted to 32
static_assert(padded_rows_are(33, 36, 48));
static_assert(padded_rows_are(37, 48, 48));
static_assert(padded_rows_are(49, 64, 64));
static_assert(padded_rows_are(65, 96, 96));
static_assert(padded_rows_are(97, 128, 128));
static_assert(is_the_layout_for(decode_metadata_of(params_of(33, 16, true)), 48, 257));

// The block of a verify step: 160 rows.
using verify = decode_metadata<stowage::llm::verify_rows>;
constexpr auto verify_layout = stowage::layout_of<verify>(params_of(32, 16));
static_assert(verify_layout.offset<&verify::seq_slot>() == 640);
static_assert(verify_layout.offset<&verify::slots>() == 1280);
static_assert(verify_layout.offset<&verify::seq_lens>() == 2560);
static_assert(verify_layout.offset<&verify::block_table>() == 3840);
static_assert(verify_layout.bytes() == 24 * 160 + 160 * 257 * 4);

// The gap between the lengths and the block table has a name and all of its bytes.
static_assert(verify_layout.offset<&verify::unused>() == 20 * 160);
static_assert(verify_layout.bytes<&verify::unused>() == 4 * 160);

} // namespace
