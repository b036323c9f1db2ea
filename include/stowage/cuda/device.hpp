#pragma once

#include <stowage/cuda/error.hpp>
#include <stowage/cuda/stream.hpp>
#include <stowage/error.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string_view>

namespace stowage::inline v0_1::cuda {

/// The caller's current device.
[[nodiscard]] inline int current_device() {
  int device = 0;
  detail::check(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

/// Makes a device current and restores the caller's when it ends. Remembers a failure instead of throwing, so
/// that it can be used where nothing may be thrown.
class device_guard {
public:
  /// Makes the wanted device current; status() says whether that worked.
  explicit device_guard(int wanted) noexcept : status_(cudaGetDevice(&previous_)) {
    if (status_ == cudaSuccess && previous_ != wanted) {
      status_ = cudaSetDevice(wanted);
      changed_ = status_ == cudaSuccess;
    }
  }
  ~device_guard() {
    if (changed_) static_cast<void>(cudaSetDevice(previous_));
  }
  device_guard(const device_guard&) = delete;
  device_guard& operator=(const device_guard&) = delete;

  /// What making it current gave.
  [[nodiscard]] cudaError_t status() const noexcept { return status_; }
  /// Throws error where making it current failed.
  void check() const { detail::check(status_, "cudaSetDevice"); }

private:
  int previous_ = 0;
  bool changed_ = false;
  cudaError_t status_;
};

namespace detail {

/// For work that is impossible while a stream captures; the call and the bytes it was for.
inline status refusal(std::string_view call, const char* reason, std::size_t bytes) noexcept {
  failure what{call, {}, 0, reason, bytes};
  what.refused = true;
  return what;
}

/// Throws usage_error while the stream captures.
inline void require_no_capture(stream on, std::size_t bytes) {
  if (!is_capturing(on)) return;
  stowage::detail::message text;
  text << "stowage: allocating " << bytes << " bytes is not possible while the stream captures";
  throw usage_error(text.c_str());
}

/// Success where memory can be given back now; else the failure that says why not, refused while a stream
/// captures.
inline status can_give_back(const device_guard& guard, stream on, std::string_view call,
                            std::size_t bytes) noexcept {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  cudaError_t code = guard.status();
  if (code == cudaSuccess) code = cudaStreamIsCapturing(on.get(), &capture);
  if (code != cudaSuccess) static_cast<void>(cudaGetLastError());
  // The legacy stream, while another one captures, gives the error.
  if (code == cudaErrorStreamCaptureImplicit || capture != cudaStreamCaptureStatusNone) {
    return refusal(call, "the stream captures; release after the capture ends", bytes);
  }
  if (code == cudaSuccess || code == cudaErrorCudartUnloading) return {};
  return failure{call, {}, static_cast<int>(code), cudaGetErrorName(code), bytes};
}

} // namespace detail

} // namespace stowage::inline v0_1::cuda
