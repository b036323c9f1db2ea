#pragma once

#include <stowage/backend/concept.hpp>
#include <stowage/backend/host.hpp>

#include <cstddef>
#include <exception>
#include <memory_resource>

namespace stowage {

/// Host memory from a std::pmr::memory_resource, which must outlive it and the arenas on it.
class pmr_backend : public host_backend {
public:
  explicit pmr_backend(std::pmr::memory_resource& resource) : resource_(&resource) {}

  /// Throws what the resource throws: std::bad_alloc, as a rule.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return resource_->allocate(bytes, alignment);
  }
  status deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
    try {
      resource_->deallocate(address, bytes, alignment);
      return {};
    } catch (...) {
      return failure{"deallocate", {}, 0, "the memory resource threw", bytes};
    }
  }

private:
  std::pmr::memory_resource* resource_;
};
static_assert(backend<pmr_backend>);

} // namespace stowage
