#pragma once

#include <stowage/cuda/checksum_arguments.hpp>

namespace stowage::inline v0_1::cuda::detail {

__device__ inline void add_lane(checksum_partial& partial, unsigned int bits) {
  if ((bits & 0x7f800000U) == 0x7f800000U) { // by its bits: fast math knows no NaN
    ++partial.skipped_lanes;
    return;
  }
  const double lane = __uint_as_float(bits);
  partial.sum += lane;
  partial.sum_of_squares += lane * lane;
  partial.sum_of_magnitudes += fabs(lane);
}

/// One block sums its share of one buffer, always in the same order: the same bytes give the same partials.
__device__ inline void checksum_share(const checksum_arguments& arguments) {
  const unsigned long long lanes = arguments.lanes[blockIdx.y];
  const auto* words = reinterpret_cast<const unsigned int*>(arguments.address[blockIdx.y]);
  checksum_partial mine{};
  // Four lanes at a time where the buffer allows 16-byte loads.
  const unsigned long long quads = arguments.address[blockIdx.y] % 16 == 0 ? lanes / 4 : 0;
  const auto* vectors = reinterpret_cast<const uint4*>(words);
  const unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * checksum_threads;
  const unsigned long long first =
      static_cast<unsigned long long>(blockIdx.x) * checksum_threads + threadIdx.x;
  for (unsigned long long at = first; at < quads; at += stride) {
    const uint4 four = vectors[at];
    add_lane(mine, four.x);
    add_lane(mine, four.y);
    add_lane(mine, four.z);
    add_lane(mine, four.w);
  }
  for (unsigned long long at = quads * 4 + first; at < lanes; at += stride) add_lane(mine, words[at]);

  // Within each warp by shuffles, then over the warps in order.
  for (unsigned int half = 16; half != 0; half /= 2) {
    mine.sum += __shfl_down_sync(0xffffffffU, mine.sum, half);
    mine.sum_of_squares += __shfl_down_sync(0xffffffffU, mine.sum_of_squares, half);
    mine.sum_of_magnitudes += __shfl_down_sync(0xffffffffU, mine.sum_of_magnitudes, half);
    mine.skipped_lanes += __shfl_down_sync(0xffffffffU, mine.skipped_lanes, half);
  }
  __shared__ checksum_partial of_warp[checksum_threads / 32];
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned int warp = 1; warp < checksum_threads / 32; ++warp) {
    mine.sum += of_warp[warp].sum;
    mine.sum_of_squares += of_warp[warp].sum_of_squares;
    mine.sum_of_magnitudes += of_warp[warp].sum_of_magnitudes;
    mine.skipped_lanes += of_warp[warp].skipped_lanes;
  }
  arguments.partials[blockIdx.y * gridDim.x + blockIdx.x] = mine;
}

} // namespace stowage::inline v0_1::cuda::detail
