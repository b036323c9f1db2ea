#include <stowage/backend/any.hpp>
#include <stowage/backend/concept.hpp>
#include <stowage/backend/failing.hpp>
#include <stowage/backend/host.hpp>
#include <stowage/backend/pmr.hpp>
#include <stowage/backend/recording.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>

namespace {

using stowage::any_backend;
using stowage::any_stream;
using stowage::failing_backend;
using stowage::host_backend;
using stowage::operation;
using stowage::recording_backend;
using stowage::segment;

static_assert(stowage::backend<host_backend>);
static_assert(stowage::backend<recording_backend<>>);
static_assert(stowage::backend<failing_backend<>>);
static_assert(stowage::backend<failing_backend<recording_backend<>>>);
static_assert(stowage::backend<any_backend>);
static_assert(stowage::capturing_backend<any_backend> && !stowage::capturing_backend<host_backend>);
static_assert(!stowage::backend<int> && !stowage::backend<const host_backend>);

/// What every backend does.
template <class Backend> void check_backend(Backend& backend) {
  typename Backend::stream_type stream{};
  for (const std::size_t alignment : {std::size_t{1}, std::size_t{16}, std::size_t{256}, std::size_t{4096}}) {
    void* address = backend.allocate(100, alignment);
    REQUIRE(address != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(address) % alignment == 0);
    std::array<std::uint8_t, 100> from{};
    for (std::size_t index = 0; index < from.size(); ++index)
      from[index] = static_cast<std::uint8_t>(index + 1);
    backend.copy_from_host(stream, address, from.data(), from.size());

    auto* bytes = static_cast<std::byte*>(address);
    const std::array<segment, 2> pass{segment{bytes, 3}, segment{bytes + 50, 10}};
    backend.zero(stream, pass);
    backend.synchronize(stream);
    std::array<std::uint8_t, 100> to{};
    backend.copy_to_host(stream, to.data(), address, to.size());
    backend.synchronize(stream);
    for (std::size_t index = 0; index < to.size(); ++index) {
      const bool cleared = index < 3 || (index >= 50 && index < 60);
      CHECK(to[index] == (cleared ? 0 : index + 1));
    }
    CHECK(backend.deallocate(address, 100, alignment).ok());
  }
}

TEST_CASE("backend: each allocates, clears and copies") {
  host_backend host;
  check_backend(host);
  recording_backend<> recording;
  check_backend(recording);
  failing_backend<> failing;
  check_backend(failing);
  CHECK(failing.outstanding() == 0);
  any_backend any(host);
  check_backend(any);
}

// The sanitizers end a program that asks for so much.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STOWAGE_TEST_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STOWAGE_TEST_SANITIZED
#endif
#endif

#if !defined(STOWAGE_TEST_SANITIZED)
TEST_CASE("host_backend: more than there is, is out of memory") {
  host_backend host;
  constexpr std::size_t much = std::size_t{1} << 62;
  try {
    static_cast<void>(host.allocate(much, 256));
    FAIL("allocated");
  } catch (const stowage::out_of_memory& error) {
    CHECK(error.bytes() == much);
    CHECK(std::string_view{error.what()}.find("4611686018427387904 bytes wanted") != std::string_view::npos);
  }
}
#endif

TEST_CASE("recording_backend: remembers each call with its numbers, in order") {
  recording_backend<> backend;
  void* address = backend.allocate(64, 256);
  const std::array<segment, 1> pass{segment{static_cast<std::byte*>(address), 8}};
  backend.zero({}, pass);
  std::array<std::byte, 4> host{};
  backend.copy_to_host({}, host.data(), address, 4);
  backend.copy_from_host({}, address, host.data(), 3);
  backend.synchronize({});
  CHECK(backend.deallocate(address, 64, 256).ok());

  REQUIRE(backend.calls().size() == 6);
  CHECK(backend.calls()[0].what == operation::allocate);
  CHECK(backend.calls()[0].address == address);
  CHECK(backend.calls()[0].bytes == 64);
  CHECK(backend.calls()[0].alignment == 256);
  CHECK(backend.calls()[1].what == operation::zero);
  CHECK(backend.calls()[1].segments.size() == 1);
  CHECK(backend.calls()[1].segments[0] == pass[0]);
  CHECK(backend.calls()[2].what == operation::copy_to_host);
  CHECK(backend.calls()[2].address == address);
  CHECK(backend.calls()[2].bytes == 4);
  CHECK(backend.calls()[3].what == operation::copy_from_host);
  CHECK(backend.calls()[3].address == address);
  CHECK(backend.calls()[3].bytes == 3);
  CHECK(backend.calls()[4].what == operation::synchronize);
  CHECK(backend.calls()[5].what == operation::deallocate);
  CHECK(backend.calls()[5].address == address);
  CHECK(backend.count(operation::zero) == 1);
  CHECK(backend.count(operation::deallocate) == 1);
  backend.clear();
  CHECK(backend.calls().empty());
  CHECK(backend.count(operation::zero) == 0);
}

TEST_CASE("failing_backend: the k-th call of a kind fails, once, as a real one would") {
  failing_backend<> backend;
  backend.fail(operation::allocate, 2);
  void* first = backend.allocate(8, 8);
  CHECK_THROWS_AS(static_cast<void>(backend.allocate(16, 8)), stowage::out_of_memory);
  void* third = backend.allocate(8, 8);
  CHECK(backend.count(operation::allocate) == 3);
  CHECK(backend.outstanding() == 2);

  backend.fail(operation::deallocate, 1);
  const stowage::status failed = backend.deallocate(first, 8, 8);
  CHECK_FALSE(failed.ok());
  CHECK(failed.error().operation == "deallocate");
  CHECK(failed.error().code == failing_backend<>::failure_code);
  CHECK(failed.error().bytes == 8);
  CHECK(backend.deallocate(third, 8, 8).ok());
  CHECK(backend.outstanding() == 0); // given back all the same

  std::array<std::byte, 4> bytes{};
  const std::array<segment, 1> pass{segment{bytes.data(), 4}};
  for (const operation what :
       {operation::zero, operation::copy_to_host, operation::copy_from_host, operation::synchronize}) {
    backend.fail(what, 1);
    const auto call = [&] {
      if (what == operation::zero) backend.zero({}, pass);
      if (what == operation::copy_to_host) backend.copy_to_host({}, bytes.data(), bytes.data(), 0);
      if (what == operation::copy_from_host) backend.copy_from_host({}, bytes.data(), bytes.data(), 0);
      if (what == operation::synchronize) backend.synchronize({});
    };
    try {
      call();
      FAIL("did not fail");
    } catch (const stowage::backend_error& error) {
      CHECK(error.code() == 719);
    }
    CHECK_NOTHROW(call());
    backend.fail(what, 0);
    CHECK_NOTHROW(call());
  }
}

/// A backend whose streams are pointers that can be captured.
struct native_stream;
struct device_like {
  using stream_type = native_stream*;
  host_backend host;
  native_stream* last = nullptr;
  native_stream* captured = nullptr;
  void* allocate(std::size_t bytes, std::size_t alignment) { return host.allocate(bytes, alignment); }
  stowage::status deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
    return host.deallocate(address, bytes, alignment);
  }
  void zero(stream_type stream, std::span<const segment>) { last = stream; }
  void copy_to_host(stream_type stream, void*, const void*, std::size_t) { last = stream; }
  void copy_from_host(stream_type stream, void*, const void*, std::size_t) { last = stream; }
  void synchronize(stream_type stream) { last = stream; }
  bool is_capturing(stream_type stream) { return stream != nullptr && stream == captured; }
};
static_assert(stowage::capturing_backend<device_like>);

