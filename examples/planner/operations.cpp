#include "operations.hpp"

#include <stowage/carve.hpp>
#include <stowage/checksum.hpp>
#include <stowage/count.hpp>
#include <stowage/cursor.hpp>
#include <stowage/error.hpp>
#include <stowage/llm/batched_prefill.hpp>
#include <stowage/llm/decode_meta.hpp>
#include <stowage/llm/forward_buffers.hpp>
#include <stowage/llm/moe_fp8.hpp>
#include <stowage/llm/rowwise.hpp>
#include <stowage/report.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace planner {
namespace {

namespace llm = stowage::llm;
using llm::forward_buffers;
using llm::forward_params;
using llm::forward_plan;

// Numbers of the fact sheet.

std::size_t size_from(std::int64_t number) { return static_cast<std::size_t>(number); } // plans refuse others

std::size_t ceil_divide(std::size_t number, std::size_t by) {
  return number / by + (number % by != 0 ? 1 : 0);
}
std::size_t round_up(std::size_t number, std::size_t multiple) {
  return ceil_divide(number, multiple) * multiple;
}

std::size_t rowwise_layer_bytes(const forward_params& params) {
  const std::size_t value_dim =
      size_from(params.linear_num_value_heads) * size_from(params.linear_value_head_dim);
  const std::size_t qkvz =
      2 * size_from(params.linear_num_key_heads) * size_from(params.linear_key_head_dim) + 2 * value_dim;
  return (qkvz + value_dim) * size_from(params.hidden_size) * 2;
}

std::size_t moe_fp8_bytes(const forward_params& params, std::size_t rows) {
  const std::size_t hidden = size_from(params.hidden_size);
  const std::size_t expert_width = size_from(params.moe_intermediate_size);
  const std::size_t shared_k = std::max(hidden, size_from(params.shared_expert_intermediate_size));
  const std::size_t expanded = rows * size_from(params.num_experts_per_tok);
  const std::size_t activations = std::max(rows * shared_k, expanded * expert_width);
  const std::size_t scales =
      4 * std::max(rows * ceil_divide(shared_k, 128), expanded * ceil_divide(expert_width, 128));
  const std::size_t worklist = 8 * (ceil_divide(expanded, 128) + size_from(params.num_experts) + 1) *
                               ceil_divide(std::max(hidden, expert_width), 64);
  return round_up(activations, 256) + round_up(scales, 256) + round_up(worklist, 256) + 4;
}

constexpr std::size_t streams = 8; // of a batched prefill

std::size_t batched_prefill_bytes(const forward_params& params, std::size_t chunk) {
  const std::size_t n = streams;
  const std::size_t total = n * chunk;
  const std::size_t position_streams = params.mrope_interleaved ? 3 : 1;
  return round_up(total * size_from(params.num_experts_per_tok) * 8, 64) +
         n * std::max<std::size_t>(16 * chunk + 64, 4096) + position_streams * round_up(4 * total, 8) +
         round_up(8 * total, 8) + 2 * round_up(8 * n, 8) + round_up(4 * (n + 1), 8) + round_up(4 * n, 8) +
         8 * n;
}

// What is refused.

/// The message of an error, without the library's name.
std::string message_of(const std::exception& error) {
  constexpr std::string_view library = "stowage: ";
  std::string_view message = error.what();
  if (message.starts_with(library)) message.remove_prefix(library.size());
  return std::string{message};
}

/// How a call is refused; empty where it is not. Errors of another kind are let through.
template <class Error, class Call> std::string refusal_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return message_of(error);
  }
  return {};
}

/// Whether a message holds all of these numbers.
bool names(std::string_view message, std::initializer_list<std::size_t> numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [message](std::size_t number) {
    return message.find(std::to_string(number)) != std::string_view::npos;
  });
}

/// Does an operation; an error that it ends with is what is off.
template <class Report, class Operation> Report verify(const Operation& operation) {
  Report report;
  try {
    operation(report);
  } catch (const std::exception& error) {
    report.expect(false, message_of(error));
  }
  return report;
}

// Checksums.

constexpr std::size_t period = 251; // a prime, so that no row length is a multiple of it

/// From -100 to 150, so that no sum of many is 0.
float number_at(std::size_t lane, std::size_t seed) {
  return static_cast<float>((lane + seed) % period) - 100.0F;
}

