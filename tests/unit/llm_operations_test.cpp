// The forward arena's operations: scratch, batched prefill, MoE FP8 scratch, rowwise slab, checksum list,
// accessors.

#include "paper_backend.hpp"

#include <stowage/backend/failing.hpp>
#include <stowage/backend/recording.hpp>
#include <stowage/checksum.hpp>
#include <stowage/llm/batched_prefill.hpp>
#include <stowage/llm/forward_arena.hpp>
#include <stowage/llm/moe_fp8.hpp>
#include <stowage/llm/rowwise.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using stowage::bounds_error;
using stowage::size_error;
using stowage::tokens;
using stowage::usage_error;
using stowage::llm::forward_buffers;
using stowage::llm::forward_params;
using stowage::llm::forward_plan;
namespace llm = stowage::llm;

forward_params qwen3_next(std::size_t batch) {
  forward_params params{{.vocab_size = 151936,
                         .hidden_size = 2048,
                         .intermediate_size = 5632,
                         .num_hidden_layers = 48,
                         .num_attention_heads = 16,
                         .num_key_value_heads = 2,
                         .head_dim = 256,
                         .linear_num_key_heads = 16,
                         .linear_key_head_dim = 128,
                         .linear_num_value_heads = 32,
                         .linear_value_head_dim = 128,
                         .num_experts = 512,
                         .num_experts_per_tok = 10,
                         .moe_intermediate_size = 512,
                         .shared_expert_intermediate_size = 512,
                         .num_ssm_layers = 36,
                         .attn_gated = true}};
  params.max_batch_tokens = tokens{batch};
  params.max_seq_len = 4096;
  params.kv_block_size = 16;
  params.max_batch_size = 32;
  params.sm_count = 132;
  return params;
}

forward_params nemotron_h(std::size_t batch) {
  forward_params params{{.vocab_size = 131072,
                         .hidden_size = 4096,
                         .intermediate_size = 21504,
                         .num_hidden_layers = 52,
                         .num_attention_heads = 32,
                         .num_key_value_heads = 8,
                         .head_dim = 128,
                         .mamba_num_heads = 128,
                         .mamba_head_dim = 64,
                         .n_groups = 8,
                         .ssm_state_size = 128}};
  params.max_batch_tokens = tokens{batch};
  params.max_seq_len = 4096;
  params.kv_block_size = 16;
  params.max_batch_size = 32;
  params.sm_count = 132;
  return params;
}

/// A hybrid with every kind of buffer, in little memory.
forward_params small() {
  forward_params params{{.vocab_size = 100,
                         .hidden_size = 48,
                         .intermediate_size = 24,
                         .num_attention_heads = 2,
                         .num_key_value_heads = 1,
                         .head_dim = 8,
                         .linear_num_key_heads = 1,
                         .linear_key_head_dim = 24,
                         .linear_num_value_heads = 3,
                         .linear_value_head_dim = 8,
                         .num_experts = 4,
                         .num_experts_per_tok = 2,
                         .moe_intermediate_size = 16,
                         .num_ssm_layers = 5}};
  params.max_batch_tokens = tokens{5};
  params.max_seq_len = 64;
  params.kv_block_size = 16;
  params.max_batch_size = 4;
  params.sm_count = 2;
  return params;
}

std::size_t at(const void* address, const void* start) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) -
                                  static_cast<const std::byte*>(start));
}

// Accessors

/// One buffer as its accessor shows it.
struct seen_buffer {
  std::string_view name;
  const void* data;
  std::size_t bytes;
  std::string_view handle_name;
};
template <class Handle> seen_buffer see(std::string_view name, const Handle& handle) {
  return {name, handle.data(), handle.bytes(), handle.name()};
}

