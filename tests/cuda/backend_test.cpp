// The CUDA backend: four kinds of memory, devices, errors, and what is built on it.

#include "../support/messages.hpp"
#include "device.hpp"
#include "fields.hpp"

#include <stowage/arena.hpp>
#include <stowage/backend/any.hpp>
#include <stowage/backend/host.hpp>
#include <stowage/backend/recording.hpp>
#include <stowage/checksum.hpp>
#include <stowage/cuda/backend.hpp>
#include <stowage/traits/pad_fill.hpp>
#include <stowage/traits/zero_at_construction.hpp>

#include <cuda/stream_ref>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using stowage::buffer;
using stowage::shape;
using stowage::tokens;
using test::contains;
using test::M;
using test::message_of;
namespace scuda = stowage::cuda;
namespace zero = stowage::zero;

struct summed;

struct sums {
  buffer<float, shape<M, 1001>, zero::rows, stowage::tag<summed>> floats;
  buffer<stowage::bf16, shape<M, 77>, zero::rows, stowage::tag<summed>> halves;
  buffer<std::uint8_t, shape<M, 3>, zero::never, stowage::tag<summed>, stowage::align<1>> bytes;
  buffer<float, shape<M, 5>, zero::never> not_listed;
};

struct prepared {
  buffer<float, shape<M, 300>, zero::never, stowage::pad_fill<1>> scales;
  buffer<std::uint32_t, shape<M>, zero::never, stowage::zero_at_construction> counters;
};

struct two_buffers {
  buffer<std::uint8_t, shape<std::size_t{1} << 20>, zero::full> first;
  buffer<std::uint8_t, shape<M, std::size_t{1} << 30>, zero::never> enormous;
};

test::row_plan small_plan() { return test::row_plan(test::row_params{tokens{37}, false}); }

/// No error of an earlier call is left for the next one to be blamed with.
void check_no_error_is_left() { CHECK(std::string(cudaGetErrorName(cudaGetLastError())) == "cudaSuccess"); }

/// A stream class of the user's own.
struct other_stream {
  cudaStream_t native = nullptr;
  [[nodiscard]] cudaStream_t get() const { return native; }
};

} // namespace

TEST_CASE("backend: memory of each kind") {
  const test::stream on;
  for (const auto kind : test::memory_kinds()) {
    CAPTURE(static_cast<int>(kind));
    scuda::backend backend({.memory = kind, .stream = on.get()});
    CHECK(backend.memory() == kind);
    void* const address = backend.allocate(100000, 256);
    on.wait();
    cudaPointerAttributes attributes{};
    test::cuda(cudaPointerGetAttributes(&attributes, address));
    switch (kind) {
      case scuda::memory_kind::device:
      case scuda::memory_kind::pool: CHECK(attributes.type == cudaMemoryTypeDevice); break;
      case scuda::memory_kind::pinned: CHECK(attributes.type == cudaMemoryTypeHost); break;
      case scuda::memory_kind::managed: CHECK(attributes.type == cudaMemoryTypeManaged); break;
    }
    std::vector<unsigned char> sent(100000);
    std::mt19937 random(7);
    for (unsigned char& byte : sent) byte = static_cast<unsigned char>(random());
    std::vector<unsigned char> got(sent.size());
    backend.copy_from_host(on.get(), address, sent.data(), sent.size());
    backend.copy_to_host(on.get(), got.data(), address, got.size());
    backend.synchronize(on.get());
    CHECK(got == sent);
    CHECK(backend.deallocate(address, 100000, 256).ok());
    check_no_error_is_left();
  }
}

TEST_CASE("backend: streams of any kind") {
  const test::stream on;
  stowage::arena arena(small_plan(), scuda::backend{});
  const auto expect = [&] {
    test::check_fields(arena, [](std::size_t field) { return test::cleared_rows(field, 9, 37); });
    test::poison_memory(arena);
  };
  test::poison_memory(arena);
  arena.zero_rows(on.get(), tokens{9});
  expect();
  arena.zero_rows(::cuda::stream_ref(on.get()), tokens{9});
  expect();
  arena.zero_rows(other_stream{on.get()}, tokens{9});
  expect();
  arena.zero_rows(scuda::stream(on.get()), tokens{9});
  expect();
}