/// The listed buffers by name and not by tag, in declaration order: the row buffers, and the workspace.
std::vector<std::size_t> listed_fields(const forward_plan& plan) {
  std::vector<std::size_t> fields{forward_plan::index_of<&forward_buffers::hidden_states>(),
                                  forward_plan::index_of<&forward_buffers::residual>(),
                                  forward_plan::index_of<&forward_buffers::norm_output>(),
                                  forward_plan::index_of<&forward_buffers::qkv_output>(),
                                  forward_plan::index_of<&forward_buffers::attn_output>(),
                                  forward_plan::index_of<&forward_buffers::gate_logits>(),
                                  forward_plan::index_of<&forward_buffers::moe_output>(),
                                  forward_plan::index_of<&forward_buffers::ssm_qkvz>(),
                                  forward_plan::index_of<&forward_buffers::ssm_ba>(),
                                  forward_plan::index_of<&forward_buffers::ssm_deinterleaved>(),
                                  forward_plan::index_of<&forward_buffers::ssm_gates>(),
                                  forward_plan::index_of<&forward_buffers::ssm_conv_out_f32>(),
                                  forward_plan::index_of<&forward_buffers::expert_gate_out>(),
                                  forward_plan::index_of<&forward_buffers::expert_up_out>(),
                                  forward_plan::index_of<&forward_buffers::expert_down_out>(),
                                  forward_plan::index_of<&forward_buffers::splitk_workspace>()};
  std::erase_if(fields, [&plan](std::size_t field) { return !plan.present(field); });
  return fields;
}

std::string check_sums(const stowage::field_checksum& found, std::size_t seed) {
  if (!found.copied) return "skipped, the copy to the host failed";
  if (found.skipped_lanes != 0) return std::to_string(found.skipped_lanes) + " lanes are not finite";
  const lane_sums wanted = sums_of_numbers(found.bytes / 4, seed);
  if (lane_sums{found.sum, found.sum_of_squares, found.sum_of_magnitudes} == wanted) return {};
  const auto text = [](double number) { return std::to_string(static_cast<std::int64_t>(number)); };
  return "the sums are not " + text(wanted.sum) + ", " + text(wanted.squares) + " and " +
         text(wanted.magnitudes);
}

void verify_checksum(forward_arena& arena, checksum_report& report) {
  const forward_plan& plan = arena.plan();
  const std::vector<std::size_t> fields = listed_fields(plan);
  for (const std::size_t field : fields) {
    fill_with_numbers({arena.address(field), plan.bytes(field)}, field);
  }
  std::size_t index = 0;
  stowage::checksum<llm::checksummed>(arena, {}, [&](const stowage::field_checksum& found) {
    buffer_checksum& buffer = report.buffers.emplace_back(found);
    if (index == fields.size() || found.name != plan.name(fields[index])) {
      buffer.problem = "is not next on the list";
    } else if (found.bytes != plan.bytes(fields[index])) {
      buffer.problem = "is not whole";
    } else {
      buffer.problem = check_sums(found, fields[index++]);
    }
    report.expect(buffer.problem.empty(), std::string{found.name} + ": " + buffer.problem);
  });
  report.expect(index == fields.size(), "not every listed buffer has a checksum");
}

// The slab of row-wise weights.

std::string rowwise_absence(const forward_plan& plan) {
  if (!plan.params().switches.fp8_rowwise) {
    return "needs " +
           stowage::report_field(plan, forward_plan::index_of<&forward_buffers::ssm_rowwise_w_bf16>())
               .condition;
  }
  if (plan.params().num_ssm_layers <= 0) return "the model has no linear-attention layers";
  if (rowwise_layer_bytes(plan.params()) == 0) return "the linear-attention layers have no weights";
  return {};
}

void verify_absent_slab(stowage::cursor& slab, rowwise_report& report) {
  constexpr std::size_t wanted = 2;
  report.refusal = refusal_of<stowage::usage_error>([&slab] { static_cast<void>(slab.take(wanted)); });
  report.expect(slab.size() == 0, "the slab is to be absent, and takes memory");
  report.expect(names(report.refusal, {wanted}), "a take from the absent slab is not refused");
  report.expect(slab.used() == 0 && slab.high_water() == 0, "the refused take moves the cursor");
}

