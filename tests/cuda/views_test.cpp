// Views of fields as mdspans, on the host.

#include "device.hpp"
#include "fields.hpp"

#include <stowage/arena.hpp>
#include <stowage/backend/host.hpp>
#include <stowage/cuda/backend.hpp>
#include <stowage/cuda/views.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <type_traits>

namespace {

using stowage::buffer;
using stowage::shape;
using stowage::tokens;
using test::M;
namespace scuda = stowage::cuda;
namespace zero = stowage::zero;

struct fields {
  buffer<float, shape<M, 3, 5>, zero::rows> cube;
  buffer<float, shape<4, M>, zero::never> turned;
  buffer<float, shape<M, 2>, zero::rows, stowage::when<&test::row_params::off>> absent;
  buffer<stowage::regions<test::pieces>, zero::rows> carved;
};

} // namespace

TEST_CASE("views: extents, addresses and rows") {
  const auto plan = stowage::make_plan<fields>(test::row_params{tokens{37}, false});
  stowage::arena arena(plan, stowage::host_backend{});
  const auto cube = scuda::view(arena->cube);
  static_assert(std::is_same_v<typename decltype(cube)::element_type, float>);
  static_assert(decltype(cube)::rank() == 3);
  CHECK(cube.data_handle() == arena->cube.data());
  CHECK(cube.extent(0) == 37);
  CHECK(cube.extent(1) == 3);
  CHECK(cube.extent(2) == 5);
  CHECK(&cube(36, 2, 4) == arena->cube.data() + 36 * 15 + 2 * 5 + 4);

  CHECK(scuda::view_rows(arena->cube, 7).extent(0) == 7);
  CHECK(scuda::view_rows(arena->cube, 0).extent(0) == 0);
  CHECK(scuda::view_rows(arena->cube, 37).extent(0) == 37);
  CHECK(scuda::view_rows(arena->cube, 38).extent(0) == 37); // at most those that are there
  CHECK(scuda::view_rows(arena->cube, 7).extent(2) == 5);

  const auto turned = scuda::view(arena->turned);
  CHECK(turned.extent(0) == 4);
  CHECK(turned.extent(1) == 37);

  const auto absent = scuda::view(arena->absent);
  CHECK(absent.data_handle() == nullptr);
  CHECK(absent.size() == 0);
  CHECK(scuda::view_rows(arena->absent, 5).extent(0) == 0);

  const auto part = scuda::view_rows(arena->carved->floats, 9);
  CHECK(part.data_handle() == arena->carved->floats.data());
  CHECK(part.extent(0) == 9);
  CHECK(part.extent(1) == 2);
}

TEST_CASE("views: the field list by value has the addresses of the device") {
  const auto plan = stowage::make_plan<fields>(test::row_params{tokens{37}, false});
  stowage::arena arena(plan, scuda::backend{});
  const fields view = arena.device_view();
  static_assert(std::is_trivially_copyable_v<fields>);
  CHECK(reinterpret_cast<std::byte*>(view.cube.data()) == arena.address(0));
  CHECK(view.absent.data() == nullptr);
  cudaPointerAttributes attributes{};
  test::cuda(cudaPointerGetAttributes(&attributes, view.cube.data()));
  CHECK(attributes.type == cudaMemoryTypeDevice);
  CHECK(arena.release().ok());
  CHECK_THROWS_AS(static_cast<void>(arena.device_view()), stowage::usage_error);
}
