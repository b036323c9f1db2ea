#pragma once

#include <stowage/cuda/checksum_arguments.hpp>

namespace stowage::cuda::detail {

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

  __shared__ checksum_partial shared[checksum_threads];
  shared[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned int half = checksum_threads / 2; half != 0; half /= 2) {
    if (threadIdx.x < half) {
      checksum_partial& left = shared[threadIdx.x];
      const checksum_partial& right = shared[threadIdx.x + half];
      left.sum += right.sum;
      left.sum_of_squares += right.sum_of_squares;
      left.sum_of_magnitudes += right.sum_of_magnitudes;
      left.skipped_lanes += right.skipped_lanes;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) arguments.partials[blockIdx.y * gridDim.x + blockIdx.x] = shared[0];
}

} // namespace stowage::cuda::detail