/// The fact sheet's 46 names. One that the library lacks does not compile.
std::array<seen_buffer, 46> see_all(const forward_buffers& fields) {
  return {see("hidden_states", fields.hidden_states),
          see("residual", fields.residual),
          see("norm_output", fields.norm_output),
          see("qkv_output", fields.qkv_output),
          see("attn_output", fields.attn_output),
          see("gate_logits", fields.gate_logits),
          see("gate_logits_f32", fields.gate_logits_f32),
          see("moe_router_in_f32", fields.moe_router_in_f32),
          see("moe_output", fields.moe_output),
          see("logits", fields.logits),
          see("ssm_qkvz", fields.ssm_qkvz),
          see("ssm_ba", fields.ssm_ba),
          see("ssm_deinterleaved", fields.ssm_deinterleaved),
          see("ssm_gates", fields.ssm_gates),
          see("ssm_conv_out_f32", fields.ssm_conv_out_f32),
          see("scratch", fields.scratch),
          see("ssd_scratch", fields.ssd_scratch),
          see("token_ids", fields.token_ids),
          see("expert_gate_out", fields.expert_gate_out),
          see("expert_up_out", fields.expert_up_out),
          see("expert_down_out", fields.expert_down_out),
          see("gdn_fla_scratch", fields.gdn_fla_scratch),
          see("ffn_act_q8", fields.ffn_act_q8),
          see("ffn_act_a", fields.ffn_act_a),
          see("ffn_act_scale", fields.ffn_act_scale),
          see("ffn_act_scale_kmajor", fields.ffn_act_scale_kmajor),
          see("ffn_gate_up_fused", fields.ffn_gate_up_fused),
          see("fp8_act", fields.fp8_act),
          see("fp8_act_scale", fields.fp8_act_scale),
          see("fp8_act_scale_kmajor", fields.fp8_act_scale_kmajor),
          see("moe_fp8_scratch", fields.moe_fp8_scratch),
          see("q2_dequant_scratch", fields.q2_dequant_scratch),
          see("q2_act_q8", fields.q2_act_q8),
          see("splitk_workspace", fields.splitk_workspace),
          see("o_latent", fields.o_latent),
          see("norm_unit_w", fields.norm_unit_w),
          see("hc_streams", fields.hc_streams),
          see("hc_post", fields.hc_post),
          see("hc_comb", fields.hc_comb),
          see("hc_lowrank_scratch", fields.hc_lowrank_scratch),
          see("qsa_select_scratch", fields.qsa_select_scratch),
          see("lora_xa", fields.lora_xa),
          see("lora_delta", fields.lora_delta),
          see("lora_hact", fields.lora_hact),
          see("lora_seq_slot", fields.lora_seq_slot),
          see("ssm_rowwise_w_bf16", fields.ssm_rowwise_w_bf16)};
}

/// Checks all 46 accessors of a plan, and gives the names of those that are null.
std::string check_accessors(const forward_params& params) {
  llm::forward_arena<test::paper_backend> arena = llm::make_forward_arena(params, test::paper_backend{});
  const forward_plan& plan = arena.plan();
  static_assert(forward_plan::field_count == 46);
  std::string null;
  std::size_t total = 0;
  for (const seen_buffer& buffer : see_all(arena.fields())) {
    CAPTURE(buffer.name);
    const std::size_t field = forward_plan::index_of(buffer.name);
    CHECK(buffer.handle_name == buffer.name);
    CHECK(buffer.bytes == plan.bytes(field));
    CHECK((buffer.data != nullptr) == plan.present(field));
    CHECK(buffer.data == arena.address(field));
    if (buffer.data != nullptr) CHECK(at(buffer.data, arena.slab()) == plan.offset(field));
    if (buffer.data == nullptr) null += std::string(buffer.name) + ' ';
    total += buffer.bytes;
  }
  CHECK(total == plan.total_bytes());
  CHECK(total <= plan.slab_bytes());
  CHECK(arena.params().max_batch_tokens == params.max_batch_tokens);
  CHECK(arena.release().ok());
  for (const seen_buffer& buffer : see_all(arena.fields())) {
    CHECK(buffer.data == nullptr);
    CHECK(buffer.bytes == 0);
  }
  return null;
}

