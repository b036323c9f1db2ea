#pragma once

#include <stowage/backend/virtual.hpp>
#include <stowage/cuda/backend.hpp>
#include <stowage/cuda/device.hpp>
#include <stowage/cuda/driver_pages.hpp>
#include <stowage/cuda/stream.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>

namespace stowage::inline v0_1::cuda {

/// How a virtual_backend is made.
struct virtual_options {
  /// Bytes of one physical handle at most. Larger ones are mapped and given back faster; a resize that gives
  /// part of one back needs as much free memory as it keeps of it, for a moment.
  std::size_t largest_handle = std::size_t{1} << 30;
  /// While it captures, nothing is given back.
  cuda::stream stream{};
};

/// Memory of one CUDA device for elastic arenas: addresses that stay, and physical memory that comes and goes,
/// by the driver's virtual memory management. Clears and copies as cuda::backend does. Copies of it share
/// their slabs.
class virtual_backend : public virtual_backend_over<backend, driver_pages<>> {
  using base = virtual_backend_over<backend, driver_pages<>>;

public:
  /// On the current device. Throws error where the device, or its driver, has no virtual
  /// memory management.
  explicit virtual_backend(virtual_options options = {}) : virtual_backend(current_device(), options) {}
  /// On the given device.
  explicit virtual_backend(int device, virtual_options options = {})
      : base(backend(device, {memory_kind::device, options.stream}),
             driver_pages<>(device, options.largest_handle, loaded_driver_calls())),
        stream_(options.stream) {}

  /// Throws usage_error while the stream of the options captures.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    const device_guard guard(device());
    guard.check();
    detail::require_no_capture(stream_, bytes);
    return base::allocate(bytes, alignment);
  }
  /// Waits for the device, as cudaFree does.
  status deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
    const device_guard guard(device());
    if (const status can = detail::can_give_back(guard, stream_, "cuMemUnmap", bytes); !can) return can;
    // As cudaFree does: cuMemUnmap waits for nothing, and a pass may still be on its way. What the device's work
    // failed with is told by the next call.
    const cudaError_t code = cudaDeviceSynchronize();
    if (code != cudaSuccess) static_cast<void>(cudaGetLastError());
    if (code == cudaErrorStreamCaptureUnsupported) {
      return detail::refusal("cuMemUnmap", "another stream captures; release after the capture ends", bytes);
    }
    return base::deallocate(address, bytes, alignment);
  }

  /// The device that the memory is on.
  [[nodiscard]] int device() const noexcept { return inner().device(); }
  /// memory_kind::device.
  [[nodiscard]] memory_kind memory() const noexcept { return inner().memory(); }

private:
  cuda::stream stream_;
};
static_assert(elastic_backend<virtual_backend>);
static_assert(capturing_backend<virtual_backend>);

} // namespace stowage::inline v0_1::cuda
