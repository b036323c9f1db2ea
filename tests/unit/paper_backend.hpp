#pragma once

// A backend without memory: addresses that nobody may read, for arenas larger than the machine.

#include <stowage/backend/concept.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace test {

struct paper_backend {
  struct stream_type {};

  std::uintptr_t next = std::uintptr_t{1} << 32;

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    next = (next + alignment - 1) / alignment * alignment;
    void* const address = reinterpret_cast<void*>(next);
    next += bytes;
    return address;
  }
  stowage::status deallocate(void*, std::size_t, std::size_t) noexcept { return {}; }
  void zero(stream_type, std::span<const stowage::segment>) {}
  void copy_to_host(stream_type, void*, const void*, std::size_t) {}
  void copy_from_host(stream_type, void*, const void*, std::size_t) {}
  void synchronize(stream_type) {}
};
static_assert(stowage::backend<paper_backend>);

} // namespace test