TEST_CASE("forward arena: an address and a size for all 46 names") {
  CHECK(check_accessors(qwen3_next(17)) ==
        "ssd_scratch ffn_act_q8 ffn_act_a ffn_act_scale ffn_act_scale_kmajor ffn_gate_up_fused "
        "q2_dequant_scratch q2_act_q8 lora_xa lora_delta lora_hact lora_seq_slot ssm_rowwise_w_bf16 ");
  CHECK(check_accessors(nemotron_h(17)) ==
        "gdn_fla_scratch moe_fp8_scratch q2_dequant_scratch q2_act_q8 lora_xa lora_delta lora_hact "
        "lora_seq_slot ssm_rowwise_w_bf16 ");
  forward_params with_levers = qwen3_next(17);
  with_levers.adapter_max_rank = 16;
  with_levers.switches = {true, true, true, {}};
  CHECK(check_accessors(with_levers) ==
        "ssd_scratch ffn_act_q8 ffn_act_a ffn_act_scale ffn_act_scale_kmajor ffn_gate_up_fused ");
}

// Construction

TEST_CASE("forward arena: a batch above 128 is refused where the arena is made") {
  for (const bool padded : {false, true}) {
    forward_params params = small();
    params.pad_decode_rows = padded;
    params.max_batch_size = 129;
    stowage::recording_backend<> backend;
    CHECK_THROWS_WITH_AS(
        static_cast<void>(llm::make_forward_arena(params, backend)),
        "stowage: field 'logits': input max_batch_size (N) = 129 is above its limit of 128, in bf16 [min(M, "
        "max(R + 1, 160)), vocab]; check the values in the params struct",
        size_error);
    CHECK(backend.calls().empty());
    params.max_batch_size = 128;
    CHECK_NOTHROW(static_cast<void>(llm::make_forward_arena(params, backend)));
  }
}

TEST_CASE("forward arena: construction fails at every call that it makes, and leaves nothing behind") {
  const forward_params params = small();
  std::size_t present = 0;
  const auto plan = stowage::make_plan<forward_buffers>(params);
  for (std::size_t field = 0; field < forward_plan::field_count; ++field)
    present += plan.present(field) ? 1 : 0;
  CHECK(present == 32);
  using stowage::operation;
  for (const auto where : {stowage::placement::slab, stowage::placement::separate}) {
    for (const operation what : {operation::allocate, operation::zero, operation::synchronize}) {
      const std::size_t calls =
          what == operation::allocate && where == stowage::placement::separate ? present : 1;
      for (std::size_t k = 1; k <= calls; ++k) {
        stowage::failing_backend<> backend;
        backend.fail(what, k);
        CHECK_THROWS(static_cast<void>(llm::make_forward_arena(params, backend, {.where = where})));
        CHECK(backend.count(what) == k);
        CHECK(backend.outstanding() == 0);
      }
    }
  }
}

// Scratch

TEST_CASE("scratch: the parts of each use, typed and named") {
  forward_params params = qwen3_next(8192);
  params.mrope_interleaved = true;
  const auto arena = llm::make_forward_arena(params, test::paper_backend{});
  const void* const start = arena->scratch.data();

  const llm::prefill_parts& prefill = arena->scratch.as<llm::prefill_parts>();
  CHECK(at(prefill.routing_indices.data(), start) == 0);
  CHECK(prefill.routing_indices.extents() == std::array<std::size_t, 2>{8192, 10});
  CHECK(at(prefill.routing_weights.data(), start) == 327680);
  CHECK(at(prefill.positions.data(), start) == 655360);
  CHECK(prefill.positions.extents() == std::array<std::size_t, 2>{3, 8192}); // T, then H, then W
  CHECK(at(prefill.slots.data(), start) == 655360 + 3 * 32768);
  CHECK(at(prefill.slots.data(), start) % 8 == 0);
  CHECK(prefill.block_table.size() == 257);
  CHECK(prefill.seq_len.size() == 1);

  const llm::decode_parts& decode = arena->scratch.as<llm::decode_parts>();
  CHECK(decode.fixed.bytes() == 32768);
  const auto& metadata = decode.metadata.as<llm::decode_metadata<llm::symbols::R>>();
  CHECK(at(metadata.slots.data(), start) == 32768 + 8 * 32);

  const llm::batched_prefill_parts& batched = arena->scratch.as<llm::batched_prefill_parts>();
  CHECK(batched.positions.extents() == std::array<std::size_t, 2>{3, 8192});
  CHECK(batched.block_table_addresses.size() == 8);
}

