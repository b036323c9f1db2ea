#pragma once

#include <stowage/backend/concept.hpp>
#include <stowage/cuda/device.hpp>
#include <stowage/cuda/error.hpp>
#include <stowage/cuda/stream.hpp>
#include <stowage/cuda/zero_kernel.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <string_view>

namespace stowage::inline v0_1::cuda {

/// Where a backend's memory comes from.
enum class memory_kind : unsigned char {
  device, ///< cudaMalloc
  pool,   ///< cudaMallocAsync from the device's default pool, ordered by the backend's stream
  pinned, ///< cudaHostAlloc: page-locked host memory that the device can reach
  managed ///< cudaMallocManaged, for those who ask for it
};

/// How a backend is made.
struct backend_options {
  /// Which of CUDA's allocators memory comes from.
  memory_kind memory = memory_kind::device;
  /// Orders allocation and release of pool memory. Whatever the kind, nothing is allocated or given back
  /// while it captures.
  cuda::stream stream{};
};

/// Memory of one CUDA device. Remembers the device and restores the caller's current one after every call.
/// Cheap to copy. A failed call's error is taken back from the runtime where CUDA allows it. Safe from
/// several threads.
class backend {
public:
  using stream_type = cuda::stream;

  /// On the current device, or the given one. Loads the zero kernel there, so that no pass loads anything in
  /// a capture. Throws error where the device cannot be used.
  explicit backend(backend_options options = {}) : backend(current_device(), options) {}
  /// The same on the given device.
  explicit backend(int device, backend_options options = {}) : device_(device), options_(options) {
    const device_guard guard(device_);
    guard.check();
    load_zero_kernel();
  }

  /// Throws out_of_memory with CUDA's error, the bytes wanted and the bytes free.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    const device_guard guard(device_);
    guard.check();
    detail::require_no_capture(options_.stream, bytes);
    void* address = nullptr;
    const cudaError_t code = allocate_from(address, bytes);
    if (code != cudaSuccess) throw_out_of_memory(code, bytes);
    if (reinterpret_cast<std::size_t>(address) % alignment != 0) {
      static_cast<void>(deallocate(address, bytes, alignment));
      stowage::detail::message text;
      text << "stowage: an alignment of " << alignment
           << " is wanted, CUDA gives 256 or 512; use a smaller align<N>";
      throw usage_error(text.c_str());
    }
    return address;
  }

  /// Tolerates a runtime that is being unloaded at the end of the process.
  status deallocate(void* address, std::size_t bytes, std::size_t) noexcept {
    const device_guard guard(device_);
    if (const status can = detail::can_give_back(guard, options_.stream, name_of_free(), bytes); !can)
      return can;
    const cudaError_t code = free_to(address);
    if (code == cudaSuccess || code == cudaErrorCudartUnloading) return {};
    static_cast<void>(cudaGetLastError());
    return failure{name_of_free(), {}, static_cast<int>(code), cudaGetErrorName(code), bytes};
  }

  /// One memset for one segment, one launch of the zero kernel for several.
  void zero(stream_type on, std::span<const segment> segments) const {
    const device_guard guard(device_);
    guard.check();
    if (segments.size() == 1) {
      detail::check(cudaMemsetAsync(segments[0].address, 0, segments[0].bytes, on.get()), "cudaMemsetAsync",
                    "clearing the segment of a pass");
    } else {
      launch_zero_kernel(on, segments);
    }
  }

  void copy_to_host(stream_type on, void* destination, const void* source, std::size_t bytes) const {
    copy(on, destination, source, bytes, "copying to the host");
  }
  void copy_from_host(stream_type on, void* destination, const void* source, std::size_t bytes) const {
    copy(on, destination, source, bytes, "copying from the host");
  }

  void synchronize(stream_type on) const {
    const device_guard guard(device_);
    guard.check();
    if (cuda::is_capturing(on)) {
      throw usage_error("stowage: waiting for a stream is not possible while it captures");
    }
    detail::check(cudaStreamSynchronize(on.get()), "cudaStreamSynchronize");
  }

  [[nodiscard]] bool is_capturing(stream_type on) const {
    const device_guard guard(device_);
    guard.check();
    return cuda::is_capturing(on);
  }

  /// The number of its device.
  [[nodiscard]] int device() const noexcept { return device_; }
  /// The kind of its memory.
  [[nodiscard]] memory_kind memory() const noexcept { return options_.memory; }

private:
  cudaError_t allocate_from(void*& address, std::size_t bytes) const {
    switch (options_.memory) {
      case memory_kind::device: return cudaMalloc(&address, bytes);
      case memory_kind::pool: return cudaMallocAsync(&address, bytes, options_.stream.get());
      case memory_kind::pinned: return cudaHostAlloc(&address, bytes, cudaHostAllocDefault);
      case memory_kind::managed: return cudaMallocManaged(&address, bytes, cudaMemAttachGlobal);
    }
    return cudaErrorInvalidValue;
  }

  cudaError_t free_to(void* address) const noexcept {
    switch (options_.memory) {
      case memory_kind::pinned: return cudaFreeHost(address);
      case memory_kind::pool: return cudaFreeAsync(address, options_.stream.get());
      case memory_kind::device:
      case memory_kind::managed: break;
    }
    return cudaFree(address);
  }

  [[nodiscard]] std::string_view name_of_allocate() const noexcept {
    switch (options_.memory) {
      case memory_kind::pinned: return "cudaHostAlloc";
      case memory_kind::pool: return "cudaMallocAsync";
      case memory_kind::managed: return "cudaMallocManaged";
      case memory_kind::device: break;
    }
    return "cudaMalloc";
  }
  [[nodiscard]] std::string_view name_of_free() const noexcept {
    switch (options_.memory) {
      case memory_kind::pinned: return "cudaFreeHost";
      case memory_kind::pool: return "cudaFreeAsync";
      case memory_kind::device:
      case memory_kind::managed: break;
    }
    return "cudaFree";
  }

  [[noreturn]] STOWAGE_COLD void throw_out_of_memory(cudaError_t code, std::size_t bytes) const {
    static_cast<void>(cudaGetLastError());
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    static_cast<void>(cudaMemGetInfo(&free_bytes, &total_bytes));
    stowage::detail::message text;
    text << name_of_allocate() << " failed with " << cudaGetErrorName(code) << ", " << free_bytes
         << " bytes free of " << total_bytes;
    throw out_of_memory(bytes, text.c_str());
  }

  void copy(stream_type on, void* destination, const void* source, std::size_t bytes,
            std::string_view purpose) const {
    const device_guard guard(device_);
    guard.check();
    detail::check(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, on.get()), "cudaMemcpyAsync",
                  purpose);
  }

  int device_;
  backend_options options_;
};
static_assert(capturing_backend<backend>);

} // namespace stowage::inline v0_1::cuda
