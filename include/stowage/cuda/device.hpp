#pragma once

#include <stowage/cuda/error.hpp>

#include <cuda_runtime_api.h>

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

} // namespace stowage::inline v0_1::cuda
