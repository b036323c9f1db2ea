// What `stowage run` finds out about the operations that are no passes, with numbers worked out by hand, and
// that it notices those that go wrong.

#include "../support/messages.hpp"

#include <planner/operations.hpp>
#include <planner/options.hpp>
#include <planner/run_command.hpp>
#include <planner/table_output.hpp>

#include <stowage/backend/any.hpp>
#include <stowage/backend/failing.hpp>
#include <stowage/backend/host.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using planner::operations_report;
using planner::run_report;
using stowage::llm::model_config;
using test::contains;

planner::options small_options(std::int64_t batch = 100, bool rowwise = false) {
  planner::options wanted;
  wanted.config = "small.json";
  wanted.max_batch_tokens = batch;
  wanted.max_seq_len = 64;
  wanted.switches.fp8_rowwise = rowwise;
  return wanted;
}

model_config small_model() {
  return {.vocab_size = 50,
          .hidden_size = 16,
          .intermediate_size = 24,
          .num_attention_heads = 4,
          .num_key_value_heads = 2,
          .head_dim = 4};
}

model_config with_experts() {
  model_config model = small_model();
  model.num_experts = 6;
  model.num_experts_per_tok = 2;
  model.moe_intermediate_size = 24;
  model.shared_expert_intermediate_size = 40;
  return model;
}

model_config with_linear_layers() {
  model_config model = small_model();
  model.linear_num_key_heads = 2;
  model.linear_key_head_dim = 4;
  model.linear_num_value_heads = 3;
  model.linear_value_head_dim = 8;
  model.num_ssm_layers = 3;
  return model;
}

template <class Backend>
run_report run_on(Backend& backend, const planner::options& wanted = small_options(),
                  const model_config& model = small_model()) {
  const stowage::llm::forward_plan plan{planner::forward_params_of(wanted, model)};
  return planner::verify_passes(wanted, plan, stowage::any_backend(backend));
}

operations_report operations(const planner::options& wanted = small_options(),
                             const model_config& model = small_model()) {
  stowage::host_backend host;
  const run_report report = run_on(host, wanted, model);
  CHECK(report.ok());
  return report.operations;
}

TEST_CASE("numbers in memory and their sums") {
  for (const std::size_t bytes : {0U, 3U, 4U, 1003U, 1004U, 1008U, 64255U, 64256U, 64262U, 200003U}) {
    for (const std::size_t seed : {0U, 1U, 45U, 250U, 251U}) {
      CAPTURE(bytes);
      CAPTURE(seed);
      std::vector<std::byte> memory(bytes, std::byte{9});
      planner::fill_with_numbers(memory, seed);
      planner::lane_sums sums;
      bool as_promised = true;
      for (std::size_t lane = 0; lane < bytes / 4; ++lane) {
        float number = 0;
        std::memcpy(&number, memory.data() + 4 * lane, 4);
        as_promised = as_promised && number == static_cast<float>((lane + seed) % 251) - 100.0F;
        sums.sum += number;
        sums.squares += double{number} * number;
        sums.magnitudes += number < 0 ? -number : number;
      }
      CHECK(as_promised);
      CHECK(planner::sums_of_numbers(bytes / 4, seed) == sums);
      for (std::size_t at = bytes / 4 * 4; at < bytes; ++at) CHECK(memory[at] == std::byte{9});
    }
  }
  CHECK(planner::sums_of_numbers(3, 99) == planner::lane_sums{0, 2, 2}); // -1, 0, 1
  CHECK_FALSE(planner::sums_of_numbers(3, 99) == planner::sums_of_numbers(3, 100));
}

TEST_CASE("pieces of memory") {
  std::vector<std::byte> memory(64);
  const std::span<std::byte> all(memory);
  planner::pieces pieces(all);
  CHECK(pieces.add({}));
  CHECK(pieces.add(all.subspan(0, 8)));
  CHECK_FALSE(pieces.add(all.subspan(7, 8)));
  CHECK(pieces.add(all.subspan(8, 8), 8));
  CHECK_FALSE(pieces.add(all.subspan(20, 8), 8));
  CHECK(pieces.add(all.subspan(20, 8), 4));
  CHECK_FALSE(pieces.add(all.subspan(0, 8)));
  CHECK(pieces.bytes() == 24);
  CHECK(pieces.add(all.subspan(28)));
  CHECK(pieces.bytes() == 60);

  planner::pieces of_part(all.subspan(8, 8));
  CHECK_FALSE(of_part.add(all.subspan(0, 8)));
  CHECK_FALSE(of_part.add(all.subspan(16, 8)));
  CHECK_FALSE(of_part.add(all.subspan(9, 8)));
  CHECK(of_part.add(all.subspan(8, 8)));
}

