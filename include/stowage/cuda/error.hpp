#pragma once

#include <stowage/detail/cold.hpp>
#include <stowage/error.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string_view>

namespace stowage::inline v0_1::cuda {

/// A CUDA runtime call failed. The message has the call, CUDA's name and text of the error, and what it was
/// for.
class error : public backend_error {
public:
  /// From a whole message and CUDA's code.
  error(const char* message, cudaError_t code) : backend_error(message, static_cast<int>(code)) {}
};

namespace detail {

/// Throws for a failed call. Where CUDA allows it, the error is taken back first, so that the next call is
/// not blamed.
STOWAGE_COLD inline void throw_failed_call(cudaError_t code, std::string_view call,
                                           std::string_view purpose) {
  static_cast<void>(cudaGetLastError());
  stowage::detail::message text;
  text << "stowage: " << call << " failed with " << cudaGetErrorName(code) << " (" << cudaGetErrorString(code)
       << ')';
  if (!purpose.empty()) text << ", " << purpose;
  throw error(text.c_str(), code);
}

inline void check(cudaError_t code, std::string_view call, std::string_view purpose = {}) {
  if (code != cudaSuccess) [[unlikely]]
    throw_failed_call(code, call, purpose);
}

} // namespace detail
} // namespace stowage::inline v0_1::cuda
