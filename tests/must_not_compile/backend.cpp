// Types that are no backend.
//
// case 1: without deallocate
// expect: stowage: this type is no backend; backend/concept.hpp says what it needs
// case 2: with a deallocate that can throw
// expect: stowage: this type is no backend; backend/concept.hpp says what it needs
// case 3: a constant backend
// expect: stowage: this type is no backend; backend/concept.hpp says what it needs

#include <stowage/stowage.hpp>

#include <cstddef>
#include <span>

struct params {
  stowage::tokens batch{};
};
inline constexpr stowage::dim<&params::batch> M{};
struct fields {
  stowage::buffer<float, stowage::shape<M>, stowage::zero::rows> sums;
};

struct memory {
  using stream_type = int;
  stowage::host_backend host;
  void* allocate(std::size_t bytes, std::size_t alignment) { return host.allocate(bytes, alignment); }
#if STOWAGE_MUST_NOT_COMPILE == 2
  stowage::status deallocate(void* address, std::size_t bytes, std::size_t alignment) {
#elif STOWAGE_MUST_NOT_COMPILE == 1
  stowage::status give_back(void* address, std::size_t bytes, std::size_t alignment) noexcept {
#else
  stowage::status deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
#endif
    return host.deallocate(address, bytes, alignment);
  }
  void zero(int, std::span<const stowage::segment> segments) { host.zero({}, segments); }
  void copy_to_host(int, void* to, const void* from, std::size_t bytes) {
    host.copy_to_host({}, to, from, bytes);
  }
  void copy_from_host(int, void* to, const void* from, std::size_t bytes) {
    host.copy_from_host({}, to, from, bytes);
  }
  void synchronize(int) {}
};

std::size_t use(const params& values) {
#if STOWAGE_MUST_NOT_COMPILE == 3
  const memory backend{};
#else
  memory backend{};
#endif
  const stowage::arena arena(stowage::make_plan<fields>(values), backend);
  return arena->sums.bytes();
}
