#pragma once

#include <stowage/arena.hpp>
#include <stowage/llm/forward_buffers.hpp>

#include <type_traits>
#include <utility>

namespace stowage::inline v0_1::llm {

/// The forward arena on a backend; `forward_arena<cuda::backend>` is a member of an engine.
template <class Backend> using forward_arena = arena<forward_buffers, forward_params, Backend>;

/// Plans and allocates the forward arena. Throws size_error for params without a layout (a batch above 128, a
/// negative or absurd config value) and what the backend throws.
template <class Backend>
[[nodiscard]] forward_arena<Backend>
make_forward_arena(const forward_params& params, Backend&& backend,
                   arena_options<typename std::remove_reference_t<Backend>::stream_type> options = {}) {
  return {make_plan<forward_buffers>(params), std::forward<Backend>(backend), options};
}

} // namespace stowage::inline v0_1::llm