TEST_CASE("decode metadata: rows of the batch, or of the rung that it is padded to") {
  forward_params params = qwen3_next(64);
  params.max_batch_size = 36;
  for (const bool padded : {false, true}) {
    params.pad_decode_rows = padded;
    const std::size_t rows = padded ? 48 : 36;
    const auto arena = llm::make_forward_arena(params, test::paper_backend{});
    const auto layout = llm::decode_metadata_of(arena.params());
    CHECK(layout.rows == rows);
    CHECK(layout.bytes == 24 * rows + 4 * rows * 257);
    const auto& decode = arena->scratch.as<llm::decode_parts>();
    const auto& parts = decode.metadata.as<llm::decode_metadata<llm::symbols::R>>();
    const void* const start = decode.metadata.data();
    CHECK(parts.slots.row_count() == rows);
    CHECK(at(parts.positions.data(), start) == layout.positions);
    CHECK(at(parts.seq_slot.data(), start) == layout.seq_slot);
    CHECK(at(parts.slots.data(), start) == layout.slots);
    CHECK(reinterpret_cast<std::uintptr_t>(parts.slots.data()) % 8 == 0);
    CHECK(at(parts.seq_lens.data(), start) == layout.seq_lens);
    CHECK(at(parts.unused.data(), start) == layout.unused);
    CHECK(at(parts.block_table.data(), start) == layout.block_table);
    CHECK(parts.block_table.fits(48, 257) == padded); // the step that failed
  }
}

// Batched prefill

/// What the fact sheet says of n streams, the longest of `chunk` tokens, `total` in all.
std::size_t batched_bytes(std::size_t n, std::size_t chunk, std::size_t total, std::size_t top_k,
                          std::size_t streams) {
  const auto ceil = [](std::size_t value, std::size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
  };
  const std::size_t metadata = 16 * chunk + 64 > 4096 ? 16 * chunk + 64 : 4096;
  return ceil(total * top_k * 8, 64) + n * metadata + streams * ceil(4 * total, 8) + ceil(8 * total, 8) +
         2 * ceil(8 * n, 8) + ceil(4 * (n + 1), 8) + ceil(4 * n, 8) + 8 * n;
}

