// Compiled to PTX by scripts/embed_ptx.sh; the name is what the launcher looks up.
#include <stowage/cuda/checksum_kernel.cuh>

extern "C" __global__ void __launch_bounds__(stowage::cuda::detail::checksum_threads)
    stowage_checksum(const __grid_constant__ stowage::cuda::detail::checksum_arguments arguments) {
  stowage::cuda::detail::checksum_share(arguments);
}
