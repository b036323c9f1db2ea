#pragma once

#include "memory_check.hpp"

#include <stowage/backend/any.hpp>
#include <stowage/backend/concept.hpp>
#include <stowage/error.hpp>
#include <stowage/segments.hpp>

#include <cstddef>
#include <span>

namespace planner {

/// Another backend's host memory, full of poison at first: what an arena clears while it is made can be seen.
class poisoned_backend {
public:
  using stream_type = stowage::any_stream;

  explicit poisoned_backend(stowage::any_backend memory) : memory_(memory) {}

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    void* const address = memory_.allocate(bytes, alignment);
    fill_with_poison({static_cast<std::byte*>(address), bytes});
    return address;
  }
  stowage::status deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
    return memory_.deallocate(address, bytes, alignment);
  }
  void zero(stream_type stream, std::span<const stowage::segment> segments) {
    memory_.zero(stream, segments);
  }
  void copy_to_host(stream_type stream, void* destination, const void* source, std::size_t bytes) {
    memory_.copy_to_host(stream, destination, source, bytes);
  }
  void copy_from_host(stream_type stream, void* destination, const void* source, std::size_t bytes) {
    memory_.copy_from_host(stream, destination, source, bytes);
  }
  void synchronize(stream_type stream) { memory_.synchronize(stream); }

private:
  stowage::any_backend memory_;
};
static_assert(stowage::backend<poisoned_backend>);

} // namespace planner