TEST_CASE("backend: too much memory is refused with what CUDA says") {
  constexpr std::size_t bytes = std::size_t{1} << 46;
  for (const auto& [kind, call] : std::vector<std::pair<scuda::memory_kind, std::string>>{
           {scuda::memory_kind::device, "cudaMalloc "}, {scuda::memory_kind::pool, "cudaMallocAsync "}}) {
    CAPTURE(call);
    scuda::backend backend({.memory = kind, .stream = {}});
    std::size_t wanted = 0;
    std::string message;
    try {
      static_cast<void>(backend.allocate(bytes, 256));
    } catch (const stowage::out_of_memory& error) {
      wanted = error.bytes();
      message = error.what();
    }
    check_no_error_is_left();
    CAPTURE(message);
    CHECK(wanted == bytes);
    CHECK(contains(message, call));
    CHECK(contains(message, "cudaErrorMemoryAllocation"));
    CHECK(contains(message, std::to_string(bytes) + " bytes wanted"));
    CHECK(contains(message, " bytes free of "));
  }
}

TEST_CASE("backend: an arena that does not fit leaves nothing behind") {
  const auto plan = stowage::make_plan<two_buffers>(test::row_params{tokens{65536}, false}); // 64 TiB
  for (const auto where : {stowage::placement::slab, stowage::placement::separate}) {
    CAPTURE(static_cast<int>(where));
    stowage::recording_backend backend(scuda::backend{});
    CHECK_THROWS_AS(stowage::arena(plan, backend, {.where = where}), stowage::out_of_memory);
    check_no_error_is_left();
    const std::size_t allocated = where == stowage::placement::slab ? 0 : 1;
    CHECK(backend.count(stowage::operation::allocate) == allocated);
    CHECK(backend.count(stowage::operation::deallocate) == allocated);
  }
}

TEST_CASE("backend: an alignment that CUDA does not give is refused") {
  scuda::backend backend;
  CHECK(contains(message_of<stowage::usage_error>(
                     [&] { static_cast<void>(backend.allocate(256, std::size_t{1} << 46)); }),
                 "alignment"));
  check_no_error_is_left();
}

TEST_CASE("backend: a failed release is reported, not thrown, and blames no later call") {
  for (const auto& [kind, call] : std::vector<std::pair<scuda::memory_kind, std::string>>{
           {scuda::memory_kind::device, "cudaFree"}, {scuda::memory_kind::pinned, "cudaFreeHost"}}) {
    CAPTURE(call);
    scuda::backend backend({.memory = kind, .stream = {}});
    std::array<std::byte, 64> not_allocated{};
    const stowage::status status = backend.deallocate(not_allocated.data(), 64, 64);
    check_no_error_is_left();
    CHECK_FALSE(status.ok());
    CHECK(status.error().operation == call);
    CHECK(status.error().code != 0);
    CHECK(status.error().bytes == 64);
    CHECK(contains(std::string(status.error().reason), "cudaError"));
  }
}

TEST_CASE("backend: release twice, passes after release") {
  for (const auto where : {stowage::placement::slab, stowage::placement::separate}) {
    stowage::arena arena(small_plan(), scuda::backend{}, {.where = where});
    CHECK(arena.release().ok());
    CHECK(arena.release().ok());
    CHECK(arena->plain.data() == nullptr);
    CHECK_THROWS_AS(arena.zero_all(), stowage::usage_error);
    CHECK_THROWS_AS(arena.zero_rows({}, tokens{1}), stowage::usage_error);
    check_no_error_is_left();
  }
}