void verify_rowwise(const forward_arena& arena, rowwise_report& report) {
  const forward_params& params = arena.params();
  stowage::cursor slab(arena->ssm_rowwise_w_bf16);
  report.absence = rowwise_absence(arena.plan());
  if (!report.absence.empty()) return verify_absent_slab(slab, report);

  const std::size_t layers = size_from(params.num_ssm_layers);
  report.bytes_per_take = rowwise_layer_bytes(params);
  report.bytes = arena->ssm_rowwise_w_bf16.bytes();
  report.expect(report.bytes == layers * report.bytes_per_take, "the slab is not as large as its layers");

  const auto refuse = [&](const auto& take, std::size_t wanted) {
    const std::size_t used = slab.used();
    const std::size_t high_water = slab.high_water();
    std::string refusal = refusal_of<stowage::bounds_error>(take);
    report.expect(!refusal.empty(), "a take of more than is left is not refused");
    report.expect(names(refusal, {wanted, used, slab.size()}),
                  "a refusal does not say what was wanted, where, and the slab's size: " + refusal);
    report.expect(slab.used() == used && slab.high_water() == high_water, "a refused take moves the cursor");
    return refusal;
  };

  pieces taken(arena->ssm_rowwise_w_bf16.memory());
  for (; report.takes < layers; ++report.takes) {
    const llm::rowwise_layer layer = llm::take_rowwise_layer(slab, params);
    const bool apart = taken.add(std::as_bytes(layer.input_projection), 2) &&
                       taken.add(std::as_bytes(layer.output_projection), 2);
    report.expect(apart, "the layers overlap or leave the slab");
    if (report.takes != 0) continue;
    for (const std::size_t huge : {std::numeric_limits<std::size_t>::max(), // those that would wrap around
                                   std::numeric_limits<std::size_t>::max() - slab.used() + 1}) {
      refuse([&] { static_cast<void>(slab.take(huge)); }, huge);
    }
  }
  report.expect(taken.bytes() == report.bytes, "the layers have not all bytes of the slab");
  report.expect(slab.size() == report.bytes && slab.remaining() == 0 && slab.used() == report.bytes &&
                    slab.high_water() == report.bytes,
                "the cursor does not say that the slab is used up");
  report.refusal =
      refuse([&] { static_cast<void>(llm::take_rowwise_layer(slab, params)); }, report.bytes_per_take);
}

// Decode metadata.

void verify_decode_metadata(const forward_arena& arena, decode_metadata_report& report) {
  const forward_params& params = arena.params();
  const std::size_t block = size_from(params.kv_block_size);
  const std::size_t rows = std::max<std::size_t>(32, size_from(params.max_batch_size));
  const std::size_t blocks = block > 0 ? size_from(params.max_seq_len) / block + 1 : 256;
  report.layout = llm::decode_metadata_of(params);
  report.offset = 32768;
  report.scratch_bytes = arena->scratch.bytes();
  const llm::decode_metadata_layout& layout = report.layout;
  const std::string problem = check_decode_metadata(layout, rows, blocks);
  report.expect(problem.empty(), problem);
  report.expect(report.offset + layout.bytes <= report.scratch_bytes &&
                    stowage::carving_fits<llm::decode_metadata<llm::symbols::R>>(arena->scratch, params),
                "does not fit in scratch");

  const auto& parts =
      arena->scratch.as<llm::decode_parts>().metadata.template as<llm::decode_metadata<llm::symbols::R>>();
  const std::byte* const start = arena->scratch.memory().data() + report.offset;
  const auto lies_at = [start](const auto& part, std::size_t offset) {
    return part.memory().data() == start + offset;
  };
  report.expect(lies_at(parts.positions, layout.positions) && lies_at(parts.seq_slot, layout.seq_slot) &&
                    lies_at(parts.slots, layout.slots) && lies_at(parts.seq_lens, layout.seq_lens) &&
                    lies_at(parts.block_table, layout.block_table) &&
                    parts.block_table.bytes() == 4 * rows * blocks,
                "the arena has bound the parts elsewhere");
}

// The experts' FP8 scratch.

