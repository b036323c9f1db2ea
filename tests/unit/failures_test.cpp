// The failure suite for the backends of the host, and failures that no failing_backend makes up.

#include "failure_suite.hpp"

#include <stowage/backend/pmr.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <memory_resource>
#include <new>
#include <span>
#include <stdexcept>
#include <string>

namespace test {

/// Every backend of the host, chosen at run time, so that the suite is compiled for one.
class every_host_backend {
public:
  using backend_type = stowage::any_backend;
  static constexpr std::size_t variants = 4;

  explicit every_host_backend(std::size_t variant) : variant_(variant) {}
  every_host_backend(const every_host_backend&) = delete;
  every_host_backend& operator=(const every_host_backend&) = delete;
  ~every_host_backend() { CHECK(recording_.lost() + recording_pmr_.lost() == 0); }

  [[nodiscard]] backend_type make() {
    switch (variant_) {
      case 0: return backend_type(host_);
      case 1: return backend_type(recording_);
      case 2: return backend_type(pmr_);
      default: return backend_type(recording_pmr_);
    }
  }
  [[nodiscard]] stowage::any_stream stream() { return stowage::host_stream{}; }

private:
  std::size_t variant_;
  std::pmr::unsynchronized_pool_resource resource_;
  stowage::host_backend host_;
  stowage::recording_backend<> recording_;
  stowage::pmr_backend pmr_{resource_};
  stowage::recording_backend<stowage::pmr_backend> recording_pmr_{pmr_};
};

/// Memory that runs out at one allocation, and that throws where one block is given back.
class failing_resource : public std::pmr::memory_resource {
public:
  std::size_t failing_allocation = 0;
  std::size_t failing_deallocation = 0;
  std::size_t outstanding = 0;

private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (++allocations_ == failing_allocation) throw std::bad_alloc();
    void* const address = std::pmr::new_delete_resource()->allocate(bytes, alignment);
    ++outstanding;
    return address;
  }
  void do_deallocate(void* address, std::size_t bytes, std::size_t alignment) override {
    std::pmr::new_delete_resource()->deallocate(address, bytes, alignment);
    --outstanding;
    if (++deallocations_ == failing_deallocation) throw std::runtime_error("made to fail");
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::size_t allocations_ = 0;
  std::size_t deallocations_ = 0;
};

namespace failures {
TEST_CASE_TEMPLATE_INVOKE(failure_suite, rig<host_source>, rig_behind_any<every_host_backend>);
} // namespace failures

} // namespace test

namespace {

using stowage::placement;
using test::failures::apart;
using test::failures::make_plan;

TEST_CASE("failures: a memory resource runs out at every allocation, and nothing is left") {
  for (std::size_t k = 1; k <= apart.size(); ++k) {
    CAPTURE(k);
    test::failing_resource resource;
    resource.failing_allocation = k;
    stowage::pmr_backend backend(resource);
    using options = stowage::arena_options<stowage::host_stream>;
    CHECK_THROWS_AS(stowage::arena(make_plan(), backend, options{placement::separate, {}}), std::bad_alloc);
    CHECK(resource.outstanding == 0);
    const stowage::arena arena(make_plan(), backend, options{placement::separate, {}});
    CHECK(resource.outstanding == apart.size());
  }
}

TEST_CASE("failures: a memory resource throws when memory is given back: a status that names the field") {
  for (std::size_t k = 1; k <= apart.size(); ++k) {
    CAPTURE(k);
    test::failing_resource resource;
    resource.failing_deallocation = k;
    stowage::pmr_backend backend(resource);
    stowage::arena arena(make_plan(), backend,
                         stowage::arena_options<stowage::host_stream>{placement::separate, {}});
    const stowage::status status = arena.release();
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().subject == apart[apart.size() - k].name);
    CHECK(status.error().bytes == apart[apart.size() - k].bytes);
    CHECK(status.error().reason == "the memory resource threw");
    CHECK(resource.outstanding == 0);
  }
}

struct too_large {
  stowage::buffer<std::uint8_t, stowage::shape<stowage::c<std::size_t{1} << 63>>, stowage::zero::never> half;
  stowage::buffer<std::uint8_t, stowage::shape<8>, stowage::zero::never> small;
};

