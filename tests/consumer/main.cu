// The same for nvcc: main.cpp as CUDA, and the CUDA part in a kernel's parameters. It needs no GPU.

#if defined(SINGLE_HEADER)
#include "stowage-cuda.hpp"
#else
#include <stowage/cuda/backend.hpp>
#include <stowage/cuda/views.hpp>
#endif

#include "main.cpp"

__global__ void sum_rows(buffers all, float* sums) {
  const std::size_t row = threadIdx.x;
  if (row >= all.states.extent(0)) return;
  const auto states = stowage::cuda::view(all.states);
  float sum = 0;
  for (std::size_t column = 0; column < states.extent(1); ++column) sum += states(row, column);
  sums[row] = sum;
}

// Never called: that it links is the test.
void run(stowage::arena<buffers, params, stowage::cuda::backend>& arena, cudaStream_t stream, float* sums) {
  sum_rows<<<1, 64, 0, stream>>>(arena.device_view(), sums);
  arena.zero_rows(stream, stowage::tokens{1});
}