void verify_moe_carving(const forward_arena& arena, std::size_t rows, moe_fp8_report& report) {
  const auto carved = llm::carve_moe_fp8(arena, stowage::tokens{rows});
  report.carvings.push_back({rows, carved.bytes()});
  report.expect(carved.bytes() == moe_fp8_bytes(arena.params(), rows),
                "the parts for " + std::to_string(rows) + " rows have not the bytes of the formula");
  pieces parts(arena->moe_fp8_scratch.memory());
  report.expect(parts.add(carved->activations.memory(), 256) && parts.add(carved->scales.memory(), 256) &&
                    parts.add(carved->worklist.memory(), 256) && parts.add(carved->total_tiles.memory(), 256),
                "the parts for " + std::to_string(rows) +
                    " rows overlap, are not aligned or leave the scratch");
  const auto again = llm::carve_moe_fp8(arena, stowage::tokens{rows});
  report.expect(again->worklist.data() == carved->worklist.data() &&
                    again->total_tiles.data() == carved->total_tiles.data(),
                "the same rows have other addresses the second time");
}

void verify_moe_fp8(const forward_arena& arena, moe_fp8_report& report) {
  const std::size_t capacity = arena.params().max_batch_tokens.value;
  const auto carve_rows = [&arena](std::size_t rows) {
    static_cast<void>(llm::carve_moe_fp8(arena, stowage::tokens{rows}));
  };
  if (arena.params().num_experts == 0) {
    report.absence = "needs num_experts > 0";
    report.expect(!arena->moe_fp8_scratch, "there is scratch for a model without experts");
    report.refusal = refusal_of<stowage::usage_error>([&] { carve_rows(1); });
    report.expect(names(report.refusal, {1}), "rows for a model without experts are not refused");
    return;
  }
  const std::size_t one = std::min<std::size_t>(1, capacity);
  verify_moe_carving(arena, one, report);
  if (capacity != one) verify_moe_carving(arena, capacity, report);
  report.expect(report.carvings.back().bytes == arena->moe_fp8_scratch.bytes(),
                "the parts for all rows are not as large as the scratch");
  report.refusal = refusal_of<stowage::bounds_error>([&] { carve_rows(capacity + 1); });
  report.expect(names(report.refusal, {capacity, capacity + 1}), "a row too many is not refused");
}

// Batched prefills.

llm::batched_prefill equal_chunks(const forward_params& params, std::size_t chunk) {
  std::array<std::size_t, streams> chunks{};
  chunks.fill(chunk);
  return llm::make_batched_prefill(params, chunks);
}

/// The largest chunk whose batch has at most so many bytes; that of `fitting` has.
std::size_t largest_chunk(const forward_params& params, std::size_t fitting, std::size_t bytes) {
  std::size_t too_large = bytes / (streams * (8 + 8 * size_from(params.num_experts_per_tok))) + 1;
  while (too_large - fitting > 1) {
    const std::size_t middle = fitting + (too_large - fitting) / 2;
    (batched_prefill_bytes(params, middle) <= bytes ? fitting : too_large) = middle;
  }
  return fitting;
}

void verify_batched_prefill(const forward_arena& arena, batched_prefill_report& report) {
  const forward_params& params = arena.params();
  const auto& scratch = arena->scratch;
  report.streams = streams;
  report.chunk = std::max<std::size_t>(ceil_divide(params.max_batch_tokens.value, streams), 1);
  report.bytes = batched_prefill_bytes(params, report.chunk);
  report.expect(report.bytes <= scratch.bytes(), "the largest batch has no room in scratch");
  if (!report.ok()) return;

  report.largest_chunk = largest_chunk(params, report.chunk, scratch.bytes());
  for (const std::size_t chunk : {report.chunk, report.largest_chunk}) {
    const llm::batched_prefill request = equal_chunks(params, chunk);
    report.expect(llm::fits(scratch, request), "a batch that has room does not fit");
    const auto carved = llm::carve_batched_prefill(scratch, request);
    report.expect(carved.bytes() == batched_prefill_bytes(params, chunk),
                  "the parts of a batch have not the bytes of the formula");
    pieces parts(scratch.memory());
    report.expect(parts.add(carved->routing.memory(), 8) && parts.add(carved->stream_metadata.memory(), 8) &&
                      parts.add(carved->positions.memory(), 8) && parts.add(carved->slots.memory(), 8) &&
                      parts.add(carved->state_addresses.memory(), 8) &&
                      parts.add(carved->conv_state_addresses.memory(), 8) &&
                      parts.add(carved->stream_starts.memory(), 8) &&
                      parts.add(carved->seq_lens.memory(), 8) &&
                      parts.add(carved->block_table_addresses.memory(), 8),
                  "the parts of a batch overlap, are not aligned or leave scratch");
  }

  const llm::batched_prefill request = equal_chunks(params, report.largest_chunk + 1);
  report.expect(!llm::fits(scratch, request), "a batch that has no room fits");
  report.refusal = refusal_of<stowage::bounds_error>(
      [&] { static_cast<void>(llm::carve_batched_prefill(scratch, request)); });
  report.expect(
      names(report.refusal, {batched_prefill_bytes(params, report.largest_chunk + 1), scratch.bytes()}),
      "a batch that has no room is not refused");
}

} // namespace

