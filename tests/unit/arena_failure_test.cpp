// Every call that an arena makes fails once: nothing leaks, and what can go on goes on.

#include <stowage/arena.hpp>
#include <stowage/backend/failing.hpp>
#include <stowage/backend/recording.hpp>
#include <stowage/traits/tag.hpp>
#include <stowage/traits/when.hpp>
#include <stowage/traits/zero_at_construction.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace test {

/// Hands out pieces of one block, one right behind the other.
struct bump_backend {
  using stream_type = stowage::host_stream;
  alignas(256) std::byte memory[4096];
  std::size_t next = 0;
  std::vector<stowage::segment> allocated;
  std::vector<stowage::segment> cleared;
  void* allocate(std::size_t bytes, std::size_t) {
    allocated.push_back({memory + next, bytes});
    next += bytes;
    return allocated.back().address;
  }
  stowage::status deallocate(void*, std::size_t, std::size_t) noexcept { return {}; }
  void zero(stream_type, std::span<const stowage::segment> pass) { cleared.assign(pass.begin(), pass.end()); }
  void copy_to_host(stream_type, void*, const void*, std::size_t) {}
  void copy_from_host(stream_type, void*, const void*, std::size_t) {}
  void synchronize(stream_type) {}
};

/// Refuses to give memory back for as long as it is told, as a backend does whose stream captures.
struct refusing_backend : bump_backend {
  bool refuses = false;
  std::size_t given_back = 0;
  stowage::status deallocate(void*, std::size_t, std::size_t) noexcept {
    if (refuses) {
      stowage::failure refusal{"deallocate", {}, 0, "not now", 0};
      refusal.refused = true;
      return refusal;
    }
    ++given_back;
    return {};
  }
};

} // namespace test

namespace {

using stowage::buffer;
using stowage::operation;
using stowage::placement;
using stowage::shape;
using stowage::tokens;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  bool off = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
struct listed;

struct group {
  buffer<float, shape<M>, zero::never> keys;
  buffer<float, shape<M, 2>, zero::full> values;
};
struct fields {
  buffer<float, shape<M, 4>, zero::rows, stowage::tag<listed>> states;
  buffer<float, shape<M>, zero::rows, stowage::when<&params::off>> absent;
  group heads;
  buffer<float, shape<8>, zero::never, stowage::zero_at_construction> weight;
};
constexpr auto plan = stowage::make_plan<fields>(params{tokens{4}});
constexpr std::size_t allocations_apart = 4;

using failing = stowage::failing_backend<stowage::recording_backend<>>;

TEST_CASE("arena: construction fails at every call that it makes, and leaves nothing behind") {
  for (const placement where : {placement::slab, placement::separate}) {
    for (const operation what : {operation::allocate, operation::zero, operation::synchronize}) {
      const std::size_t calls = what != operation::allocate ? 1
                                : where == placement::slab  ? 1
                                                            : allocations_apart;
      for (std::size_t k = 1; k <= calls; ++k) {
        CAPTURE(k);
        failing backend;
        backend.fail(what, k);
        if (what == operation::allocate) {
          CHECK_THROWS_AS(stowage::arena(plan, backend, {.where = where}), stowage::out_of_memory);
        } else {
          CHECK_THROWS_AS(stowage::arena(plan, backend, {.where = where}), stowage::backend_error);
        }
        CHECK(backend.count(what) == k);
        CHECK(backend.outstanding() == 0);
        // The same backend again, without a failure.
        const stowage::arena arena(plan, backend, {.where = where});
        CHECK(arena->states.data() != nullptr);
      }
      // One call later nothing is left to fail.
      failing backend;
      backend.fail(what, calls + 1);
      CHECK_NOTHROW(stowage::arena(plan, backend, {.where = where}));
      CHECK(backend.outstanding() == 0);
    }
  }
}

TEST_CASE("arena: construction fails and giving back fails too: the first error leaves") {
  failing backend;
  backend.fail(operation::synchronize, 1);
  backend.fail(operation::deallocate, 1);
  CHECK_THROWS_WITH_AS((stowage::arena(plan, backend, {.where = placement::separate})),
                       "stowage: synchronize was made to fail by failing_backend", stowage::backend_error);
  CHECK(backend.outstanding() == 0);
}

TEST_CASE("arena: a pass that fails throws, and the arena stays usable") {
  for (const placement where : {placement::slab, placement::separate}) {
    failing backend;
    stowage::arena arena(plan, backend, {.where = where});
    const auto fails_once = [&](const auto& pass) {
      backend.fail(operation::zero, 1);
      CHECK_THROWS_AS(pass(), stowage::backend_error);
      CHECK_FALSE(arena.released());
      CHECK(arena->states.data() != nullptr);
      CHECK_NOTHROW(pass());
    };
    fails_once([&] { arena.zero_all(); });
    fails_once([&] { arena.zero_rows({}, tokens{2}); });
    fails_once([&] { arena.zero_rows({}, tokens{1}, tokens{3}); });
    fails_once([&] { arena.zero_tagged<listed>(); });
    CHECK(arena.release().ok());
    CHECK(backend.outstanding() == 0);
  }
}

TEST_CASE("arena: release goes on after a failure and tells the first, with the field's name") {
  // Given back in reverse order of declaration.
  const char* const names[] = {"weight", "heads.values", "heads.keys", "states"};
  const std::size_t bytes[] = {8 * 4, 4 * 2 * 4, 4 * 4, 4 * 4 * 4};
  for (std::size_t k = 1; k <= allocations_apart; ++k) {
    failing backend;
    stowage::arena arena(plan, backend, {.where = placement::separate});
    backend.fail(operation::deallocate, k);
    const stowage::status status = arena.release();
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().subject == names[k - 1]);
    CHECK(status.error().operation == "deallocate");
    CHECK(status.error().code == 719);
    CHECK(status.error().bytes == bytes[k - 1]);
    CHECK(backend.count(operation::deallocate) == allocations_apart);
    CHECK(backend.outstanding() == 0);
    CHECK(arena.released());
    CHECK(arena->states.data() == nullptr);
    CHECK(arena.release().ok()); // idempotent: the failure was told
  }

