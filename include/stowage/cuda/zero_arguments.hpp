#pragma once

// Plain C++ that the kernel's source, its launcher and nothing else include; no other header of the library,
// so that the kernel can be compiled to PTX alone.

namespace stowage::cuda::detail {

/// Threads of a block, and bytes that a block clears. Measured on an H200 with docs/measurements.md's
/// benchmark: within 0.5 percent of the best of eight choices from 50 MB to 1.7 GB.
inline constexpr unsigned int zero_threads = 512;
inline constexpr unsigned int zero_tile = 16384;

/// Segments of a launch: the list is a kernel parameter, which is copied at every launch, so the usual short
/// lists have a kernel with a short one. The long one stays under 4096 bytes, the limit of every
/// architecture.
inline constexpr unsigned int few_zero_segments = 24;
inline constexpr unsigned int most_zero_segments = 120;

/// The parameter of the zero kernel. Segment number i is cleared by the blocks [first_block[i], first_block[i
/// + 1]).
template <unsigned int Capacity> struct zero_arguments {
  unsigned int count;
  unsigned int first_block[Capacity + 1];
  unsigned long long address[Capacity];
  unsigned long long bytes[Capacity];
};
static_assert(sizeof(zero_arguments<most_zero_segments>) <= 4096);

} // namespace stowage::cuda::detail
