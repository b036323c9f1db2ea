#pragma once

#include <stowage/cuda/zero_arguments.hpp>

// The kernel that clears many segments in one launch. Compiled into a .cu file that includes zero_kernel.hpp,
// and to the PTX that plain C++ programs load.

namespace stowage::inline v0_1::cuda::detail {

/// One block clears one tile of one segment: 16-byte stores where the tile allows them, single bytes at the
/// odd start of a segment and at its odd end. Tiles begin at multiples of 16 except the first.
template <unsigned int Capacity>
__device__ inline void zero_tile_of_segment(const zero_arguments<Capacity>& arguments) {
  unsigned int low = 0; // the last segment that begins at this block or before
  if (Capacity <= few_zero_segments) {
    // Loads that do not wait for one another, where a search is a chain of them.
#pragma unroll
    for (unsigned int index = 1; index < Capacity; ++index)
      low += arguments.first_block[index] <= blockIdx.x ? 1U : 0U;
  } else {
    unsigned int high = arguments.count;
    while (low + 1 < high) {
      const unsigned int middle = (low + high) / 2;
      if (arguments.first_block[middle] <= blockIdx.x) {
        low = middle;
      } else {
        high = middle;
      }
    }
  }
  const unsigned long long segment = arguments.address[low];
  const unsigned long long segment_end = segment + arguments.bytes[low];
  const unsigned long long aligned = segment & ~15ULL; // tiles are counted from here
  const unsigned long long tile =
      aligned + static_cast<unsigned long long>(blockIdx.x - arguments.first_block[low]) * zero_tile;
  const unsigned long long tile_end = tile + zero_tile;
  const unsigned long long begin = tile < segment ? segment : tile;
  const unsigned long long end = tile_end < segment_end ? tile_end : segment_end;
  const unsigned long long vectors_begin = (begin + 15) & ~15ULL;
  const unsigned long long vectors_end = end & ~15ULL;

  const uint4 zeros = make_uint4(0, 0, 0, 0);
  if (vectors_begin == tile && vectors_end == tile_end) { // a whole tile: no test in the loop
    uint4* const out = reinterpret_cast<uint4*>(tile) + threadIdx.x;
#pragma unroll
    for (unsigned int step = 0; step < zero_tile / 16 / zero_threads; ++step)
      out[step * zero_threads] = zeros;
    return;
  }
  if (vectors_begin < vectors_end) {
    for (unsigned long long at = vectors_begin + threadIdx.x * 16ULL; at < vectors_end;
         at += zero_threads * 16ULL) {
      *reinterpret_cast<uint4*>(at) = zeros;
    }
    if (threadIdx.x < vectors_begin - begin) reinterpret_cast<unsigned char*>(begin)[threadIdx.x] = 0;
    if (threadIdx.x < end - vectors_end) reinterpret_cast<unsigned char*>(vectors_end)[threadIdx.x] = 0;
  } else if (threadIdx.x < end - begin) { // fewer than 31 bytes without a whole vector
    reinterpret_cast<unsigned char*>(begin)[threadIdx.x] = 0;
  }
}

} // namespace stowage::inline v0_1::cuda::detail
