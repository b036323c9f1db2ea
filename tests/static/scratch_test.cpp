// The three uses of the scratch buffer: no part of one use overlaps another, and the sizes are those of the
// fact sheet, whose arithmetic is written out here.

#include <stowage/llm/batched_prefill.hpp>
#include <stowage/llm/forward_buffers.hpp>

#include <cstddef>
#include <cstdint>

namespace {

using stowage::layout_of;
using stowage::llm::batched_prefill_parts;
using stowage::llm::decode_metadata;
using stowage::llm::decode_parts;
using stowage::llm::forward_buffers;
using stowage::llm::forward_params;
using stowage::llm::prefill_parts;

constexpr std::size_t ceil(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr std::size_t larger(std::size_t one, std::size_t other) { return one > other ? one : other; }

/// A place in memory.
struct range {
  std::size_t offset;
  std::size_t bytes;
};

/// Whether ranges in rising order leave each other alone and end where the whole ends. Padding may lie
/// between.
template <std::size_t Count> constexpr bool are_apart(const range (&parts)[Count], std::size_t whole) {
  std::size_t end = 0;
  for (const range& part : parts) {
    if (part.bytes == 0) continue;
    if (part.offset < end || part.offset - end >= 8) return false; // 8: the largest element's alignment
    end = part.offset + part.bytes;
  }
  return end == whole;
}

/// Walks every part of a region list; one that is left out does not compile.
template <class Parts, auto... Members> constexpr bool parts_are_apart(const forward_params& params) {
  static_assert(sizeof...(Members) == stowage::regions<Parts>::part_count);
  const auto layout = layout_of<Parts>(params);
  const range parts[] = {{layout.template offset<Members>(), layout.template bytes<Members>()}...};
  return are_apart(parts, layout.bytes());
}

template <class Metadata> constexpr bool metadata_is_apart(const forward_params& params) {
  return parts_are_apart<Metadata, &Metadata::positions, &Metadata::seq_slot, &Metadata::slots,
                         &Metadata::seq_lens, &Metadata::unused, &Metadata::block_table>(params);
}

constexpr bool uses_are_apart(const forward_params& params) {
  using batched = batched_prefill_parts;
  return parts_are_apart<prefill_parts, &prefill_parts::routing_indices, &prefill_parts::routing_weights,
                         &prefill_parts::positions, &prefill_parts::slots, &prefill_parts::block_table,
                         &prefill_parts::seq_len>(params) &&
         parts_are_apart<decode_parts, &decode_parts::fixed, &decode_parts::metadata>(params) &&
         metadata_is_apart<decode_metadata<stowage::llm::symbols::R>>(params) &&
         metadata_is_apart<decode_metadata<stowage::llm::verify_rows>>(params) &&
         parts_are_apart<batched, &batched::routing, &batched::stream_metadata, &batched::positions,
                         &batched::slots, &batched::state_addresses, &batched::conv_state_addresses,
                         &batched::stream_starts, &batched::seq_lens, &batched::block_table_addresses>(
             params);
}

// The checker itself.
static_assert(are_apart({{0, 4}, {8, 8}, {16, 0}, {16, 1}}, 17));
static_assert(!are_apart({{0, 9}, {8, 8}}, 16));  // overlap
static_assert(!are_apart({{0, 4}, {12, 4}}, 16)); // a gap
static_assert(!are_apart({{0, 4}, {8, 8}}, 24));  // the end

/// What the fact sheet says of the sizes, from these numbers alone.
struct fact_sheet {
  std::size_t tokens, top_k, streams, blocks, rows;

  [[nodiscard]] constexpr std::size_t prefill() const {
    const std::size_t routing = 4 * tokens * top_k + 4 * tokens * top_k;
    const std::size_t slots = ceil(routing + 4 * tokens * streams, 8);
    const std::size_t block_table = ceil(slots + 8 * tokens, 4);
    return ceil(block_table + 4 * blocks, 4) + 4;
  }
  [[nodiscard]] constexpr std::size_t decode() const {
    return 32768 + larger(24 * 160 + 160 * blocks * 4, 24 * rows + 4 * rows * blocks);
  }
  [[nodiscard]] constexpr std::size_t batched() const {
    const std::size_t n = 8;
    const std::size_t chunk = larger((tokens + 7) / 8, 1);
    const std::size_t total = n * chunk;
    return ceil(total * top_k * 8, 64) + n * larger(16 * chunk + 64, 4096) + streams * ceil(4 * total, 8) +
           ceil(8 * total, 8) + 2 * ceil(8 * n, 8) + ceil(4 * (n + 1), 8) + ceil(4 * n, 8) + 8 * n;
  }
  [[nodiscard]] constexpr std::size_t scratch() const {
    return larger(larger(65536, prefill()), larger(decode(), batched()));
  }
};

/// The scratch buffer of the forward arena, without its neighbours.
struct scratch_alone {
  decltype(forward_buffers::scratch) scratch;
};

constexpr bool sizes_are(const forward_params& params, const fact_sheet& facts, std::size_t prefill,
                         std::size_t decode, std::size_t batched, std::size_t scratch) {
  return layout_of<prefill_parts>(params).bytes() == prefill && facts.prefill() == prefill &&
         layout_of<decode_parts>(params).bytes() == decode && facts.decode() == decode &&
         layout_of<batched_prefill_parts>(params).bytes() == batched && facts.batched() == batched &&
         stowage::make_plan<scratch_alone>(params).total_bytes() == scratch && facts.scratch() == scratch;
}

constexpr forward_params params_of(std::size_t batch, std::int64_t experts, std::int64_t top_k, bool mrope,
                                   std::int64_t length, std::int64_t block, std::int64_t sequences) {
  forward_params params{};
  params.max_batch_tokens = stowage::tokens{batch};
  params.num_experts = experts;
  params.num_experts_per_tok = top_k;
  params.mrope_interleaved = mrope;
  params.max_seq_len = length;
  params.kv_block_size = block;
  params.max_batch_size = sequences;
  return params;
}

// Experts; the batched prefill decides.
constexpr forward_params large = params_of(8192, 512, 10, false, 4096, 16, 32);
static_assert(uses_are_apart(large));
static_assert(sizes_are(large, {8192, 10, 1, 257, 32}, 754696, 201088, 885512, 885512));

// No experts, three position streams, no pages; 4 * 3 * 17 bytes of positions are no multiple of 8.
constexpr forward_params dense = params_of(17, 0, 0, true, 4096, 0, 32);
static_assert(uses_are_apart(dense));
static_assert(sizes_are(dense, {17, 0, 3, 256, 32}, 1372, 200448, 33512, 200448));
static_assert(layout_of<prefill_parts>(dense).offset<&prefill_parts::slots>() == 208);

// Experts and three position streams, one token, all 128 sequences.
constexpr forward_params one = params_of(1, 8, 2, true, 4096, 0, 128);
static_assert(uses_are_apart(one));
static_assert(sizes_are(one, {1, 2, 3, 256, 128}, 1068, 200448, 33320, 200448));

// Long sequences in pages of 32; an odd number of tokens.
constexpr forward_params paged = params_of(513, 0, 0, false, 131072, 32, 64);
static_assert(uses_are_apart(paged));
static_assert(sizes_are(paged, {513, 0, 1, 4097, 64}, 22552, 2658688, 39272, 2658688));

// One page: everything is below the floor.
constexpr forward_params small = params_of(1, 0, 0, false, 4096, 4096, 1);
static_assert(uses_are_apart(small));
static_assert(sizes_are(small, {1, 0, 1, 2, 32}, 28, 37888, 33128, 65536));

// Rungs: 100 sequences have 128 rows.
constexpr forward_params padded = [] {
  forward_params params = params_of(100, 4, 3, true, 1000, 16, 100);
  params.pad_decode_rows = true;
  return params;
}();
static_assert(uses_are_apart(padded));
static_assert(sizes_are(padded, {100, 3, 3, 63, 128}, 4656, 76928, 37608, 76928));

// The prefill's parts, one by one: 655360 bytes of routing, positions, slots, block table, length.
constexpr auto prefill = layout_of<prefill_parts>(large);
static_assert(prefill.offset<&prefill_parts::routing_indices>() == 0);
static_assert(prefill.offset<&prefill_parts::routing_weights>() == 327680);
static_assert(prefill.offset<&prefill_parts::positions>() == 655360);
static_assert(prefill.offset<&prefill_parts::slots>() == 688128);
static_assert(prefill.offset<&prefill_parts::block_table>() == 753664);
static_assert(prefill.offset<&prefill_parts::seq_len>() == 754692);

// The decode metadata lies behind the fixed region.
static_assert(layout_of<decode_parts>(large).offset<&decode_parts::metadata>() == 32768);

// The batched prefill's, behind 655360 bytes of routing and 8 * 16448 of stream metadata.
constexpr auto batched = layout_of<batched_prefill_parts>(large);
static_assert(batched.offset<&batched_prefill_parts::stream_metadata>() == 655360);
static_assert(batched.offset<&batched_prefill_parts::positions>() == 786944);
static_assert(batched.offset<&batched_prefill_parts::slots>() == 819712);
static_assert(batched.offset<&batched_prefill_parts::state_addresses>() == 885248);
static_assert(batched.offset<&batched_prefill_parts::conv_state_addresses>() == 885312);
static_assert(batched.offset<&batched_prefill_parts::stream_starts>() == 885376);
static_assert(batched.offset<&batched_prefill_parts::seq_lens>() == 885416);
static_assert(batched.offset<&batched_prefill_parts::block_table_addresses>() == 885448);

// A request of eight equal streams asks for what the buffer is sized for: the same formula.
constexpr std::size_t equal_chunks[] = {1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024};
static_assert(layout_of<stowage::llm::batched_request_parts>(stowage::llm::make_batched_prefill(large,
                                                                                                equal_chunks))
                  .bytes() == 885512);

} // namespace
