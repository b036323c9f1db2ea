// An elastic arena on a backend that cannot map memory at reserved addresses.
//
// expect: stowage: this backend cannot map memory at reserved addresses; backend/elastic.hpp says what it needs

#include <stowage/backend/virtual_host.hpp>
#include <stowage/elastic.hpp>
#include <stowage/stowage.hpp>

#include <cstddef>

struct params {
  stowage::tokens batch{};
};
inline constexpr stowage::dim<&params::batch> M{};
struct fields {
  stowage::buffer<float, stowage::shape<M>, stowage::zero::rows> sums;
};

#ifdef STOWAGE_MUST_NOT_COMPILE
using backend = stowage::host_backend;
#else
using backend = stowage::virtual_host_backend;
#endif

std::size_t use(const params& values) {
  backend memory;
  const auto plan = stowage::make_plan<fields>(values);
  const stowage::elastic_arena arena(plan, plan, memory);
  return arena->sums.bytes();
}