TEST_CASE("any_backend: hands streams and captures through to the backend that it refers to") {
  device_like device;
  int memory = 0;
  auto* stream = reinterpret_cast<native_stream*>(&memory);
  device.captured = stream;
  any_backend any(device);
  any.synchronize(stream);
  CHECK(device.last == stream);
  any.zero({}, {});
  CHECK(device.last == nullptr);
  any.copy_to_host(stream, nullptr, nullptr, 0);
  CHECK(device.last == stream);
  CHECK(any.is_capturing(stream));
  CHECK_FALSE(any.is_capturing(any_stream{}));

  host_backend host;
  any_backend other(host);
  CHECK_FALSE(other.is_capturing(stowage::host_stream{}));
  any = other; // rebound
  CHECK_FALSE(any.is_capturing(stream));

  recording_backend<> recording;
  any_backend counted(recording);
  CHECK(counted.deallocate(counted.allocate(8, 8), 8, 8).ok());
  CHECK(recording.calls().size() == 2);
}

TEST_CASE(
    "any_backend: refers to a backend that wraps another any_backend, and the stream goes through both") {
  device_like device;
  int memory = 0;
  auto* stream = reinterpret_cast<native_stream*>(&memory);
  recording_backend<any_backend> recording{any_backend(device)};
  any_backend any(recording);
  any.synchronize(stream);
  CHECK(device.last == stream);
  CHECK(recording.count(operation::synchronize) == 1);
}

TEST_CASE("pmr_backend: what it gives is aligned, also out of the standard library's pools") {
  std::pmr::unsynchronized_pool_resource pools;
  stowage::pmr_backend backend(pools);
  check_backend(backend);
  for (std::size_t alignment = 1; alignment <= 4096; alignment *= 2) {
    for (const std::size_t bytes : {1U, 96U, 160U, 192U, 320U, 384U, 640U, 6400U, 12288U}) {
      CAPTURE(alignment);
      CAPTURE(bytes);
      std::array<void*, 5> addresses{};
      for (void*& address : addresses) {
        address = backend.allocate(bytes, alignment);
        CHECK(reinterpret_cast<std::uintptr_t>(address) % alignment == 0);
        std::memset(address, 0xab, bytes);
      }
      for (void* const address : addresses) CHECK(backend.deallocate(address, bytes, alignment).ok());
    }
  }
}

} // namespace