TEST_CASE("batched prefill: what fits is what the buffer is sized for") {
  auto arena = llm::make_forward_arena(qwen3_next(8192), test::paper_backend{});
  CHECK(arena->scratch.bytes() == 885512);
  const auto fits = [&](const std::vector<std::size_t>& chunks) {
    return llm::fits(arena->scratch, llm::make_batched_prefill(arena.params(), chunks));
  };
  using list = std::vector<std::size_t>;
  CHECK(fits(list(8, 1024)));                                          // exactly
  CHECK_FALSE(fits({1025, 1024, 1024, 1024, 1024, 1024, 1024, 1024})); // one token more
  CHECK_FALSE(fits({1025, 1023, 1024, 1024, 1024, 1024, 1024, 1024})); // no token more, a longer chunk
  CHECK(fits({1024, 1023, 1024, 1024, 1024, 1024, 1024, 1024}));
  CHECK(fits({2000, 1, 70, 300, 512, 9})); // ragged
  CHECK(fits({8192}));                     // one stream
  CHECK(fits({}));
  CHECK_FALSE(fits(list(9, 1024))); // too many streams of that length
  CHECK(fits(list(9, 100)));
  CHECK(fits(list(209, 1)));
  CHECK_FALSE(fits(list(210, 1)));
  CHECK_FALSE(fits({SIZE_MAX})); // no size at all

  const auto carved = [&](const list& chunks) {
    return llm::carve_batched_prefill(arena->scratch, llm::make_batched_prefill(arena.params(), chunks));
  };
  CHECK(carved(list(8, 1024)).bytes() == 885512);
  CHECK_THROWS_WITH_AS(static_cast<void>(carved({1025, 1024, 1024, 1024, 1024, 1024, 1024, 1024})),
                       "stowage: field 'scratch': 885784 bytes wanted by the carving, 885512 are there; plan "
                       "the field for larger params",
                       bounds_error);
  const auto parts = carved({3, 5});
  CHECK(parts->routing.bytes() == 8 * 10 * 8);
  CHECK(at(parts->stream_metadata.data(), arena->scratch.data()) == 640);
  CHECK(at(parts->positions.data(), arena->scratch.data()) == 640 + 2 * 4096);
  CHECK(parts->slots.size() == 8);
  CHECK(parts->stream_starts.size() == 4); // 3, padded to 8 bytes

  CHECK(arena.release().ok());
  CHECK_FALSE(fits({1}));
  CHECK_THROWS_AS(static_cast<void>(carved({1})), usage_error);
}

TEST_CASE("batched prefill: the answer is the fact sheet's formula, for many lists") {
  for (const bool mrope : {false, true}) {
    forward_params params = qwen3_next(1000);
    params.mrope_interleaved = mrope;
    const auto arena = llm::make_forward_arena(params, test::paper_backend{});
    std::uint32_t random = 1;
    std::size_t fitting = 0;
    for (int turn = 0; turn < 200; ++turn) {
      std::vector<std::size_t> chunks;
      std::size_t longest = 0;
      std::size_t total = 0;
      random = random * 1664525U + 1013904223U;
      chunks.resize((random >> 16U) % 60);
      for (std::size_t& chunk : chunks) {
        random = random * 1664525U + 1013904223U;
        chunk = (random >> 16U) % 80;
        longest = chunk > longest ? chunk : longest;
        total += chunk;
      }
      const auto request = llm::make_batched_prefill(params, chunks);
      CHECK(request.longest_chunk == longest);
      CHECK(request.total_tokens == total);
      const std::size_t bytes = batched_bytes(chunks.size(), longest, total, 10, mrope ? 3 : 1);
      CHECK(stowage::layout_of<llm::batched_request_parts>(request).bytes() == bytes);
      CHECK(llm::fits(arena->scratch, request) == (bytes <= arena->scratch.bytes()));
      fitting += bytes <= arena->scratch.bytes() ? 1 : 0;
    }
    CHECK(fitting > 50); // both answers were among them
    CHECK(fitting < 190);
  }
}

TEST_CASE("batched prefill: chunks that add up to no number") {
  const std::size_t chunks[] = {SIZE_MAX, 1};
  CHECK_THROWS_WITH_AS(static_cast<void>(llm::make_batched_prefill(small(), chunks)),
                       "stowage: the chunk lengths of a batched prefill add up to more than 64 bits hold",
                       size_error);
}

// MoE FP8 scratch