TEST_CASE("backend: a device that does not exist") {
  int before = -1;
  test::cuda(cudaGetDevice(&before));
  int code = 0;
  std::string message;
  try {
    const scuda::backend backend(test::device_count());
  } catch (const scuda::error& error) {
    code = error.code();
    message = error.what();
  }
  check_no_error_is_left();
  CHECK(code == static_cast<int>(cudaErrorInvalidDevice));
  CHECK(contains(message, "cudaSetDevice"));
  CHECK(contains(message, "cudaErrorInvalidDevice"));
  int after = -1;
  test::cuda(cudaGetDevice(&after));
  CHECK(after == before);
}

TEST_CASE("backend: chosen at run time") {
  const test::stream on;
  scuda::backend device;
  stowage::arena arena(small_plan(), stowage::any_backend(device), {.stream = on.get()});
  test::poison_memory(arena);
  arena.zero_rows(on.get(), tokens{17});
  test::check_fields(arena, [](std::size_t field) { return test::cleared_rows(field, 17, 37); });
  test::poison_memory(arena);
  arena.zero_all(scuda::stream(on.get()));
  test::check_fields(arena, test::cleared_all);
  test::cuda(cudaStreamBeginCapture(on.get(), cudaStreamCaptureModeThreadLocal));
  CHECK(arena.backend().is_capturing(on.get()));
  cudaGraph_t graph = nullptr;
  test::cuda(cudaStreamEndCapture(on.get(), &graph));
  test::cuda(cudaGraphDestroy(graph));
  CHECK_FALSE(arena.backend().is_capturing(on.get()));
}

TEST_CASE("backend: fields that are filled or cleared at construction") {
  const test::stream on;
  const auto plan = stowage::make_plan<prepared>(test::row_params{tokens{37}, false});
  for (const auto kind : test::memory_kinds()) {
    CAPTURE(static_cast<int>(kind));
    const stowage::arena arena(plan, scuda::backend({.memory = kind, .stream = on.get()}),
                               {.stream = on.get()});
    on.wait();
    std::vector<float> scales(arena->scales.size());
    test::cuda(cudaMemcpy(scales.data(), arena->scales.data(), arena->scales.bytes(), cudaMemcpyDefault));
    CHECK(scales == std::vector<float>(std::size_t{37} * 300, 1.0F));
    std::vector<std::uint32_t> counters(arena->counters.size());
    test::cuda(
        cudaMemcpy(counters.data(), arena->counters.data(), arena->counters.bytes(), cudaMemcpyDefault));
    CHECK(counters == std::vector<std::uint32_t>(37, 0));
  }
}

TEST_CASE("backend: a checksum of device memory is that of the same bytes on the host") {
  const test::stream on;
  const auto plan = stowage::make_plan<sums>(test::row_params{tokens{53}, false});
  stowage::arena host(plan, stowage::host_backend{});
  stowage::arena device(plan, scuda::backend{});
  std::mt19937 random(4);
  for (std::size_t index = 0; index < plan.slab_bytes(); ++index)
    host.slab()[index] = static_cast<std::byte>(random());
  test::cuda(cudaMemcpy(device.slab(), host.slab(), plan.slab_bytes(), cudaMemcpyDefault));
  std::vector<stowage::field_checksum> of_host;
  stowage::checksum<summed>(host, {}, [&](const auto& sum) { of_host.push_back(sum); });
  // Also with staging that no field is a multiple of.
  std::vector<std::byte> odd_staging(1003);
  for (const bool odd : {false, true}) {
    CAPTURE(odd);
    std::vector<stowage::field_checksum> of_device;
    const auto sink = [&](const auto& sum) { of_device.push_back(sum); };
    if (odd) {
      stowage::checksum<summed>(device, on.get(), odd_staging, sink);
    } else {
      stowage::checksum<summed>(device, on.get(), sink);
    }
    REQUIRE(of_host.size() == 3);
    REQUIRE(of_device.size() == 3);
    CHECK(of_host[0].skipped_lanes > 0); // random bits
    for (std::size_t field = 0; field < of_host.size(); ++field) {
      INFO("field ", std::string(of_host[field].name));
      CHECK(of_device[field].copied);
      CHECK(of_device[field].name == of_host[field].name);
      CHECK(of_device[field].bytes == of_host[field].bytes);
      CHECK(of_device[field].skipped_lanes == of_host[field].skipped_lanes);
      CHECK(of_device[field].sum == of_host[field].sum); // in the same order: the very same numbers
      CHECK(of_device[field].sum_of_squares == of_host[field].sum_of_squares);
      CHECK(of_device[field].sum_of_magnitudes == of_host[field].sum_of_magnitudes);
    }
  }
}

