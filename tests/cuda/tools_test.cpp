// The checksum on the device, guard zones, NVTX names and memory resources.

#include "device.hpp"

#include <stowage/backend/recording.hpp>
#include <stowage/checksum.hpp>
#include <stowage/cuda/backend.hpp>
#include <stowage/cuda/checksum.hpp>
#include <stowage/cuda/nvtx.hpp>
#include <stowage/cuda/resource.hpp>
#include <stowage/cuda/virtual.hpp>
#include <stowage/guards.hpp>
#include <stowage/stowage.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <string>
#include <vector>

namespace {

namespace scuda = stowage::cuda;
using stowage::buffer;
using stowage::field_checksum;
using stowage::shape;
using stowage::tokens;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
};
inline constexpr stowage::dim<&params::batch> M{"M"};
struct listed;

struct fields {
  buffer<float, shape<M, 1000>, zero::rows, stowage::tag<listed>> large;
  buffer<std::uint8_t, shape<M, 7>, zero::rows, stowage::tag<listed>>
      odd; // bytes behind the last lane are ignored
  buffer<float, shape<M>, zero::never, stowage::align<4>, stowage::tag<listed>> narrow;
  buffer<float, shape<M>, zero::never> other;
};

/// Finite numbers of both signs, some of them not finite.
std::vector<float> numbers(std::size_t count) {
  std::vector<float> result(count);
  for (std::size_t index = 0; index < count; ++index) {
    result[index] = static_cast<float>(static_cast<int>(index * 7919 % 2001) - 1000) / 64.0F;
  }
  if (count > 10) result[3] = std::numeric_limits<float>::infinity();
  if (count > 10) result[10] = std::numeric_limits<float>::quiet_NaN();
  return result;
}

TEST_CASE(
    "tools: the checksum on the device is that of the host within its bound, and the same on every run") {
  const auto plan = stowage::make_plan<fields>(params{tokens{333}});
  stowage::arena arena(plan, scuda::backend{});
  for (std::size_t field = 0; field < 4; ++field) {
    const std::vector<float> values = numbers(plan.bytes(field) / 4 + 1);
    test::cuda(cudaMemcpy(arena.address(field), values.data(), plan.bytes(field), cudaMemcpyDefault));
  }
  std::vector<field_checksum> host;
  stowage::checksum<listed>(arena, {}, [&](const field_checksum& one) { host.push_back(one); });
  scuda::checksum_workspace workspace;
  std::vector<field_checksum> device;
  scuda::checksum<listed>(arena, {}, workspace, [&](const field_checksum& one) { device.push_back(one); });
  REQUIRE(host.size() == 3);
  REQUIRE(device.size() == 3);
  for (std::size_t index = 0; index < 3; ++index) {
    CAPTURE(index);
    CHECK(device[index].name == host[index].name);
    CHECK(device[index].bytes == host[index].bytes);
    CHECK(device[index].skipped_lanes == host[index].skipped_lanes);
    CHECK(host[index].skipped_lanes == 2);
    const double bound = static_cast<double>(host[index].bytes / 4) * std::numeric_limits<double>::epsilon();
    CHECK(std::abs(device[index].sum - host[index].sum) <= bound * host[index].sum_of_magnitudes);
    CHECK(std::abs(device[index].sum_of_squares - host[index].sum_of_squares) <=
          bound * host[index].sum_of_squares);
    CHECK(std::abs(device[index].sum_of_magnitudes - host[index].sum_of_magnitudes) <=
          bound * host[index].sum_of_magnitudes);
  }
  std::size_t index = 0;
  scuda::checksum<listed>(arena, {}, workspace, [&](const field_checksum& one) {
    CHECK(one.sum == device[index].sum);
    CHECK(one.sum_of_squares == device[index].sum_of_squares);
    ++index;
  });
}

TEST_CASE("tools: a release while the stream captures is refused, and made up for after it") {
  const auto plan = stowage::make_plan<fields>(params{tokens{3}});
  const test::stream on;
  stowage::arena ordinary(plan, scuda::backend({.stream = scuda::stream(on.get())}), {.stream = on.get()});
  stowage::arena mapped(plan, scuda::virtual_backend({.stream = scuda::stream(on.get())}),
                        {.stream = on.get()});
  test::cuda(cudaStreamBeginCapture(on.get(), cudaStreamCaptureModeThreadLocal));
  for (const stowage::status& refused : {ordinary.release(), mapped.release()}) {
    CHECK(refused.error().refused);
    CHECK(refused.error().reason == "the stream captures; release after the capture ends");
  }
  CHECK(!ordinary.released());
  CHECK(!mapped.released());
  cudaGraph_t graph = nullptr;
  test::cuda(cudaStreamEndCapture(on.get(), &graph));
  test::cuda(cudaGraphDestroy(graph));
  CHECK_NOTHROW(ordinary.zero_all(on.get()));
  CHECK_NOTHROW(mapped.zero_all(on.get()));
  CHECK(ordinary.release().ok());
  CHECK(mapped.release().ok());
}