TEST_CASE("MoE FP8 scratch: fixed offsets for a shape, the same in every call") {
  stowage::recording_backend<test::paper_backend> backend;
  const auto arena = llm::make_forward_arena(qwen3_next(64), backend);
  const void* const start = arena->moe_fp8_scratch.data();
  CHECK(arena->moe_fp8_scratch.bytes() == 470532);
  backend.clear();

  const auto parts = llm::carve_moe_fp8(arena, tokens{17});
  // 170 pairs of token and expert.
  CHECK(at(parts->activations.data(), start) == 0);
  CHECK(parts->activations.bytes() == 87040); // 170 * 512
  CHECK(at(parts->scales.data(), start) == 87040);
  CHECK(parts->scales.bytes() == 2720);              // 170 * 4 * 4
  CHECK(at(parts->worklist.data(), start) == 89856); // 89760, rounded up to 256
  CHECK(parts->worklist.bytes() == 131840);          // (2 + 512 + 1) * 32 * 8
  CHECK(at(parts->total_tiles.data(), start) == 221696);
  CHECK(parts->total_tiles.bytes() == 4);

  for (std::size_t rows = 0; rows <= 64; ++rows) {
    const auto each = llm::carve_moe_fp8(arena, tokens{rows});
    CHECK(each.bytes() <= 470532);
    CHECK(each.data() == arena->moe_fp8_scratch.data());
    CHECK(at(each->scales.data(), start) % 256 == 0);
    CHECK(at(each->worklist.data(), start) % 256 == 0);
    CHECK(at(each->total_tiles.data(), start) % 256 == 0);
  }
  const auto again = llm::carve_moe_fp8(arena, tokens{17});
  CHECK(again->activations.data() == parts->activations.data());
  CHECK(again->scales.data() == parts->scales.data());
  CHECK(again->worklist.data() == parts->worklist.data());
  CHECK(again->total_tiles.data() == parts->total_tiles.data());
  CHECK(llm::carve_moe_fp8(arena, tokens{64}).bytes() == 470532);
  CHECK(backend.calls().empty()); // no allocation, nothing else
}

TEST_CASE("MoE FP8 scratch: every error names the numbers") {
  auto arena = llm::make_forward_arena(qwen3_next(64), test::paper_backend{});
  CHECK_THROWS_WITH_AS(static_cast<void>(llm::carve_moe_fp8(arena, tokens{65})),
                       "stowage: MoE FP8 scratch for 65 rows wanted, the arena is planned for 64 "
                       "(max_batch_tokens)",
                       bounds_error);
  CHECK_THROWS_AS(static_cast<void>(llm::carve_moe_fp8(arena, tokens{SIZE_MAX})), bounds_error);

  const auto dense = llm::make_forward_arena(nemotron_h(64), test::paper_backend{});
  CHECK_THROWS_WITH_AS(static_cast<void>(llm::carve_moe_fp8(dense, tokens{5})),
                       "stowage: MoE FP8 scratch for 5 rows wanted, but the model has no experts "
                       "(num_experts = 0)",
                       usage_error);

  // More than the slab holds: it cannot be made smaller than its parts, and a larger shape does not fit in.
  const auto plan = stowage::make_plan<forward_buffers>(qwen3_next(64));
  CHECK_THROWS_WITH_AS(static_cast<void>(plan.with_bytes<&forward_buffers::moe_fp8_scratch>(221700)),
                       "stowage: field 'moe_fp8_scratch': 221700 bytes passed in, its regions need 470532",
                       bounds_error);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(stowage::carve<llm::moe_fp8_parts>(arena->moe_fp8_scratch, qwen3_next(65))),
      "stowage: field 'moe_fp8_scratch': 476164 bytes wanted by the carving, 470532 are there; plan the "
      "field "
      "for larger params",
      bounds_error);
  const stowage::arena without(plan.with_bytes<&forward_buffers::moe_fp8_scratch>(0), test::paper_backend{});
  CHECK_THROWS_WITH_AS(static_cast<void>(llm::carve_moe_fp8(without, tokens{17})),
                       "stowage: field 'moe_fp8_scratch': 221700 bytes wanted, but the field is absent, "
                       "released, asleep or not bound to an arena",
                       usage_error);

  CHECK(arena.release().ok());
  CHECK_THROWS_WITH_AS(static_cast<void>(llm::carve_moe_fp8(arena, tokens{5})),
                       "stowage: MoE FP8 scratch for 5 rows wanted from an arena that is released or moved "
                       "from",
                       usage_error);
  auto source = llm::make_forward_arena(qwen3_next(64), test::paper_backend{});
  const auto target = std::move(source);
  CHECK_THROWS_AS(static_cast<void>(llm::carve_moe_fp8(source, tokens{5})), usage_error);
  CHECK_NOTHROW(static_cast<void>(llm::carve_moe_fp8(target, tokens{5})));
}

