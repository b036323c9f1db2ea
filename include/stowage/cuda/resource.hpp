#pragma once

#include <stowage/backend/concept.hpp>
#include <stowage/cuda/backend.hpp>
#include <stowage/cuda/stream.hpp>

#include <cuda/stream_ref>

#include <cstddef>

namespace stowage::inline v0_1::cuda {

namespace detail {

// The one place that knows how CCCL's memory resources are called. CCCL 3.0 (CUDA 13.0) says allocate and
// allocate_async with the stream last; from 3.1 on allocate takes the stream first, and allocate_sync none.

template <class Resource>
concept stream_first_resource = requires(Resource& resource, ::cuda::stream_ref stream, std::size_t number) {
  resource.allocate(stream, number, number);
};
template <class Resource>
concept stream_last_resource = requires(Resource& resource, ::cuda::stream_ref stream, std::size_t number) {
  resource.allocate_async(number, number, stream);
};
template <class Resource>
concept sync_named_resource =
    requires(Resource& resource, std::size_t number) { resource.allocate_sync(number, number); };
template <class Resource>
concept plain_resource =
    requires(Resource& resource, std::size_t number) { resource.allocate(number, number); };

template <class Resource>
void* allocate_from(Resource& resource, ::cuda::stream_ref stream, std::size_t bytes, std::size_t alignment) {
  if constexpr (stream_first_resource<Resource>) {
    return resource.allocate(stream, bytes, alignment);
  } else if constexpr (stream_last_resource<Resource>) {
    return resource.allocate_async(bytes, alignment, stream);
  } else if constexpr (sync_named_resource<Resource>) {
    return resource.allocate_sync(bytes, alignment);
  } else {
    return resource.allocate(bytes, alignment);
  }
}

template <class Resource>
void deallocate_to(Resource& resource, ::cuda::stream_ref stream, void* address, std::size_t bytes,
                   std::size_t alignment) {
  if constexpr (stream_first_resource<Resource>) {
    resource.deallocate(stream, address, bytes, alignment);
  } else if constexpr (stream_last_resource<Resource>) {
    resource.deallocate_async(address, bytes, alignment, stream);
  } else if constexpr (sync_named_resource<Resource>) {
    resource.deallocate_sync(address, bytes, alignment);
  } else {
    resource.deallocate(address, bytes, alignment);
  }
}

} // namespace detail

/// A resource of CCCL's kind (or of RMM's, which follows it): allocates with a stream where it can, without
/// else.
template <class Resource>
concept memory_resource = detail::stream_first_resource<Resource> || detail::stream_last_resource<Resource> ||
                          detail::sync_named_resource<Resource> || detail::plain_resource<Resource>;

/// Device memory from an engine's own resource; everything else as in cuda::backend. The resource must
/// outlive it and the arenas on it. `stream` orders allocation and release where the resource is ordered by
/// streams.
template <memory_resource Resource> class resource_backend : public backend {
public:
  /// Memory comes from the resource, on the current device, ordered by the stream.
  explicit resource_backend(Resource& resource, cuda::stream stream = {})
      : resource_(&resource), stream_(stream) {}

  /// Throws what the resource throws, and usage_error while the stream captures.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    const device_guard guard(device());
    guard.check();
    if (cuda::is_capturing(stream_)) {
      throw usage_error(
          "stowage: allocating from a memory resource is not possible while its stream captures");
    }
    return detail::allocate_from(*resource_, ::cuda::stream_ref(stream_.get()), bytes, alignment);
  }
  status deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
    const device_guard guard(device());
    if (const status can = detail::can_give_back(guard, stream_, "deallocate", bytes); !can) return can;
    try {
      detail::deallocate_to(*resource_, ::cuda::stream_ref(stream_.get()), address, bytes, alignment);
      return {};
    } catch (...) {
      return failure{"deallocate", {}, 0, "the memory resource threw", bytes};
    }
  }

private:
  Resource* resource_;
  cuda::stream stream_;
};

} // namespace stowage::inline v0_1::cuda