TEST_CASE("tools: the checksum on the device is refused while the stream captures and after release") {
  const auto plan = stowage::make_plan<fields>(params{tokens{3}});
  stowage::arena arena(plan, scuda::backend{});
  scuda::checksum_workspace workspace;
  const test::stream on;
  test::cuda(cudaStreamBeginCapture(on.get(), cudaStreamCaptureModeThreadLocal));
  CHECK_THROWS_AS(scuda::checksum<listed>(arena, on.get(), workspace, [](const field_checksum&) {}),
                  stowage::usage_error);
  cudaGraph_t graph = nullptr;
  test::cuda(cudaStreamEndCapture(on.get(), &graph));
  test::cuda(cudaGraphDestroy(graph));
  CHECK(arena.release().ok());
  CHECK_THROWS_AS(scuda::checksum<listed>(arena, on.get(), workspace, [](const field_checksum&) {}),
                  stowage::usage_error);
}

TEST_CASE("tools: guard zones on the device name the field that was overrun") {
  stowage::arena arena(stowage::make_plan<fields>(params{tokens{9}}).with_guards(64), scuda::backend{});
  arena.zero_all();
  arena.zero_rows({}, tokens{3});
  CHECK(stowage::scan_guards(arena, {}, [](const stowage::guard_damage&) {}) == 0);
  test::cuda(cudaMemset(arena->odd.data() + 63, 1, 5));
  std::vector<std::string> lines;
  CHECK(stowage::scan_guards(arena, {},
                             [&](const stowage::guard_damage& one) { lines.push_back(format(one)); }) == 1);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("guard zone behind 'odd' (before 'narrow'): bytes 0 to 4 of ") == 0);
}

TEST_CASE("tools: NVTX names and ranges change nothing") {
  const auto plan = stowage::make_plan<fields>(params{tokens{9}});
  scuda::nvtx_backend backend{scuda::backend{}};
  stowage::arena arena(plan, backend);
  const scuda::nvtx_memory names(arena);
  test::poison_memory(arena);
  arena.zero_all();
  const auto memory = test::read_back(arena->large.data(), arena->large.bytes());
  CHECK(test::first_difference(memory, {{0, memory.size()}}) == memory.size());
}

/// What CCCL 3.0 calls a resource that is ordered by streams.
struct resource_of_3_0 {
  int taken = 0;
  void* allocate_async(std::size_t bytes, std::size_t, ::cuda::stream_ref stream) {
    void* address = nullptr;
    test::cuda(cudaMallocAsync(&address, bytes, stream.get()));
    ++taken;
    return address;
  }
  void deallocate_async(void* address, std::size_t, std::size_t, ::cuda::stream_ref stream) {
    test::cuda(cudaFreeAsync(address, stream.get()));
    --taken;
  }
};

/// And what it is from 3.1 on.
struct resource_of_3_1 {
  int taken = 0;
  void* allocate(::cuda::stream_ref stream, std::size_t bytes, std::size_t) {
    void* address = nullptr;
    test::cuda(cudaMallocAsync(&address, bytes, stream.get()));
    ++taken;
    return address;
  }
  void deallocate(::cuda::stream_ref stream, void* address, std::size_t, std::size_t) {
    test::cuda(cudaFreeAsync(address, stream.get()));
    --taken;
  }
};

TEST_CASE_TEMPLATE("tools: the slab comes from a memory resource", Resource, resource_of_3_0,
                   resource_of_3_1) {
  Resource resource;
  const test::stream on;
  {
    scuda::resource_backend backend(resource, on.get());
    stowage::arena arena(stowage::make_plan<fields>(params{tokens{9}}), backend);
    CHECK(resource.taken == 1);
    test::cuda(cudaStreamSynchronize(on.get()));
    test::poison_memory(arena);
    arena.zero_all(on.get());
    test::cuda(cudaStreamSynchronize(on.get()));
    const auto memory = test::read_back(arena->large.data(), arena->large.bytes());
    CHECK(test::first_difference(memory, {{0, memory.size()}}) == memory.size());
  }
  CHECK(resource.taken == 0);
}

} // namespace