TEST_CASE("failures: more than the host has is out_of_memory with the bytes, and nothing is left") {
  test::ledger books;
  test::audited_backend<stowage::host_backend> backend({}, books);
  const auto plan = stowage::make_plan<too_large>(test::failures::params{});
  for (const placement where : {placement::slab, placement::separate}) {
    try {
      const stowage::arena arena(plan, backend, stowage::arena_options<stowage::host_stream>{where, {}});
      FAIL("8 EiB were allocated");
    } catch (const stowage::out_of_memory& error) {
      // small lies at the next multiple of 256.
      CHECK(error.bytes() == 9223372036854775808U + (where == placement::slab ? 8U : 0U));
      CHECK(std::string(error.what()).find(std::to_string(error.bytes())) != std::string::npos);
    }
    CHECK(books.blocks() == 0);
    CHECK(books.complaints() == "");
  }
}

/// Host memory whose stream can be captured, whose driver may not be able to tell, and whose calls may throw what is no
/// std::exception.
struct odd_backend : stowage::host_backend {
  bool capturing = false;
  bool cannot_tell = false;
  bool throws_a_number = false;

  [[nodiscard]] bool is_capturing(stowage::host_stream /*stream*/) {
    if (cannot_tell) throw stowage::backend_error("the driver is gone", 4);
    return capturing;
  }
  void zero(stowage::host_stream stream, std::span<const stowage::segment> segments) {
    if (throws_a_number) throw 42;
    host_backend::zero(stream, segments);
  }
  void synchronize(stowage::host_stream /*stream*/) {
    if (throws_a_number) throw 43;
  }
};

/// Keeps the books of an odd_backend.
struct audited_odd_backend : odd_backend {
  test::ledger* books;
  explicit audited_odd_backend(test::ledger& given) : books(&given) {}
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    void* const address = host_backend::allocate(bytes, alignment);
    books->allocated(address, bytes, alignment);
    return address;
  }
  stowage::status deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
    books->given_back(address, bytes, alignment);
    return host_backend::deallocate(address, bytes, alignment);
  }
};

TEST_CASE(
    "failures: a stream that captures, and one that cannot tell: refused before anything is allocated") {
  test::ledger books;
  audited_odd_backend backend(books);
  const auto plan = make_plan(true);
  backend.capturing = true;
  CHECK_THROWS_WITH_AS(
      stowage::arena(plan, backend),
      "stowage: making an arena is not possible while the stream captures; do it before the capture "
      "begins",
      stowage::usage_error);
  backend.capturing = false;
  backend.cannot_tell = true;
  CHECK_THROWS_WITH_AS(stowage::arena(plan, backend), "the driver is gone", stowage::backend_error);
  CHECK(books.blocks() == 0);

  backend.cannot_tell = false;
  stowage::arena arena(plan, backend);
  const auto ignore = [](const auto&) {};
  for (const bool capturing : {true, false}) {
    backend.capturing = capturing;
    backend.cannot_tell = !capturing;
    CHECK_THROWS(stowage::checksum<test::failures::listed>(arena, {}, ignore));
    CHECK_THROWS(static_cast<void>(stowage::scan_guards(arena, {}, ignore)));
    CHECK_NOTHROW(arena.zero_rows({}, stowage::tokens{3})); // a pass can be captured
  }
  backend.cannot_tell = false;
  CHECK(stowage::scan_guards(arena, {}, ignore) == 0);
  CHECK(arena.release().ok());
  CHECK(books.blocks() == 0);
  CHECK(books.complaints() == "");
}

TEST_CASE(
    "failures: a backend throws what is no std::exception: nothing is left, and an arena stays usable") {
  test::ledger books;
  audited_odd_backend backend(books);
  for (const placement where : {placement::slab, placement::separate}) {
    const stowage::arena_options<stowage::host_stream> options{where, {}};
    backend.throws_a_number = true;
    CHECK_THROWS_AS(stowage::arena(make_plan(), backend, options), int);
    CHECK(books.blocks() == 0);
    backend.throws_a_number = false;
    stowage::arena arena(make_plan(), backend, options);
    backend.throws_a_number = true;
    CHECK_THROWS_AS(arena.zero_all(), int);
    CHECK_THROWS_AS(stowage::checksum<test::failures::listed>(arena, {}, [](const auto&) {}), int);
    backend.throws_a_number = false;
    CHECK_NOTHROW(arena.zero_all());
    CHECK(arena.release().ok());
    CHECK(books.blocks() == 0);
    CHECK(books.complaints() == "");
  }
}

} // namespace
