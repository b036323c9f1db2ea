#pragma once

#include <stowage/backend/concept.hpp>

#include <cstddef>
#include <cstring>
#include <limits>
#include <new>
#include <span>

namespace stowage::inline v0_1 {

/// The host does its work at once, in order.
struct host_stream {};

/// Aligned host memory. Stateless; safe from several threads.
class host_backend {
public:
  using stream_type = host_stream;

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    // Sizes close to 2^64 wrap around where the allocator rounds them up to the alignment.
    if (bytes > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) - alignment) {
      throw out_of_memory(bytes, "no host has so much");
    }
    void* address = ::operator new(bytes, std::align_val_t{alignment}, std::nothrow);
    if (address == nullptr) throw out_of_memory(bytes, "the host has not so much");
    return address;
  }
  status deallocate(void* address, std::size_t, std::size_t alignment) noexcept {
    ::operator delete(address, std::align_val_t{alignment});
    return {};
  }
  void zero(stream_type, std::span<const segment> segments) {
    for (const segment& range : segments) std::memset(range.address, 0, range.bytes);
  }
  void copy_to_host(stream_type, void* destination, const void* source, std::size_t bytes) {
    std::memcpy(destination, source, bytes);
  }
  void copy_from_host(stream_type, void* destination, const void* source, std::size_t bytes) {
    std::memcpy(destination, source, bytes);
  }
  void synchronize(stream_type) {}
};
static_assert(backend<host_backend>);

} // namespace stowage::inline v0_1
