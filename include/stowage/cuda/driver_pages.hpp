#pragma once

#include <stowage/backend/elastic.hpp>
#include <stowage/cuda/device.hpp>
#include <stowage/cuda/driver.hpp>
#include <stowage/detail/cold.hpp>
#include <stowage/error.hpp>

#include <cuda.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace stowage::inline v0_1::cuda {

/// Addresses and memory of one device, by the driver's virtual memory management: the pages of a
/// virtual_backend_over. Every piece of memory is one physical handle, which is released as soon as it is
/// mapped, so that unmapping gives the memory back. `Guard` makes the device current; a test without a
/// device has one that does nothing.
template <class Guard = device_guard> class driver_pages {
public:
  /// `largest_handle`: bytes of one physical handle at most. The table must outlive the pages.
  driver_pages(int device, std::size_t largest_handle, const driver_calls& calls)
      : calls_(&calls), device_(device) {
    const Guard guard(device_);
    require(guard);
    const CUmemAllocationProp properties = kind_of_memory();
    const CUresult code =
        calls_->granularity(&granularity_, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    if (code != CUDA_SUCCESS) detail::throw_driver_failure(*calls_, code, "cuMemGetAllocationGranularity", 0);
    largest_piece_ = std::max(granularity_, largest_handle / granularity_ * granularity_);
  }

  [[nodiscard]] std::size_t granularity() const { return granularity_; }
  [[nodiscard]] std::size_t largest_piece() const { return largest_piece_; }

  [[nodiscard]] std::byte* reserve(std::size_t bytes, std::size_t alignment) {
    const Guard guard(device_);
    require(guard);
    CUdeviceptr address = 0;
    const CUresult code = calls_->reserve(&address, bytes, alignment > granularity_ ? alignment : 0, 0, 0);
    if (code != CUDA_SUCCESS) detail::throw_driver_failure(*calls_, code, "cuMemAddressReserve", bytes);
    return std::bit_cast<std::byte*>(address);
  }
  status unreserve(std::byte* address, std::size_t bytes) noexcept {
    const Guard guard(device_);
    if (guard.status() != cudaSuccess) return status_of(guard, bytes);
    return detail::status_of(*calls_, calls_->unreserve(number(address), bytes), "cuMemAddressFree", bytes);
  }

  void map(std::byte* address, std::size_t bytes) {
    const Guard guard(device_);
    require(guard);
    const CUmemAllocationProp properties = kind_of_memory();
    CUmemGenericAllocationHandle handle = 0;
    CUresult code = calls_->create(&handle, bytes, &properties, 0);
    if (code != CUDA_SUCCESS) detail::throw_driver_failure(*calls_, code, "cuMemCreate", bytes);
    std::string_view call = "cuMemMap";
    code = calls_->map(number(address), bytes, 0, handle, 0);
    if (code == CUDA_SUCCESS) {
      call = "cuMemSetAccess";
      code = allow_access(address, bytes);
      if (code == CUDA_SUCCESS) {
        call = "cuMemRelease";
        code = calls_->release(handle);
        if (code == CUDA_SUCCESS) return; // the mapping keeps the memory
      }
      static_cast<void>(twice([&] { return calls_->unmap(number(address), bytes); }));
    }
    static_cast<void>(twice([&] { return calls_->release(handle); }));
    detail::throw_driver_failure(*calls_, code, call, bytes);
  }

  status unmap(std::byte* address, std::size_t bytes) noexcept {
    const Guard guard(device_);
    if (guard.status() != cudaSuccess) return status_of(guard, bytes);
    return detail::status_of(*calls_, calls_->unmap(number(address), bytes), "cuMemUnmap", bytes);
  }

  /// A handle cannot be given back in part: what is kept is copied into handles of its own, which then take
  /// its place. Needs memory for the kept parts meanwhile; without it the piece stays whole.
  template <class Stream>
  status keep(Stream stream, std::byte* slab, mapped_range piece, std::span<const mapped_range> kept,
              std::vector<mapped_range>& result) noexcept {
    const Guard guard(device_);
    parts_elsewhere copies;
    if (guard.status() != cudaSuccess || !copy_parts(stream, slab, kept, copies)) {
      result.push_back(piece);
      return drop(copies);
    }
    status first_failure = unmap(slab + piece.offset, piece.bytes);
    if (!first_failure) {
      result.push_back(piece);
      first_failure.merge(drop(copies), {});
      return first_failure;
    }
    for (std::size_t index = 0; index < kept.size(); ++index) {
      std::byte* const address = slab + kept[index].offset;
      const std::size_t bytes = kept[index].bytes;
      std::string_view call = "cuMemMap";
      CUresult code = calls_->map(number(address), bytes, 0, copies.handles[index], 0);
      if (code == CUDA_SUCCESS) {
        call = "cuMemSetAccess";
        code = allow_access(address, bytes);
        if (code == CUDA_SUCCESS) {
          result.push_back(kept[index]);
          continue;
        }
        static_cast<void>(twice([&] { return calls_->unmap(number(address), bytes); }));
      }
      first_failure.merge(detail::status_of(*calls_, code, call, bytes), {}); // these contents are lost
    }
    first_failure.merge(drop(copies), {});
    return first_failure;
  }

  /// Pinned, for every device.
  [[nodiscard]] std::byte* allocate_host(std::size_t bytes) {
    const Guard guard(device_);
    require(guard);
    void* address = nullptr;
    const CUresult code = calls_->allocate_host(&address, bytes, CU_MEMHOSTALLOC_PORTABLE);
    if (code != CUDA_SUCCESS) detail::throw_driver_failure(*calls_, code, "cuMemHostAlloc", bytes);
    return static_cast<std::byte*>(address);
  }
  status deallocate_host(std::byte* address, std::size_t bytes) noexcept {
    const Guard guard(device_);
    if (guard.status() != cudaSuccess) return status_of(guard, bytes);
    return detail::status_of(*calls_, calls_->free_host(address), "cuMemFreeHost", bytes);
  }

  /// The device that the memory is on.
  [[nodiscard]] int device() const noexcept { return device_; }

private:
  /// Copies of the kept parts of a piece, at other addresses.
  struct parts_elsewhere {
    std::byte* address = nullptr;
    std::size_t bytes = 0;
    std::vector<CUmemGenericAllocationHandle> handles;
    std::vector<mapped_range> mapped;
  };

  static CUdeviceptr number(const std::byte* address) { return reinterpret_cast<std::uintptr_t>(address); }

  [[nodiscard]] CUmemAllocationProp kind_of_memory() const {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device_;
    return properties;
  }
  [[nodiscard]] CUresult allow_access(const std::byte* address, std::size_t bytes) const noexcept {
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device_;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return calls_->set_access(number(address), bytes, &access, 1);
  }

  static void require(const Guard& guard) { detail::check(guard.status(), "cudaSetDevice"); }
  static status status_of(const Guard& guard, std::size_t bytes) noexcept {
    if (guard.status() == cudaErrorCudartUnloading) return {};
    return failure{
        "cudaSetDevice", {}, static_cast<int>(guard.status()), cudaGetErrorName(guard.status()), bytes};
  }

  template <class Stream> static CUstream native(Stream stream) {
    if constexpr (requires { stream.get(); }) {
      return stream.get();
    } else {
      return nullptr;
    }
  }

  template <class Stream>
  [[nodiscard]] bool copy_parts(Stream stream, const std::byte* slab, std::span<const mapped_range> kept,
                                parts_elsewhere& copies) noexcept {
    try {
      copies.handles.reserve(kept.size());
      copies.mapped.reserve(kept.size());
    } catch (...) {
      return false;
    }
    std::size_t bytes = 0;
    for (const mapped_range& part : kept) bytes += part.bytes;
    CUdeviceptr address = 0;
    if (calls_->reserve(&address, bytes, 0, 0, 0) != CUDA_SUCCESS) return false;
    copies.address = std::bit_cast<std::byte*>(address);
    copies.bytes = bytes;
    const CUmemAllocationProp properties = kind_of_memory();
    std::size_t done = 0;
    for (const mapped_range& part : kept) {
      CUmemGenericAllocationHandle handle = 0;
      if (calls_->create(&handle, part.bytes, &properties, 0) != CUDA_SUCCESS) return false;
      copies.handles.push_back(handle);
      if (calls_->map(address + done, part.bytes, 0, handle, 0) != CUDA_SUCCESS) return false;
      copies.mapped.push_back({done, part.bytes});
      done += part.bytes;
    }
    if (allow_access(copies.address, bytes) != CUDA_SUCCESS) return false;
    done = 0;
    bool copied = true;
    for (const mapped_range& part : kept) {
      copied = copied && calls_->copy(address + done, number(slab + part.offset), part.bytes,
                                      native(stream)) == CUDA_SUCCESS;
      done += part.bytes;
    }
    return calls_->synchronize(native(stream)) == CUDA_SUCCESS && copied;
  }

  /// For what nobody comes back to: what fails is tried once more.
  template <class Call> static CUresult twice(const Call& call) noexcept {
    const CUresult code = call();
    return code == CUDA_SUCCESS ? code : call();
  }

  /// Takes the other addresses away; memory that is mapped in the slab too stays.
  [[nodiscard]] status drop(const parts_elsewhere& copies) noexcept {
    status first_failure;
    bool empty = true;
    for (const mapped_range& part : copies.mapped) {
      const CUresult code =
          twice([&] { return calls_->unmap(number(copies.address + part.offset), part.bytes); });
      empty = empty && code == CUDA_SUCCESS;
      first_failure.merge(detail::status_of(*calls_, code, "cuMemUnmap", part.bytes), {});
    }
    for (const CUmemGenericAllocationHandle handle : copies.handles) {
      const CUresult code = twice([&] { return calls_->release(handle); });
      first_failure.merge(detail::status_of(*calls_, code, "cuMemRelease", 0), {});
    }
    if (copies.address != nullptr && empty) {
      const CUresult code = twice([&] { return calls_->unreserve(number(copies.address), copies.bytes); });
      first_failure.merge(detail::status_of(*calls_, code, "cuMemAddressFree", copies.bytes), {});
    }
    return first_failure;
  }

  const driver_calls* calls_;
  int device_;
  std::size_t granularity_ = 0;
  std::size_t largest_piece_ = 0;
};

} // namespace stowage::inline v0_1::cuda
