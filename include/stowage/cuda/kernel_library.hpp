#pragma once

#include <stowage/cuda/error.hpp>

#include <cuda_runtime_api.h>

#include <string_view>

namespace stowage::inline v0_1::cuda::detail {

/// A kernel from PTX text, for programs that are built without nvcc. Stays loaded until the process ends;
/// call it once for each kernel and keep what it returns.
inline const void* kernel_from_ptx(const char* ptx, const char* name, std::string_view purpose) {
  cudaLibrary_t library = nullptr;
  check(cudaLibraryLoadData(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0), "cudaLibraryLoadData",
        purpose);
  cudaKernel_t kernel = nullptr;
  check(cudaLibraryGetKernel(&kernel, library, name), "cudaLibraryGetKernel", purpose);
  return static_cast<const void*>(kernel);
}

/// Brings a kernel to the current device, so that nothing is loaded later, in a capture.
inline void load_on_current_device(const void* kernel, std::string_view purpose) {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes", purpose);
}

} // namespace stowage::inline v0_1::cuda::detail
