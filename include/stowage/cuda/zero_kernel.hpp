#pragma once

#include <stowage/cuda/device.hpp>
#include <stowage/cuda/error.hpp>
#include <stowage/cuda/kernel_library.hpp>
#include <stowage/cuda/stream.hpp>
#include <stowage/cuda/zero_arguments.hpp>
#include <stowage/segments.hpp>

#include <cuda_runtime_api.h>

#if defined(__CUDACC__)
#include <stowage/cuda/zero_kernel.cuh>
#else
#include <stowage/cuda/zero_kernel_ptx.hpp>
#endif

#include <cstddef>
#include <cstdint>
#include <span>

// The zero kernel as the host sees it. A .cu file brings the kernel compiled in; a plain C++ file loads it
// from PTX, once in the process, through the runtime's library calls. Both launch alike.

namespace stowage::inline v0_1::cuda {

namespace detail {

#if defined(__CUDACC__)
/// A template, so that every .cu file can have it.
template <unsigned int Capacity>
__global__ void __launch_bounds__(zero_threads)
    zero_segments(const __grid_constant__ zero_arguments<Capacity> arguments) {
  zero_tile_of_segment(arguments);
}
template <unsigned int Capacity> const void* zero_kernel_handle() {
  return reinterpret_cast<const void*>(&zero_segments<Capacity>);
}
#else
template <unsigned int Capacity> const void* zero_kernel_handle() {
  static const void* const kernel = kernel_from_ptx(
      zero_kernel_ptx,
      Capacity == few_zero_segments ? "stowage_zero_few_segments" : "stowage_zero_many_segments",
      "loading the zero kernel");
  return kernel;
}
#endif

/// Blocks that clear one segment.
inline unsigned int zero_blocks(const segment& range) {
  const auto address = reinterpret_cast<std::uintptr_t>(range.address);
  const std::uintptr_t aligned = address & ~std::uintptr_t{15};
  return static_cast<unsigned int>((address + range.bytes - aligned + zero_tile - 1) / zero_tile);
}

/// Fills the parameter of a launch with segments, at most Capacity; returns the blocks of all, 1 for none.
template <unsigned int Capacity>
unsigned int fill_zero_arguments(zero_arguments<Capacity>& arguments, std::span<const segment> segments) {
  unsigned int block = 0;
  unsigned int index = 0;
  for (const segment& range : segments) {
    arguments.first_block[index] = block;
    arguments.address[index] = reinterpret_cast<std::uintptr_t>(range.address);
    arguments.bytes[index] = range.bytes;
    block += zero_blocks(range);
    ++index;
  }
  if (index == 0) { // the kernel looks at the first segment without asking whether there is one
    arguments.first_block[0] = 0;
    arguments.address[0] = 0;
    arguments.bytes[0] = 0;
  }
  arguments.count = index;
  if constexpr (Capacity <= few_zero_segments) {
    for (unsigned int behind = index == 0 ? 1 : index; behind <= Capacity; ++behind)
      arguments.first_block[behind] = no_block;
  }
  return block == 0 ? 1 : block; // a grid cannot be empty
}

template <unsigned int Capacity> void launch_zero_kernel_once(stream on, std::span<const segment> segments) {
  zero_arguments<Capacity> arguments; // only what is counted is read
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(fill_zero_arguments(arguments, segments));
  config.blockDim = dim3(zero_threads);
  config.stream = on.get();
  void* parameters[] = {&arguments};
  check(cudaLaunchKernelExC(&config, zero_kernel_handle<Capacity>(), parameters), "cudaLaunchKernelExC",
        "clearing the segments of a pass");
}

} // namespace detail

/// Brings the kernel to the current device, so that nothing is loaded later, in a capture. Throws error where
/// the device cannot run it (compute capability below 7.5).
inline void load_zero_kernel() {
  detail::load_on_current_device(detail::zero_kernel_handle<detail::few_zero_segments>(),
                                 "loading the zero kernel");
  detail::load_on_current_device(detail::zero_kernel_handle<detail::most_zero_segments>(),
                                 "loading the zero kernel");
}

/// Clears all segments, which lie on the current device: one launch for each 120. Can be captured.
inline void launch_zero_kernel(stream on, std::span<const segment> segments) {
  while (segments.size() > detail::most_zero_segments) {
    detail::launch_zero_kernel_once<detail::most_zero_segments>(on,
                                                                segments.first(detail::most_zero_segments));
    segments = segments.subspan(detail::most_zero_segments);
  }
  if (segments.size() > detail::few_zero_segments) {
    detail::launch_zero_kernel_once<detail::most_zero_segments>(on, segments);
  } else if (!segments.empty()) {
    detail::launch_zero_kernel_once<detail::few_zero_segments>(on, segments);
  }
}

} // namespace stowage::inline v0_1::cuda
