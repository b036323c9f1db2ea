#pragma once

#include <stowage/cuda/error.hpp>

#include <cuda_runtime_api.h>

#include <concepts>

namespace stowage::inline v0_1::cuda {

/// A CUDA stream, given as a cudaStream_t, a cuda::stream_ref, or anything else with a get() that returns a
/// cudaStream_t. The default is the legacy default stream.
class stream {
public:
  /// What CUDA's functions take.
  using native_type = cudaStream_t;

  stream() = default;
  /// From CUDA's handle.
  stream(cudaStream_t native) : native_(native) {}
  /// From whatever has a get() that gives CUDA's handle.
  template <class Reference>
    requires requires(const Reference& reference) {
      { reference.get() } -> std::convertible_to<cudaStream_t>;
    }
  stream(const Reference& reference) : native_(reference.get()) {}

  /// CUDA's handle.
  [[nodiscard]] cudaStream_t get() const noexcept { return native_; }

private:
  cudaStream_t native_ = nullptr;
};

/// Whether work on the stream is being captured into a graph. Throws error where CUDA cannot tell.
[[nodiscard]] inline bool is_capturing(stream which) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t code = cudaStreamIsCapturing(which.get(), &status);
  if (code == cudaErrorStreamCaptureImplicit) { // the legacy stream, while another one captures
    static_cast<void>(cudaGetLastError());
    return true;
  }
  detail::check(code, "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

} // namespace stowage::inline v0_1::cuda