TEST_CASE("backend: several threads, an arena each") {
  constexpr std::size_t count = 4;
  std::array<std::size_t, count> differences{};
  std::vector<std::thread> threads;
  for (std::size_t index = 0; index < count; ++index) {
    threads.emplace_back([index, &differences] { // no assertions in here
      cudaStream_t on = nullptr;
      differences[index] = 1;
      if (cudaStreamCreateWithFlags(&on, cudaStreamNonBlocking) != cudaSuccess) return;
      try {
        for (std::size_t round = 0; round < 10; ++round) {
          stowage::arena arena(small_plan(), scuda::backend{}, {.stream = on});
          if (cudaMemsetAsync(arena.slab(), test::poison, arena.plan().slab_bytes(), on) != cudaSuccess)
            return;
          arena.zero_rows(on, tokens{index + 1});
          std::vector<unsigned char> wide(arena->wide.bytes());
          arena.backend().copy_to_host(on, wide.data(), arena->wide.data(), wide.size());
          arena.backend().synchronize(on);
          if (test::first_difference(wide, {{0, (index + 1) * 1999}}) != wide.size()) return;
        }
        differences[index] = 0;
      } catch (...) {
        differences[index] = 2;
      }
      static_cast<void>(cudaStreamDestroy(on));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(differences == std::array<std::size_t, count>{});
}

TEST_CASE("backend: the device that was current stays current") {
  const int before = scuda::current_device();
  {
    stowage::arena arena(small_plan(), scuda::backend(0));
    CHECK(arena.backend().device() == 0);
    CHECK(scuda::current_device() == before);
    arena.zero_all();
    CHECK(scuda::current_device() == before);
  }
  CHECK(scuda::current_device() == before);
}

TEST_CASE("backend: two devices") {
  if (test::device_count() < 2) {
    std::puts("SKIPPED: two devices, for there is one GPU");
    return;
  }
  for (const int current : {0, 1}) {
    CAPTURE(current);
    const test::on_device guard(current);
    for (const auto kind :
         {scuda::memory_kind::device, scuda::memory_kind::pool, scuda::memory_kind::pinned}) {
      CAPTURE(static_cast<int>(kind));
      const int other = 1 - current;
      scuda::backend backend(other, {.memory = kind, .stream = {}});
      CHECK(backend.device() == other);
      CHECK(scuda::current_device() == current);
      stowage::arena arena(small_plan(), backend);
      CHECK(scuda::current_device() == current);
      if (kind == scuda::memory_kind::device) {
        cudaPointerAttributes attributes{};
        test::cuda(cudaPointerGetAttributes(&attributes, arena.slab()));
        CHECK(attributes.device == other);
      }
      {
        const test::on_device there(other);
        test::poison_memory(arena);
      }
      arena.zero_rows({}, tokens{17});
      CHECK(scuda::current_device() == current);
      backend.synchronize({});
      CHECK(scuda::current_device() == current);
      {
        const test::on_device there(other);
        test::check_fields(arena, [](std::size_t field) { return test::cleared_rows(field, 17, 37); });
      }
      CHECK_FALSE(backend.is_capturing({}));
      CHECK(arena.release().ok());
      CHECK(scuda::current_device() == current);
    }
  }
}
