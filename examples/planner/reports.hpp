#pragma once

#include "options.hpp"

#include <stowage/llm/forward_params.hpp>
#include <stowage/report.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// What the commands find out, for the outputs to show.

namespace planner {

/// One buffer of a plan.
struct buffer_report {
  stowage::field_report field;
  /// What a row pass over options::tokens clears of it; 0 where no tokens were asked for.
  std::size_t zero_bytes = 0;

  [[nodiscard]] bool present() const { return field.layout.bytes != 0; }
};

/// The plan of a forward arena.
struct plan_report {
  options wanted;
  stowage::llm::forward_params params;
  /// In declaration order.
  std::vector<buffer_report> buffers;
  std::size_t total_bytes = 0;
  std::size_t slab_bytes = 0;
  std::uint64_t hash = 0;
  /// What zeroing everything clears, and what a row pass over options::tokens does.
  std::size_t zero_all_bytes = 0;
  std::size_t zero_rows_bytes = 0;

  [[nodiscard]] std::size_t present_buffers() const;
  /// "0x" and 16 digits.
  [[nodiscard]] std::string hash_text() const;
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

/// All passes over one arena.
struct run_report {
  plan_report plan;
  std::vector<pass_report> passes;
  /// What is off with the release; empty where nothing is.
  std::string release_problem;

  [[nodiscard]] bool ok() const;
};

} // namespace planner
