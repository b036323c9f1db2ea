#pragma once

#include <stowage/backend/concept.hpp>
#include <stowage/backend/host.hpp>
#include <stowage/detail/checked.hpp>

#include <cstddef>
#include <exception>
#include <memory_resource>

namespace stowage::inline v0_1 {

/// Host memory from a std::pmr::memory_resource, which must outlive it and the arenas on it.
class pmr_backend : public host_backend {
public:
  /// Memory comes from the resource, which is not copied.
  explicit pmr_backend(std::pmr::memory_resource& resource) : resource_(&resource) {}

  /// Throws what the resource throws: std::bad_alloc, as a rule. Asks for a multiple of the alignment: the pools of
  /// libstdc++ 12 misalign other sizes.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return resource_->allocate(padded(bytes, alignment), alignment);
  }
  status deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
    try {
      resource_->deallocate(address, padded(bytes, alignment), alignment);
      return {};
    } catch (...) {
      return failure{"deallocate", {}, 0, "the memory resource threw", bytes};
    }
  }

private:
  /// As it is where no multiple fits: no resource has so much.
  static std::size_t padded(std::size_t bytes, std::size_t alignment) noexcept {
    std::size_t multiple = 0;
    return detail::checked_round_up(bytes, alignment, multiple) ? multiple : bytes;
  }

  std::pmr::memory_resource* resource_;
};
static_assert(backend<pmr_backend>);

} // namespace stowage::inline v0_1