  failing backend;
  stowage::arena arena(plan, backend);
  backend.fail(operation::deallocate, 1);
  CHECK(arena.release().message() == "deallocate of 'slab' (" + std::to_string(plan.slab_bytes()) +
                                         " bytes) failed with code 719: made to fail");
  CHECK(backend.outstanding() == 0);
}

TEST_CASE("arena: a release that is refused changes nothing, and is made up for later") {
  for (const placement where : {placement::slab, placement::separate}) {
    test::refusing_backend memory;
    stowage::arena arena(plan, memory, {.where = where});
    const auto generation = arena.generation();
    memory.refuses = true;
    for (int attempt = 0; attempt < 2; ++attempt) {
      const stowage::status refused = arena.release();
      CHECK(!refused.ok());
      CHECK(refused.error().refused);
      CHECK(!arena.released());
      CHECK(arena.generation() == generation);
      CHECK(arena->states.bytes() == 64); // 4 rows of 4 floats
      CHECK(arena->states.data() != nullptr);
    }
    CHECK_NOTHROW(arena.zero_all());
    memory.refuses = false;
    CHECK(arena.release().ok());
    CHECK(arena.released());
    CHECK(memory.given_back == (where == placement::slab ? 1 : allocations_apart));
    CHECK(arena.release().ok());
    CHECK(memory.given_back == (where == placement::slab ? 1 : allocations_apart));
  }
}

TEST_CASE("arena: the destructor and a move assignment swallow a failure to give back") {
  failing backend;
  {
    const stowage::arena arena(plan, backend);
    backend.fail(operation::deallocate, 1);
  }
  CHECK(backend.outstanding() == 0);
  {
    stowage::arena arena(plan, backend);
    backend.fail(operation::deallocate, 1);
    arena = stowage::arena(plan, backend);
    CHECK(backend.outstanding() == 1);
    CHECK(arena->states.data() != nullptr);
  }
  CHECK(backend.outstanding() == 0);
}

struct adjacent {
  buffer<float, shape<M, 64>, zero::rows> first;
  buffer<float, shape<M, 64>, zero::rows> second;
};

// A device call must not span two allocations, even where they touch.
TEST_CASE("arena: no segment spans two allocations") {
  test::bump_backend backend;
  stowage::arena arena(stowage::make_plan<adjacent>(params{tokens{4}}), backend,
                       {.where = placement::separate});
  arena.zero_all();
  REQUIRE(backend.allocated.size() == 2);
  CHECK(backend.cleared == backend.allocated);
}

} // namespace