// Rowwise slab

TEST_CASE("rowwise slab: holds each layer's pair of Qwen3-Next, and not one more") {
  forward_params params = qwen3_next(1);
  params.switches.fp8_rowwise = true;
  const auto arena = llm::make_forward_arena(params, test::paper_backend{});
  stowage::cursor slab(arena->ssm_rowwise_w_bf16);
  CHECK(slab.size() == std::size_t{36} * 67108864);
  const void* const start = arena->ssm_rowwise_w_bf16.data();
  for (std::size_t layer = 0; layer < 36; ++layer) {
    const llm::rowwise_layer pair = llm::take_rowwise_layer(slab, params);
    CHECK(at(pair.input_projection.data(), start) == layer * 67108864);
    CHECK(pair.input_projection.size() == 12288 * 2048);
    CHECK(at(pair.output_projection.data(), start) == layer * 67108864 + 50331648);
    CHECK(pair.output_projection.size() == 2048 * 4096);
  }
  CHECK(slab.remaining() == 0);
  CHECK_THROWS_WITH_AS(static_cast<void>(llm::take_rowwise_layer(slab, params)),
                       "stowage: 67108864 bytes (aligned to 2) wanted from slab 'ssm_rowwise_w_bf16' at "
                       "2415919104, its size is 2415919104",
                       bounds_error);
  CHECK(slab.used() == 2415919104);
  CHECK(slab.high_water() == 2415919104);
}

TEST_CASE("rowwise slab: a small hybrid in real memory") {
  forward_params params = small();
  params.switches.fp8_rowwise = true;
  const auto arena = llm::make_forward_arena(params, stowage::host_backend{});
  stowage::cursor slab(arena->ssm_rowwise_w_bf16);
  // qkvz = 2 * 1 * 24 + 2 * 3 * 8 = 96, value_dim = 24, hidden = 48, 5 layers.
  CHECK(slab.size() == 5 * (96 + 24) * 48 * 2);
  for (std::size_t layer = 0; layer < 5; ++layer) {
    const llm::rowwise_layer pair = llm::take_rowwise_layer(slab, params);
    CHECK(pair.input_projection.size() == 96 * 48);
    CHECK(pair.output_projection.size() == 48 * 24);
    pair.input_projection.front().bits = 1;
    pair.output_projection.back().bits = 2;
  }
  CHECK(slab.remaining() == 0);
  CHECK_THROWS_AS(static_cast<void>(llm::take_rowwise_layer(slab, params)), bounds_error);
}

TEST_CASE("rowwise slab: absent where the model has no such layers, or the lever is off") {
  // Nemotron-H: Mamba-2 layers only, so that the lever has nothing to hold.
  forward_params params = nemotron_h(1);
  params.switches.fp8_rowwise = true;
  const auto arena = llm::make_forward_arena(params, test::paper_backend{});
  CHECK(arena->ssm_rowwise_w_bf16.data() == nullptr);
  stowage::cursor slab(arena->ssm_rowwise_w_bf16);
  CHECK_THROWS_WITH_AS(static_cast<void>(slab.take(67108864)),
                       "stowage: 67108864 bytes wanted from slab 'ssm_rowwise_w_bf16', which is absent",
                       usage_error);
  CHECK_THROWS_AS(static_cast<void>(llm::take_rowwise_layer(slab, params)), usage_error);

  const auto without = llm::make_forward_arena(qwen3_next(1), test::paper_backend{});
  stowage::cursor absent(without->ssm_rowwise_w_bf16);
  CHECK_THROWS_WITH_AS(static_cast<void>(llm::take_rowwise_layer(absent, qwen3_next(1))),
                       "stowage: 67108864 bytes wanted from slab 'ssm_rowwise_w_bf16', which is absent",
                       usage_error);
}

