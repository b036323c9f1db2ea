// The forward arena's carved buffers: one scratch buffer with three uses, the decode metadata, the experts'
// FP8 scratch, and the rowwise slab.

#include <stowage/cursor.hpp>
#include <stowage/llm/batched_prefill.hpp>
#include <stowage/llm/decode_meta.hpp>
#include <stowage/llm/forward_arena.hpp>
#include <stowage/llm/moe_fp8.hpp>
#include <stowage/llm/rowwise.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace llm = stowage::llm;

namespace {

int failures = 0;

void check(bool right, const char* what) {
  if (right) return;
  std::printf("WRONG: %s\n", what);
  ++failures;
}

/// A small hybrid with experts.
constexpr llm::forward_params small_hybrid() {
  llm::forward_params params{{.vocab_size = 1000,
                              .hidden_size = 64,
                              .intermediate_size = 128,
                              .num_attention_heads = 4,
                              .num_key_value_heads = 2,
                              .head_dim = 16,
                              .linear_num_key_heads = 2,
                              .linear_key_head_dim = 16,
                              .linear_num_value_heads = 4,
                              .linear_value_head_dim = 16,
                              .num_experts = 8,
                              .num_experts_per_tok = 2,
                              .moe_intermediate_size = 32,
                              .num_ssm_layers = 3}};
  params.max_batch_tokens = stowage::tokens{4096};
  params.max_seq_len = 2048;
  params.kv_block_size = 16;
  params.max_batch_size = 36;
  params.sm_count = 8;
  params.switches.fp8_rowwise = true;
  return params;
}

// [rows]
constexpr llm::decode_metadata_layout plain = llm::decode_metadata_of(small_hybrid());
static_assert(plain.rows == 36);         // max(32, N)
static_assert(plain.slots == 288);       // 8 * 36: a multiple of 8 for every number of rows
static_assert(plain.block_table == 864); // 24 * 36

constexpr llm::decode_metadata_layout padded = [] {
  llm::forward_params params = small_hybrid();
  params.pad_decode_rows = true; // the engine pads a batch to a rung before it launches
  return llm::decode_metadata_of(params);
}();
static_assert(padded.rows == 48); // a batch of 33 to 36 runs with 48 rows
// [rows]

void use_scratch(llm::forward_arena<stowage::host_backend>& arena) {
  // [prefill]
  const llm::prefill_parts& prefill = arena->scratch.as<llm::prefill_parts>();
  std::uint64_t* slots = prefill.slots.data();
  std::uint32_t* positions = prefill.positions.data(); // [1, M]; under MRoPE [3, M]: T, then H, then W
  // [prefill]
  check(reinterpret_cast<std::uintptr_t>(slots) % 8 == 0, "slots are aligned");
  check(prefill.positions.extent(0) == 1 && positions != nullptr, "one stream without MRoPE");

  // [decode]
  const llm::decode_parts& decode = arena->scratch.as<llm::decode_parts>();
  const auto& metadata = decode.metadata.as<llm::decode_metadata<llm::symbols::R>>();
  metadata.positions.span()[0] = 17;
  metadata.block_table.span()[0] = 3;
  // [decode]
  check(metadata.slots.row_count() == 36, "a row a sequence");

  // [batched]
  const std::size_t chunks[] = {900, 12, 340}; // the tokens of each stream
  const auto request = llm::make_batched_prefill(arena.params(), chunks);
  if (llm::fits(arena->scratch, request)) {
    const auto parts = llm::carve_batched_prefill(arena->scratch, request);
    parts->stream_starts.span()[1] = 900;
  }
  // [batched]
  check(llm::fits(arena->scratch, request), "three ragged streams fit");
  const std::size_t too_many[] = {4096, 4096, 4096, 4096, 4096, 4096, 4096, 4096};
  check(!llm::fits(arena->scratch, llm::make_batched_prefill(arena.params(), too_many)),
        "eight whole batches do not");
}

void use_moe(const llm::forward_arena<stowage::host_backend>& arena) {
  // [moe]
  const auto scratch = llm::carve_moe_fp8(arena, stowage::tokens{100});
  stowage::fp8_e4m3* activations = scratch->activations.data();
  float* scales = scratch->scales.data();
  // [moe]
  check(reinterpret_cast<std::byte*>(activations) == arena->moe_fp8_scratch.data(), "activations come first");
  check(reinterpret_cast<std::uintptr_t>(scales) % 256 == 0, "each part starts at a multiple of 256");
  check(llm::carve_moe_fp8(arena, stowage::tokens{100})->scales.data() == scales, "and stays there");
  try {
    static_cast<void>(llm::carve_moe_fp8(arena, stowage::tokens{5000}));
    check(false, "more rows than planned are refused");
  } catch (const stowage::bounds_error& error) {
    std::puts(error.what());
  }
}

void use_slab(const llm::forward_arena<stowage::host_backend>& arena) {
  // [cursor]
  stowage::cursor slab(arena->ssm_rowwise_w_bf16); // under the name of the field
  for (int layer = 0; layer < 3; ++layer) {
    const llm::rowwise_layer pair = llm::take_rowwise_layer(slab, arena.params());
    pair.input_projection.front().bits = 0x3f80;
    pair.output_projection.front().bits = 0x3f80;
  }
  // [cursor]
  check(slab.remaining() == 0, "the slab holds exactly the layers' pairs");
  // [exhausted]
  try {
    static_cast<void>(slab.take(4096, 256));
  } catch (const stowage::bounds_error& error) {
    std::puts(error.what()); // what was wanted, where, and the size of the slab
  }
  // [exhausted]
  check(slab.used() == slab.size() && slab.high_water() == slab.size(), "a failed take changes nothing");
}

} // namespace

int main() {
  // [arena]
  auto arena = llm::make_forward_arena(small_hybrid(), stowage::host_backend{});
  // [arena]
  use_scratch(arena);
  use_moe(arena);
  use_slab(arena);
  check(arena.release().ok(), "released");
  std::puts(failures == 0 ? "right" : "wrong");
  return failures == 0 ? 0 : 1;
}
