// The CUDA backend for elastic arenas on a driver that is played on the host: needs no GPU.

#include "../../support/messages.hpp"
#include "../../unit/elastic_suite.hpp"
#include "fake_driver.hpp"

#include <stowage/backend/virtual.hpp>
#include <stowage/cuda/driver_pages.hpp>
#include <stowage/stowage.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace {

using stowage::elastic_placement;
using test::fake_driver;
using test::message_of;
using test::elastic::operation;

/// In the place of a device_guard.
struct no_device {
  explicit no_device(int /*device*/) {}
  [[nodiscard]] static cudaError_t status() noexcept { return cudaSuccess; }
};
using pages = stowage::cuda::driver_pages<no_device>;
using backend_type = stowage::virtual_backend_over<test::counted_backend, pages>;

/// Handles of at most so many granules.
template <std::size_t LargestHandle> class rig {
public:
  rig() { fake_driver::reset(); }
  rig(const rig&) = delete;
  rig& operator=(const rig&) = delete;
  ~rig() { CHECK(fake_driver::violations == ""); }

  static backend_type make() {
    return backend_type(test::counted_backend{},
                        pages(0, LargestHandle * fake_driver::granule, fake_driver::calls()));
  }
  static stowage::host_stream stream() { return {}; }
  static std::size_t width() { return 4000; } // a field of 40 rows is two and a half granules large
  static bool fail(std::size_t k) { return test::call_counter::fail(k); }
  static std::size_t outstanding() { return fake_driver::outstanding(); }
};
using small_handles = rig<3>;
using large_handles = rig<std::size_t{1} << 20>;

struct params {
  stowage::tokens capacity{};
};
inline constexpr stowage::dim<&params::capacity> M{"M"};

/// Rows of one granule.
struct fields {
  stowage::buffer<std::uint8_t, stowage::shape<M, 65536>, stowage::zero::rows> one;
  stowage::buffer<std::uint8_t, stowage::shape<M, 65536>, stowage::zero::never> other;
};
using fields_plan = stowage::plan<fields, params>;
constexpr std::size_t granule = fake_driver::granule;

auto make_arena(backend_type& backend, std::size_t now) {
  return stowage::elastic_arena(fields_plan({stowage::tokens{now}}), fields_plan({stowage::tokens{16}}),
                                backend);
}

} // namespace

TEST_CASE("driver pages: thousands of random steps, against a model") {
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    for (const auto where : {elastic_placement::stable, elastic_placement::compact}) {
      test::elastic::walk<small_handles>(seed, 200, where);
      test::elastic::walk<large_handles>(seed + 100, 200, where);
    }
  }
}

TEST_CASE("driver pages: every call of the driver and of the backend fails once") {
  for (const auto where : {elastic_placement::stable, elastic_placement::compact}) {
    const auto calls = [&](operation what) {
      return test::elastic::fail_every_call<small_handles>(what, where) +
             test::elastic::fail_every_call<large_handles>(what, where);
    };
    // Each piece of memory: a handle, its mapping, its access, its release.
    CHECK(calls(operation::construct) >= 2 * 11);
    CHECK(calls(operation::sleep) >= 2 * 2);
    CHECK(calls(operation::sleep_keeping) >= 2 * 5);
    CHECK(calls(operation::wake) >= 2 * 10);
    CHECK(calls(operation::wake_kept) >= 2 * 6);
    CHECK(calls(operation::grow) >= 2 * 8);
    // A piece that is kept in part: addresses, a handle, its mapping, access, the copy, waiting, the mapping and access in
    // its place, and all that away again.
    CHECK(calls(operation::shrink) >= 2 * 10);
    CHECK(calls(operation::narrow) >= 2 * 10);
  }
}