TEST_CASE("checksums") {
  const planner::checksum_report report = operations().checksum;
  REQUIRE(report.buffers.size() == 16);
  CHECK(report.buffers.front().found.name == "hidden_states");
  CHECK(report.buffers.front().found.bytes == 3200); // 100 * 16 * 2
  CHECK(report.buffers.back().found.name == "splitk_workspace");
  for (const planner::buffer_checksum& buffer : report.buffers) CHECK(buffer.problem.empty());

  const planner::checksum_report of_nothing = operations(small_options(0)).checksum;
  REQUIRE(of_nothing.buffers.size() == 10); // floors and placeholders are there for no tokens too
  CHECK(of_nothing.buffers.front().found.name == "gate_logits");
}

/// Host memory whose copies can be tampered with.
struct tampered_copies : stowage::host_backend {
  int tampered = 0; // the number of a copy, from 1 on
  float instead = 0;
  int copies = 0;

  void copy_to_host(stowage::host_stream stream, void* destination, const void* source, std::size_t bytes) {
    host_backend::copy_to_host(stream, destination, source, bytes);
    if (++copies == tampered) std::memcpy(destination, &instead, sizeof(instead));
  }
};

TEST_CASE("checksums that are off are noticed") {
  SUBCASE("another number") {
    tampered_copies backend;
    backend.tampered = 2;
    backend.instead = 1000;
    const run_report report = run_on(backend);
    CHECK_FALSE(report.ok());
    const planner::checksum_report& checksum = report.operations.checksum;
    REQUIRE(checksum.buffers.size() == 16);
    CHECK(checksum.buffers[0].problem.empty());
    // 800 lanes from -99 on: 3 times 251 of them, then -99 to -53.
    CHECK(checksum.buffers[1].problem == "the sums are not 15253, 4703995 and 52697");
    CHECK(checksum.buffers[2].problem.empty());
    CHECK(checksum.problem == "residual: the sums are not 15253, 4703995 and 52697");
    CHECK(report.operations.rowwise.ok());
    const std::string table = planner::run_as_table(report);
    CHECK(contains(table, "failed: the sums are not 15253, 4703995 and 52697\n"));
    CHECK(contains(table, "\nchecksum         failed  checksum of 16 buffers failed\n"));
    CHECK(contains(table, "problem: residual: the sums are not 15253, 4703995 and 52697\n"));
    CHECK(table.ends_with("\nverification failed\n"));
  }
  SUBCASE("a number that is not finite") {
    tampered_copies backend;
    backend.tampered = 1;
    backend.instead = std::numeric_limits<float>::infinity();
    CHECK(run_on(backend).operations.checksum.problem == "hidden_states: 1 lanes are not finite");
  }
  SUBCASE("a copy that fails") {
    stowage::failing_backend<> backend;
    backend.fail(stowage::operation::copy_to_host, 3);
    const run_report report = run_on(backend);
    CHECK_FALSE(report.ok());
    CHECK(report.operations.checksum.buffers.size() == 16);
    CHECK(report.operations.checksum.problem == "norm_output: skipped, the copy to the host failed");
    CHECK(report.operations.checksum.buffers[3].problem.empty());
  }
  SUBCASE("a stream that fails") {
    stowage::failing_backend<> backend;
    backend.fail(stowage::operation::synchronize, 2); // the construction waits too
    const run_report report = run_on(backend);
    CHECK_FALSE(report.ok());
    CHECK(report.operations.checksum.problem == "synchronize was made to fail by failing_backend");
    CHECK(report.operations.decode_metadata.ok());
  }
}

TEST_CASE("the rowwise slab") {
  const planner::rowwise_report report = operations(small_options(5, true), with_linear_layers()).rowwise;
  CHECK(report.absence.empty());
  CHECK(report.takes == 3);
  CHECK(report.bytes_per_take == 2816); // (2*2*4 + 2*24 + 24) * 16 * 2
  CHECK(report.bytes == 8448);
  CHECK(report.refusal ==
        "2816 bytes (aligned to 2) wanted from slab 'ssm_rowwise_w_bf16' at 8448, its size is 8448");

  model_config one_layer = with_linear_layers();
  one_layer.num_ssm_layers = 1;
  CHECK(operations(small_options(5, true), one_layer).rowwise.takes == 1);
}

TEST_CASE("no rowwise slab") {
  const auto check = [](const planner::rowwise_report& report, std::string_view absence) {
    CHECK(report.absence == absence);
    CHECK(report.takes == 0);
    CHECK(report.bytes == 0);
    CHECK(report.refusal == "2 bytes wanted from slab 'ssm_rowwise_w_bf16', which is absent");
  };
  check(operations(small_options(5, false), with_linear_layers()).rowwise, "needs lever_rowwise");
  check(operations(small_options(5, true)).rowwise, "the model has no linear-attention layers");
  model_config no_weights = small_model();
  no_weights.num_ssm_layers = 3;
  check(operations(small_options(5, true), no_weights).rowwise,
        "the linear-attention layers have no weights");
}

