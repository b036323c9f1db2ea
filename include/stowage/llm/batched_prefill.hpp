#pragma once

#include <stowage/carve.hpp>
#include <stowage/count.hpp>
#include <stowage/detail/checked.hpp>
#include <stowage/llm/forward_params.hpp>
#include <stowage/llm/scratch_layouts.hpp>

#include <cstddef>
#include <span>

namespace stowage::inline v0_1::llm {

/// A batch of prefills that wants to share the scratch buffer: the params of the arena, and what it has of
/// streams and tokens.
struct batched_prefill : forward_params {
  /// Sequences that are prefilled together.
  sequences streams{};
  /// Tokens of the longest chunk, and of all chunks together.
  std::size_t longest_chunk = 0;
  /// Tokens of all chunks together.
  std::size_t total_tokens = 0;
};

inline constexpr dim<&batched_prefill::streams> request_streams{"n"};
inline constexpr dim<&batched_prefill::longest_chunk> request_chunk{"chunk"};
inline constexpr dim<&batched_prefill::total_tokens> request_tokens{"tot"};

/// The scratch buffer as such a batch carves it.
using batched_request_parts = batched_prefill_parts_of<request_streams, request_chunk, request_tokens>;

/// Describes a batch by the tokens of each stream's chunk, which may differ. Throws size_error where their
/// sum does not fit in 64 bits.
[[nodiscard]] constexpr batched_prefill make_batched_prefill(const forward_params& params,
                                                             std::span<const std::size_t> chunk_lengths) {
  batched_prefill request{params};
  request.streams = sequences{chunk_lengths.size()};
  for (const std::size_t tokens_of_chunk : chunk_lengths) {
    if (tokens_of_chunk > request.longest_chunk) request.longest_chunk = tokens_of_chunk;
    if (!stowage::detail::checked_add(request.total_tokens, tokens_of_chunk, request.total_tokens)) {
      throw size_error("stowage: the chunk lengths of a batched prefill add up to more than 64 bits hold");
    }
  }
  return request;
}

/// Whether a batch fits in the scratch buffer (a handle: `arena->scratch`): its parts, evaluated for the
/// batch, are not larger than the buffer.
template <class Inner>
[[nodiscard]] bool fits(const handle_base<Inner>& scratch, const batched_prefill& request) {
  return carving_fits<batched_request_parts>(scratch, request);
}

/// The parts of a batch in the scratch buffer. Throws bounds_error with both sizes where they do not fit.
template <class Inner>
[[nodiscard]] regions_handle<batched_request_parts> carve_batched_prefill(const handle_base<Inner>& scratch,
                                                                          const batched_prefill& request) {
  return carve<batched_request_parts>(scratch, request);
}

} // namespace stowage::inline v0_1::llm