TEST_CASE("driver pages: large handles are few, and part of one can be given back") {
  const large_handles rig;
  {
    auto backend = large_handles::make();
    auto arena = make_arena(backend, 16);
    CHECK(fake_driver::handles.size() == 1);
    CHECK(fake_driver::physical_bytes == 32 * granule);
    for (std::size_t row = 0; row < 16; ++row)
      std::memset(arena->other.data() + row * granule, static_cast<int>(row), granule);
    arena.resize({stowage::tokens{5}}); // two pieces of one handle stay
    CHECK(fake_driver::physical_bytes == 10 * granule);
    CHECK(fake_driver::handles.size() == 2);
    CHECK(arena->other.data()[5 * granule - 1] == 4);
    arena.sleep(stowage::keep_contents);
    CHECK(fake_driver::physical_bytes == 0);
    CHECK(fake_driver::handles.empty());
    arena.wake();
    CHECK(arena->other.data()[2 * granule] == 2);
  }
  CHECK(large_handles::outstanding() == 0);
}

TEST_CASE("driver pages: without memory for the copy, part of a handle stays mapped until there is some") {
  const large_handles rig;
  {
    auto backend = large_handles::make();
    auto arena = make_arena(backend, 16);
    std::memset(arena->other.data(), 9, 5 * granule);
    fake_driver::limit = 33 * granule; // one granule is free, ten are kept
    arena.resize({stowage::tokens{5}});
    CHECK(arena.mapped_bytes() == 32 * granule);
    CHECK(arena.bytes_awake() == 10 * granule);
    CHECK(arena->other.data()[5 * granule - 1] == 9);
    CHECK(arena->one.size() == 5 * granule);
    fake_driver::limit = 64 * granule;
    arena.resize({stowage::tokens{4}});
    CHECK(arena.mapped_bytes() == 8 * granule);
    CHECK(arena->other.data()[4 * granule - 1] == 9);
  }
  CHECK(large_handles::outstanding() == 0);
}

TEST_CASE(
    "driver pages: too little memory to wake up or to grow changes nothing, and says how much there is") {
  const small_handles rig;
  {
    auto backend = small_handles::make();
    auto arena = make_arena(backend, 8);
    std::memset(arena->other.data(), 3, 8 * granule);
    fake_driver::limit = 20 * granule;
    CHECK(message_of<stowage::out_of_memory>([&] { arena.resize({stowage::tokens{16}}); }) ==
          "stowage: out of memory: 196608 bytes wanted: cuMemCreate failed with CUDA_ERROR_OUT_OF_MEMORY, "
          "65536 bytes "
          "free of 1310720");
    CHECK(fake_driver::physical_bytes == 16 * granule);
    CHECK(arena.params().capacity.value == 8);
    CHECK(arena->other.data()[8 * granule - 1] == 3);
    arena.sleep(stowage::keep_contents);
    fake_driver::limit = 15 * granule;
    for (int attempt = 0; attempt < 2; ++attempt) {
      CHECK_THROWS_AS(arena.wake(), stowage::out_of_memory);
      CHECK(fake_driver::physical_bytes == 0);
      CHECK(arena.keeps_contents());
    }
    fake_driver::limit = 16 * granule;
    arena.wake();
    CHECK(arena->other.data()[8 * granule - 1] == 3);
    CHECK(message_of<stowage::out_of_memory>([&] {
            make_arena(backend, 1);
          }).find("0 bytes free of 1048576") != std::string::npos);
  }
  CHECK(small_handles::outstanding() == 0);
}

TEST_CASE("driver pages: a driver that is shutting down has given everything back itself") {
  CHECK(
      stowage::cuda::detail::status_of(fake_driver::calls(), CUDA_ERROR_DEINITIALIZED, "cuMemUnmap", 1).ok());
  const stowage::status failed =
      stowage::cuda::detail::status_of(fake_driver::calls(), CUDA_ERROR_OUT_OF_MEMORY, "cuMemUnmap", 7);
  CHECK(failed.error().operation == "cuMemUnmap");
  CHECK(failed.error().code == 2);
  CHECK(failed.error().bytes == 7);
  CHECK(failed.error().reason == "CUDA_ERROR_OUT_OF_MEMORY");
}
