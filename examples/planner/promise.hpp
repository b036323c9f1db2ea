#pragma once

#include "memory_check.hpp"

#include <stowage/llm/forward_buffers.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// What a pass promises.

namespace planner {

/// The ranges that a pass is to clear, by the number of the field, or what is wrong with the promise itself.
struct promise {
  std::vector<std::vector<byte_range>> cleared =
      std::vector<std::vector<byte_range>>(stowage::llm::forward_plan::field_count);
  std::string problem;

  void expect(bool holds, std::string_view field, std::string_view what) {
    if (!holds && problem.empty()) problem.append(field).append(": ").append(what);
  }
};

/// These fields, whole.
promise whole_fields(const stowage::llm::forward_plan& plan, const std::vector<std::size_t>& fields);

/// The fields with a row or full policy.
promise zeroed_fields(const stowage::llm::forward_plan& plan);

/// The seven buffers that a prefill needs cleared, here by name and not by tag.
promise prefill_essentials(const stowage::llm::forward_plan& plan);

/// Rows of the first `count` tokens, which have to agree with the byte counts of the plan.
promise first_rows(const stowage::llm::forward_plan& plan, std::size_t count);

/// Rows of the tokens [first, last). With those of [0, first) they are those of [0, last); the two can
/// overlap where padding follows the first tokens.
promise later_rows(const stowage::llm::forward_plan& plan, std::size_t first, std::size_t last);

} // namespace planner
