#pragma once

// Plain C++ that the kernel's source, its launcher and nothing else include; no other header of the library,
// so that the kernel can be compiled to PTX alone.

namespace stowage::inline v0_1::cuda::detail {

/// Threads of a block, and bytes that a block clears: two vectors a thread. The best of twelve choices on an H200 from
/// 1.5 to 105 MB (docs/measurements.md): 1.81 us in a graph where 512 threads with 16384 bytes took 2.05 and one memset
/// of the same 2.7 MB takes 1.63; above that no choice differs by more than a percent.
inline constexpr unsigned int zero_threads = 256;
inline constexpr unsigned int zero_tile = 8192;

/// Segments of a launch: the list is a kernel parameter, which is copied at every launch, so the usual short
/// lists have a kernel with a short one. The long one stays under 4096 bytes, the limit of every
/// architecture.
inline constexpr unsigned int few_zero_segments = 24;
inline constexpr unsigned int most_zero_segments = 120;

inline constexpr unsigned int no_block = 0xffffffffU;

/// The parameter of the zero kernel. Segment number i is cleared by the blocks [first_block[i], first_block[i
/// + 1]); behind the last one stand `no_block`s where the list is a short one, which is not searched but counted.
template <unsigned int Capacity> struct zero_arguments {
  unsigned int count;
  unsigned int first_block[Capacity + 1];
  unsigned long long address[Capacity];
  unsigned long long bytes[Capacity];
};
static_assert(sizeof(zero_arguments<most_zero_segments>) <= 4096);

} // namespace stowage::inline v0_1::cuda::detail