void fill_with_numbers(std::span<std::byte> memory, std::size_t seed) {
  std::array<float, 64 * period> numbers{}; // whole periods: each copy begins where the one before did
  for (std::size_t lane = 0; lane < numbers.size(); ++lane) numbers[lane] = number_at(lane, seed);
  memory = memory.first(memory.size() / 4 * 4);
  while (!memory.empty()) {
    const std::size_t bytes = std::min(memory.size(), sizeof(numbers));
    std::memcpy(memory.data(), numbers.data(), bytes);
    memory = memory.subspan(bytes);
  }
}

lane_sums sums_of_numbers(std::size_t lanes, std::size_t seed) {
  lane_sums sums;
  for (std::size_t lane = 0; lane < period; ++lane) {
    const std::size_t count = lanes / period + (lane < lanes % period ? 1 : 0);
    const auto times = static_cast<double>(count);
    const double number = number_at(lane, seed);
    sums.sum += times * number;
    sums.squares += times * number * number;
    sums.magnitudes += times * (number < 0 ? -number : number);
  }
  return sums;
}

std::string check_decode_metadata(const llm::decode_metadata_layout& layout, std::size_t rows,
                                  std::size_t blocks) {
  if (layout.rows != rows) return "has not " + std::to_string(rows) + " rows";
  if (layout.positions != 0 || layout.seq_slot != 4 * rows || layout.slots != 8 * rows ||
      layout.seq_lens != 16 * rows || layout.unused != 20 * rows || layout.block_table != 24 * rows) {
    return "the parts are not at 0, 4R, 8R, 16R, 20R and 24R";
  }
  if (layout.bytes != 24 * rows + 4 * rows * blocks) return "the whole is not 24R + 4*R*blocks bytes";
  return {};
}

bool pieces::add(std::span<const std::byte> piece, std::size_t alignment) {
  if (piece.empty()) return true;
  const std::byte* const end = memory_.data() + memory_.size();
  if (std::less<>{}(piece.data(), memory_.data()) || !std::less<>{}(piece.data(), end)) return false;
  const auto begin = static_cast<std::size_t>(piece.data() - memory_.data());
  if (begin < end_ || piece.size() > memory_.size() - begin || begin % alignment != 0) return false;
  end_ = begin + piece.size();
  bytes_ += piece.size();
  return true;
}

operations_report verify_operations(forward_arena& arena) {
  operations_report report;
  report.checksum = verify<checksum_report>([&](checksum_report& each) { verify_checksum(arena, each); });
  report.rowwise = verify<rowwise_report>([&](rowwise_report& each) { verify_rowwise(arena, each); });
  report.decode_metadata = verify<decode_metadata_report>(
      [&](decode_metadata_report& each) { verify_decode_metadata(arena, each); });
  report.moe_fp8 = verify<moe_fp8_report>([&](moe_fp8_report& each) { verify_moe_fp8(arena, each); });
  report.batched_prefill = verify<batched_prefill_report>(
      [&](batched_prefill_report& each) { verify_batched_prefill(arena, each); });
  return report;
}

std::string check_refusals_after_release(forward_arena& arena) {
  const auto refused = [](const auto& call) { return !refusal_of<stowage::usage_error>(call).empty(); };
  if (!refused([&] { arena.zero_all(); })) return "a pass after the release is not refused";
  if (!refused([&] { stowage::checksum<llm::checksummed>(arena, {}, [](const auto&) {}); })) {
    return "a checksum after the release is not refused";
  }
  if (!refused([&] { static_cast<void>(llm::carve_moe_fp8(arena, stowage::tokens{1})); })) {
    return "a carving after the release is not refused";
  }
  return {};
}

} // namespace planner
