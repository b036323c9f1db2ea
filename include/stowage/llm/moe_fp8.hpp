#pragma once

#include <stowage/arena.hpp>
#include <stowage/carve.hpp>
#include <stowage/count.hpp>
#include <stowage/detail/cold.hpp>
#include <stowage/error.hpp>
#include <stowage/llm/forward_buffers.hpp>

#include <cstddef>

namespace stowage::inline v0_1::llm {

namespace detail {

[[noreturn]] STOWAGE_COLD inline void refuse_moe_without_experts(std::size_t rows) {
  stowage::detail::message text;
  text << "stowage: MoE FP8 scratch for " << rows
       << " rows wanted, but the model has no experts (num_experts = 0)";
  throw usage_error(text.c_str());
}
[[noreturn]] STOWAGE_COLD inline void refuse_moe_rows(std::size_t rows, std::size_t capacity) {
  stowage::detail::message text;
  text << "stowage: MoE FP8 scratch for " << rows << " rows wanted, the arena is planned for " << capacity
       << " (max_batch_tokens)";
  throw bounds_error(text.c_str());
}
[[noreturn]] STOWAGE_COLD inline void refuse_moe_after_release(std::size_t rows) {
  stowage::detail::message text;
  text << "stowage: MoE FP8 scratch for " << rows
       << " rows wanted from an arena that is released or moved from";
  throw usage_error(text.c_str());
}

} // namespace detail

/// The MoE FP8 scratch as `rows` tokens use it: no allocation, and the same addresses for the same rows.
/// Throws usage_error after release and for a model without experts, bounds_error for more rows than the
/// arena is planned for or more bytes than the buffer has; each message holds the numbers.
template <class Backend>
[[nodiscard]] regions_handle<moe_fp8_parts>
carve_moe_fp8(const arena<forward_buffers, forward_params, Backend>& arena, tokens rows) {
  if (arena.released()) detail::refuse_moe_after_release(rows.value);
  arena.require_memory("carve_moe_fp8"); // it may sleep
  forward_params params = arena.params();
  if (params.num_experts <= 0) detail::refuse_moe_without_experts(rows.value);
  if (rows > params.max_batch_tokens) detail::refuse_moe_rows(rows.value, params.max_batch_tokens.value);
  params.max_batch_tokens = rows;
  return carve<moe_fp8_parts>(arena->moe_fp8_scratch, params);
}

} // namespace stowage::inline v0_1::llm