// Checksum

TEST_CASE("forward arena: the checksum list") {
  auto arena = llm::make_forward_arena(small(), stowage::host_backend{});
  arena.zero_all();
  arena->residual.rows(4, 5).back().bits = 0x3f80; // the high half of the last lane: 1.0F
  std::string names;
  stowage::checksum<llm::checksummed>(arena, {}, [&](const stowage::field_checksum& each) {
    names += std::string(each.name) + ' ';
    CHECK(each.bytes == arena.plan().bytes(each.name));
    CHECK(each.copied);
    CHECK(each.sum == (each.name == "residual" ? 1.0 : 0.0));
  });
  CHECK(names == "hidden_states residual norm_output qkv_output attn_output gate_logits moe_output ssm_qkvz "
                 "ssm_ba ssm_deinterleaved ssm_gates ssm_conv_out_f32 expert_gate_out expert_up_out "
                 "expert_down_out splitk_workspace ");
}

// Plan and levers

TEST_CASE("forward arena: refuses a plan made after a lever was flipped") {
  const auto arena = llm::make_forward_arena(qwen3_next(1), test::paper_backend{});
  CHECK_NOTHROW(arena.require(stowage::make_plan<forward_buffers>(qwen3_next(1))));
  forward_params flipped = qwen3_next(1);
  flipped.switches = llm::read_levers([](const char* name) -> const char* {
    return std::string_view(name) == "METRALE_FP8_ROWWISE" ? "1" : nullptr;
  });
  const std::string message = [&] {
    try {
      arena.require(stowage::make_plan<forward_buffers>(flipped));
    } catch (const usage_error& error) {
      return std::string(error.what());
    }
    return std::string();
  }();
  CHECK(message.find("stowage: the plan is another than the arena was made from: field 'ssm_rowwise_w_bf16' "
                     "has 0 bytes at 0 here, the plan wants 2415919104 bytes at ") == 0);
  // A policy that makes a buffer in the middle larger.
  flipped = qwen3_next(1);
  flipped.switches.splitk = llm::parse_splitk("auto", {});
  // 132 slots of one multiprocessor each become 32 rows * 16 heads * cdiv(2 * 132, 16) = 17, at most 16
  // splits.
  const std::string moved = [&] {
    try {
      arena.require(stowage::make_plan<forward_buffers>(flipped));
    } catch (const usage_error& error) {
      return std::string(error.what());
    }
    return std::string();
  }();
  CHECK(moved.find("field 'splitk_workspace' has 136224 bytes at ") !=
        std::string::npos);                                                   // 132 * (256 + 2) * 4
  CHECK(moved.find("the plan wants 8454144 bytes at ") != std::string::npos); // 32 * 16 * 16 * (256 + 2) * 4
}

TEST_CASE("forward arena: a flag that only moves parts inside a buffer is a change of layout") {
  forward_params params = qwen3_next(200);
  params.max_batch_size = 36;
  const stowage::arena arena(stowage::make_plan<forward_buffers>(params), test::paper_backend{});
  forward_params rungs = params;
  rungs.pad_decode_rows = true; // 48 rows of metadata instead of 36, in a scratch buffer of the same size
  forward_params streams = params;
  streams.mrope_interleaved = true; // three position streams
  CHECK_NOTHROW(arena.require(stowage::make_plan<forward_buffers>(params)));
  for (const forward_params& flipped : {rungs, streams}) {
    std::string message;
    try {
      arena.require(stowage::make_plan<forward_buffers>(flipped));
    } catch (const usage_error& error) {
      message = error.what();
    }
    CHECK(message.find("field 'scratch' has ") != std::string::npos);
  }
}

} // namespace
