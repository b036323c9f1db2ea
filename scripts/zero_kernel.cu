// Compiled to PTX by scripts/embed_ptx.sh; the names are what the launcher looks up.
#include <stowage/cuda/zero_kernel.cuh>

using namespace stowage::cuda::detail;

extern "C" __global__ void __launch_bounds__(zero_threads)
    stowage_zero_few_segments(const __grid_constant__ zero_arguments<few_zero_segments> arguments) {
  zero_tile_of_segment(arguments);
}

extern "C" __global__ void __launch_bounds__(zero_threads)
    stowage_zero_many_segments(const __grid_constant__ zero_arguments<most_zero_segments> arguments) {
  zero_tile_of_segment(arguments);
}
