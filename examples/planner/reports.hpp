#pragma once

#include "options.hpp"

#include <stowage/checksum.hpp>
#include <stowage/llm/decode_meta.hpp>
#include <stowage/llm/forward_params.hpp>
#include <stowage/report/plan_report.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What the commands find out, for the outputs to show.

namespace planner {

/// The plan of a forward arena, and what it was made for.
struct plan_report {
  options wanted;
  stowage::llm::forward_params params;
  stowage::plan_report plan;
  /// Keys that matter and that the config lacks, with what that means.
  std::vector<std::string> missing;
};

enum class pass_kind : unsigned char {
  construction,
  zero_all,
  zero_rows,
  zero_row_range,
  prefill_essentials
};

/// One pass over an arena, and what the memory says of it.
struct pass_report {
  pass_kind kind = pass_kind::zero_all;
  /// The tokens [first, last) of a row pass.
  std::size_t first = 0;
  std::size_t last = 0;
  /// Bytes of buffers that the pass is to clear, and those of them that were read back as zero.
  std::size_t promised_bytes = 0;
  std::size_t cleared_bytes = 0;
  /// Of the pass alone; not taken for the construction.
  std::optional<double> seconds{};
  /// The first thing that is off; empty where nothing is.
  std::string problem{};

  [[nodiscard]] bool ok() const { return problem.empty(); }
  /// Of promised bytes, 10^9 a second; nothing where there is nothing to divide.
  [[nodiscard]] std::optional<double> gigabytes_per_second() const;
};

/// One operation on an arena that is no pass, and whether it does what it is to do.
struct operation_report {
  /// The first thing that is off; empty where nothing is.
  std::string problem{};

  [[nodiscard]] bool ok() const { return problem.empty(); }
  /// Keeps what is off, unless something else was before.
  void expect(bool holds, std::string_view otherwise);
};

struct buffer_checksum {
  stowage::field_checksum found;
  /// What is off with these sums; empty where nothing is.
  std::string problem{};
};

/// The checksums of the listed buffers.
struct checksum_report : operation_report {
  std::vector<buffer_checksum> buffers;
};

/// The slab of row-wise weights, taken layer by layer.
struct rowwise_report : operation_report {
  /// Why there is no slab; empty where there is one.
  std::string absence;
  std::size_t takes = 0;
  std::size_t bytes_per_take = 0;
  std::size_t bytes = 0;
  /// How one more take is refused.
  std::string refusal;
};

struct decode_metadata_report : operation_report {
  stowage::llm::decode_metadata_layout layout;
  /// Where it begins in the scratch buffer.
  std::size_t offset = 0;
  std::size_t scratch_bytes = 0;
};

struct moe_carving {
  std::size_t rows = 0;
  std::size_t bytes = 0;
};

/// The scratch of the experts' FP8 path, carved for batches of several sizes.
struct moe_fp8_report : operation_report {
  /// Why there is no scratch; empty where there is some.
  std::string absence;
  std::vector<moe_carving> carvings;
  /// How a row too many is refused.
  std::string refusal;
};

/// The scratch buffer, shared by prefills of equal chunks.
struct batched_prefill_report : operation_report {
  std::size_t streams = 0;
  /// Tokens of each stream in the batch that the buffer is planned for, and bytes of that batch.
  std::size_t chunk = 0;
  std::size_t bytes = 0;
  /// Tokens of each stream in the largest batch for which the buffer, planned for other uses too, has room.
  std::size_t largest_chunk = 0;
  /// How a batch of one token more for each stream is refused.
  std::string refusal;
};

struct operations_report {
  checksum_report checksum;
  rowwise_report rowwise;
  decode_metadata_report decode_metadata;
  moe_fp8_report moe_fp8;
  batched_prefill_report batched_prefill;

  [[nodiscard]] bool ok() const;
};

/// All passes over one arena, and the other operations on it.
struct run_report {
  plan_report plan;
  std::vector<pass_report> passes;
  operations_report operations;
  /// What is off with the release; empty where nothing is.
  std::string release_problem;

  [[nodiscard]] bool ok() const;
};

} // namespace planner
