#pragma once

#include <stowage/cuda/error.hpp>
#include <stowage/detail/cold.hpp>
#include <stowage/error.hpp>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <string_view>

namespace stowage::inline v0_1::cuda {

/// The calls of CUDA's driver that virtual memory needs. A table, so that nothing links to the driver's
/// library, and so that a test can put calls of its own in.
struct driver_calls {
  /// cuGetErrorName
  decltype(&::cuGetErrorName) error_name = nullptr;
  /// cuMemGetAllocationGranularity
  decltype(&::cuMemGetAllocationGranularity) granularity = nullptr;
  /// cuMemAddressReserve
  decltype(&::cuMemAddressReserve) reserve = nullptr;
  /// cuMemAddressFree
  decltype(&::cuMemAddressFree) unreserve = nullptr;
  /// cuMemCreate
  decltype(&::cuMemCreate) create = nullptr;
  /// cuMemRelease
  decltype(&::cuMemRelease) release = nullptr;
  /// cuMemMap
  decltype(&::cuMemMap) map = nullptr;
  /// cuMemUnmap
  decltype(&::cuMemUnmap) unmap = nullptr;
  /// cuMemSetAccess
  decltype(&::cuMemSetAccess) set_access = nullptr;
  /// cuMemGetInfo
  decltype(&::cuMemGetInfo) memory_info = nullptr;
  /// cuMemHostAlloc
  decltype(&::cuMemHostAlloc) allocate_host = nullptr;
  /// cuMemFreeHost
  decltype(&::cuMemFreeHost) free_host = nullptr;
  /// cuMemcpyDtoDAsync
  decltype(&::cuMemcpyDtoDAsync) copy = nullptr;
  /// cuStreamSynchronize
  decltype(&::cuStreamSynchronize) synchronize = nullptr;
};

namespace detail {

/// Takes the address of a call of the driver through the runtime.
template <class Function> void find_driver_call(Function& function, const char* name) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  check(cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found),
        "cudaGetDriverEntryPointByVersion", name);
#else
  check(cudaGetDriverEntryPoint(name, &address, cudaEnableDefault, &found), "cudaGetDriverEntryPoint", name);
#endif
  if (found != cudaDriverEntryPointSuccess || address == nullptr) {
    stowage::detail::message text;
    text << "stowage: the driver has no " << name << "; virtual memory needs one for CUDA 12 or later";
    throw error(text.c_str(), cudaErrorSymbolNotFound);
  }
  function = reinterpret_cast<Function>(address);
}

} // namespace detail

/// The driver's own calls, found once. Throws error where the driver lacks one.
[[nodiscard]] inline const driver_calls& loaded_driver_calls() {
  static const driver_calls calls = [] {
    driver_calls found;
    detail::find_driver_call(found.error_name, "cuGetErrorName");
    detail::find_driver_call(found.granularity, "cuMemGetAllocationGranularity");
    detail::find_driver_call(found.reserve, "cuMemAddressReserve");
    detail::find_driver_call(found.unreserve, "cuMemAddressFree");
    detail::find_driver_call(found.create, "cuMemCreate");
    detail::find_driver_call(found.release, "cuMemRelease");
    detail::find_driver_call(found.map, "cuMemMap");
    detail::find_driver_call(found.unmap, "cuMemUnmap");
    detail::find_driver_call(found.set_access, "cuMemSetAccess");
    detail::find_driver_call(found.memory_info, "cuMemGetInfo");
    detail::find_driver_call(found.allocate_host, "cuMemHostAlloc");
    detail::find_driver_call(found.free_host, "cuMemFreeHost");
    detail::find_driver_call(found.copy, "cuMemcpyDtoDAsync");
    detail::find_driver_call(found.synchronize, "cuStreamSynchronize");
    return found;
  }();
  return calls;
}

namespace detail {

/// The driver's name of an error; the texts are static.
inline const char* name_of(const driver_calls& calls, CUresult code) noexcept {
  const char* name = nullptr;
  if (calls.error_name(code, &name) != CUDA_SUCCESS || name == nullptr) return "an unknown error";
  return name;
}

/// Throws out_of_memory where that is the error, with the bytes that are free; error else.
[[noreturn]] STOWAGE_COLD inline void throw_driver_failure(const driver_calls& calls, CUresult code,
                                                           std::string_view call, std::size_t bytes) {
  stowage::detail::message text;
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    static_cast<void>(calls.memory_info(&free_bytes, &total_bytes));
    text << call << " failed with " << name_of(calls, code) << ", " << free_bytes << " bytes free of "
         << total_bytes;
    throw out_of_memory(bytes, text.c_str());
  }
  text << "stowage: " << call << " of " << bytes << " bytes failed with " << name_of(calls, code);
  throw error(text.c_str(), static_cast<cudaError_t>(code)); // the numbers are the runtime's
}

/// The same by value. A driver that is shutting down has taken everything back itself.
inline status status_of(const driver_calls& calls, CUresult code, std::string_view call,
                        std::size_t bytes) noexcept {
  if (code == CUDA_SUCCESS || code == CUDA_ERROR_DEINITIALIZED) return {};
  return failure{call, {}, static_cast<int>(code), name_of(calls, code), bytes};
}

} // namespace detail
} // namespace stowage::inline v0_1::cuda