TEST_CASE("decode metadata") {
  const planner::decode_metadata_report report = operations().decode_metadata;
  CHECK(report.layout.rows == 32);
  CHECK(report.layout.block_table == 768);
  CHECK(report.layout.bytes == 1408); // 24*32 + 4*32*5
  CHECK(report.offset == 32768);
  CHECK(report.scratch_bytes == 65536);

  planner::options wanted = small_options();
  wanted.max_batch_size = 128;
  wanted.kv_block_size = 0;
  CHECK(operations(wanted).decode_metadata.layout.bytes == 134144); // 24*128 + 4*128*256

  using layout = stowage::llm::decode_metadata_layout;
  const layout right{32, 0, 128, 256, 512, 640, 768, 1408};
  CHECK(planner::check_decode_metadata(right, 32, 5).empty());
  CHECK(contains(planner::check_decode_metadata(right, 33, 5), "has not 33 rows"));
  CHECK(contains(planner::check_decode_metadata(right, 32, 6), "the whole is not"));
  for (std::size_t layout::* const offset : {&layout::positions, &layout::seq_slot, &layout::slots,
                                             &layout::seq_lens, &layout::unused, &layout::block_table}) {
    layout wrong = right;
    wrong.*offset += 4;
    CHECK(contains(planner::check_decode_metadata(wrong, 32, 5), "the parts are not at"));
  }
}

TEST_CASE("the MoE FP8 scratch") {
  const auto check = [](const planner::moe_fp8_report& report, const std::vector<std::size_t>& rows,
                        const std::vector<std::size_t>& bytes) {
    CHECK(report.absence.empty());
    REQUIRE(report.carvings.size() == rows.size());
    for (std::size_t index = 0; index < rows.size(); ++index) {
      CHECK(report.carvings[index].rows == rows[index]);
      CHECK(report.carvings[index].bytes == bytes[index]);
    }
  };
  // 1 row: 48, 8 and 64 bytes, each to 256, and 4. 100 rows: 4800 to 4864, 800 to 1024, 72 to 256, and 4.
  const planner::moe_fp8_report report = operations(small_options(), with_experts()).moe_fp8;
  check(report, {1, 100}, {772, 6148});
  CHECK(report.refusal ==
        "MoE FP8 scratch for 101 rows wanted, the arena is planned for 100 (max_batch_tokens)");
  check(operations(small_options(1), with_experts()).moe_fp8, {1}, {772});
  check(operations(small_options(0), with_experts()).moe_fp8, {0}, {260});

  const planner::moe_fp8_report dense = operations().moe_fp8;
  CHECK(dense.absence == "needs num_experts > 0");
  CHECK(dense.carvings.empty());
  CHECK(dense.refusal == "MoE FP8 scratch for 1 rows wanted, but the model has no experts (num_experts = 0)");
}

TEST_CASE("batched prefills") {
  const planner::batched_prefill_report report = operations().batched_prefill;
  CHECK(report.streams == 8);
  CHECK(report.chunk == 13);
  CHECK(report.bytes == 34280);       // 8*4096 + 4*104 + 8*104 + 2*64 + 40 + 32 + 64
  CHECK(report.largest_chunk == 289); // 128 c + 512 + 96 c + 264 <= 65536
  CHECK(report.refusal == "field 'scratch': 65736 bytes wanted by the carving, 65536 are there; plan the "
                          "field for larger params");

  // No room beyond the largest batch: 8 * 500 tokens, and the experts of each.
  const planner::batched_prefill_report large =
      operations(small_options(4000), with_experts()).batched_prefill;
  CHECK(large.chunk == 500);
  CHECK(large.bytes == 176776); // 64000 + 8*8064 + 16000 + 32000 + 128 + 40 + 32 + 64
  CHECK(large.largest_chunk == 500);
  CHECK(operations(small_options(0)).batched_prefill.chunk == 1);
}

TEST_CASE("an arena that is not released does not refuse") {
  stowage::host_backend host;
  const planner::options wanted = small_options();
  planner::forward_arena arena(stowage::llm::forward_plan{planner::forward_params_of(wanted, small_model())},
                               planner::poisoned_backend(stowage::any_backend(host)));
  CHECK(contains(planner::check_refusals_after_release(arena), "a pass after the release is not refused"));
  CHECK(arena.release().ok());
  CHECK(planner::check_refusals_after_release(arena).empty());
}

} // namespace
