// Elastic arenas in host memory.

#include "../support/messages.hpp"
#include "elastic_suite.hpp"
#include "failing_calls.hpp"

#include <stowage/backend/virtual_host.hpp>
#include <stowage/checksum.hpp>
#include <stowage/guards.hpp>
#include <stowage/stowage.hpp>

#include <doctest/doctest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using test::contains;
using test::message_of;
/// The system's calls, counted.
struct counted_calls {
  static inline std::size_t reserved = 0;

  static bool fails() {
    if (!test::call_counter::fails()) return false;
    errno = ENOMEM;
    return true;
  }
  static void* map(void* where, std::size_t bytes, int access, int flags, int file, off_t offset) {
    if (fails()) return MAP_FAILED;
    void* const address = ::mmap(where, bytes, access, flags, file, offset);
    if (where == nullptr && address != MAP_FAILED) reserved += bytes;
    return address;
  }
  static int unmap(void* address, std::size_t bytes) {
    if (fails()) return -1;
    reserved -= bytes;
    return ::munmap(address, bytes);
  }
  static int protect(void* address, std::size_t bytes, int access) {
    return fails() ? -1 : ::mprotect(address, bytes, access);
  }
  static stowage::virtual_host_options options() { return {0, {map, unmap, protect}}; }
};

/// Host memory, where every call of the system and of the backend can fail.
class host_rig {
public:
  host_rig() {
    fail(0);
    counted_calls::reserved = 0;
  }
  static auto make() {
    return stowage::virtual_backend_over<test::counted_backend, stowage::host_pages>(
        test::counted_backend{}, stowage::host_pages(counted_calls::options()));
  }
  static stowage::host_stream stream() { return {}; }
  static std::size_t width() { return 1000; }
  static bool fail(std::size_t k) { return test::call_counter::fail(k); }
  static std::size_t outstanding() { return counted_calls::reserved; }
};

} // namespace

namespace {

using stowage::buffer;
using stowage::elastic_placement;
using stowage::shape;
using stowage::tokens;
namespace zero = stowage::zero;

constexpr std::size_t granule = 65536; // on systems with pages of 4, 16 and 64 KiB

struct params {
  tokens capacity{};
  bool extra = false;
};
inline constexpr stowage::dim<&params::capacity> M{"M"};

struct listed;

/// At 1000 tokens: states 64000 bytes, keys 2 * 200000, ids 4000, maybe 64000, flags 1000.
struct fields {
  buffer<std::uint8_t, shape<M, 64>, zero::rows> states;
  buffer<std::uint8_t, shape<M, 200>, zero::rows, stowage::copies<2>> keys;
  buffer<float, shape<M>, zero::full, stowage::tag<listed>> ids;
  buffer<std::uint8_t, shape<M, 64>, zero::full, stowage::when<&params::extra>> maybe;
  buffer<std::uint8_t, shape<M>, zero::never, stowage::zero_at_construction> flags;
};
using fields_plan = stowage::plan<fields, params>;

stowage::virtual_host_backend host() {
  return stowage::virtual_host_backend({.granularity = granule, .calls = {}});
}

auto make_arena(std::size_t tokens_now, elastic_placement where, bool extra = true) {
  return stowage::elastic_arena(fields_plan({tokens{tokens_now}, extra}), fields_plan({tokens{1000}, true}),
                                host(), {.where = where, .stream = {}});
}

/// Bytes of the pages of a range that are in memory, as the system says.
std::size_t resident(const void* address, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((bytes + page - 1) / page);
  REQUIRE(::mincore(const_cast<void*>(address), bytes, pages.data()) == 0);
  std::size_t count = 0;
  for (const unsigned char each : pages) count += each & 1U;
  return count * page;
}

/// The segments of passes as offsets in the slab.
std::vector<std::pair<std::size_t, std::size_t>> offsets(std::span<const stowage::segment> segments,
                                                         const std::byte* slab) {
  std::vector<std::pair<std::size_t, std::size_t>> result;
  for (const stowage::segment& each : segments)
    result.emplace_back(static_cast<std::size_t>(each.address - slab), each.bytes);
  return result;
}

} // namespace

TEST_CASE("elastic: fields lie at their places in the reservation, and memory only where they reach") {
  // Places at 1000 tokens: states 0, keys 64000 and 264192 (their stride is 200000 rounded up to 256, 200192),
  // ids 464384, maybe 468480, flags 532480; each behind the other at a multiple of 256.
  auto arena = make_arena(10, elastic_placement::stable);
  CHECK(arena.plan().offset("states") == 0);
  CHECK(arena.plan().offset("keys") == 64000);
  CHECK(arena.plan().layout("keys").stride == 200192);
  CHECK(arena.plan().offset("ids") == 464384);
  CHECK(arena.plan().offset("maybe") == 468480);
  CHECK(arena.plan().offset("flags") == 532480);
  CHECK(arena.room().slab_bytes() == 533480);
  CHECK(arena->states.data() == reinterpret_cast<std::uint8_t*>(arena.slab()));
  CHECK(arena->keys.copy(1).data() == reinterpret_cast<std::uint8_t*>(arena.slab()) + 64000 + 200192);
  CHECK(arena.plan().bytes("keys") == 2000);
  // Granules: 0 has states and the start of keys (to 66000: 0 and 1); the second copy is in granule 4, ids and maybe in
  // granule 7, flags in granule 8.
  CHECK(arena.mapped_bytes() == 5 * granule);
  CHECK(arena.bytes_awake() == 5 * granule);
  CHECK(arena.bytes_awake(fields_plan({tokens{1000}, true})) == 9 * granule);
  arena.resize({tokens{1000}, true});
  CHECK(arena.mapped_bytes() == 9 * granule);
  arena.resize({tokens{10}, false});
  CHECK(arena.mapped_bytes() == 5 * granule);
  CHECK(arena->maybe.data() == nullptr);

  // 10 tokens: 640, 2 * 2000 (stride 2048), 40, 640, 10.
  auto compact = make_arena(10, elastic_placement::compact);
  CHECK(compact.plan().offset("keys") == 768);
  CHECK(compact.plan().slab_bytes() == 768 + 4096 + 256 + 768 + 10);
  CHECK(compact.mapped_bytes() == granule);
}

TEST_CASE("elastic: passes merge only what nothing can lie between") {
  auto full = make_arena(1000, elastic_placement::stable);
  CHECK(full.plan().is_contiguous());
  CHECK(full.plan().hash() == fields_plan({tokens{1000}, true}).hash());
  // zero_rows of all: states and a copy of keys, the other copy with ids and maybe; flags stay.
  using list = std::vector<std::pair<std::size_t, std::size_t>>;
#if !STOWAGE_ADDRESS_SANITIZER // which is told of no padding
  CHECK(offsets(full.row_segments(tokens{1000}).view(), full.slab()) ==
        list{{0, 64000 + 200000}, {264192, 532480 - 264192}});
#endif
  auto small = make_arena(999, elastic_placement::stable, false);
  CHECK_FALSE(small.plan().is_contiguous());
  CHECK(offsets(small.row_segments(tokens{2000}).view(), small.slab()) ==
        list{{0, 63936}, {64000, 199800}, {264192, 199800}, {464384, 3996}});
}

TEST_CASE("elastic: sleep gives the memory back, as the system sees it") {
  for (const auto where : {elastic_placement::stable, elastic_placement::compact}) {
    auto arena = make_arena(1000, where);
    std::byte* const slab = arena.slab();
    const std::size_t reserved = 9 * granule;
    for (const bool keeping : {false, true}) {
      std::memset(arena->keys.copy(1).data(), 7, arena->keys.bytes());
      CHECK(resident(slab, reserved) >= 200000);
      if (keeping) {
        arena.sleep(stowage::keep_contents);
      } else {
        arena.sleep();
      }
      CHECK(resident(slab, reserved) == 0);
      CHECK(arena.mapped_bytes() == 0);
      CHECK(arena.saved_bytes() == (keeping ? 9 * granule : 0));
      CHECK(arena.slab() == slab);
      arena.wake();
      CHECK(arena->keys.copy(1).data()[100] == (keeping ? 7 : 0));
    }
    CHECK(arena.forget_contents().ok());
    CHECK(arena.saved_bytes() == 0);
  }
}

TEST_CASE("elastic: forgotten contents are as in a new arena") {
  auto arena = make_arena(500, elastic_placement::stable);
  std::memset(arena->flags.data(), 9, 500);
  arena.sleep(stowage::keep_contents);
  CHECK(arena.keeps_contents());
  CHECK(arena.forget_contents().ok());
  CHECK_FALSE(arena.keeps_contents());
  arena.resize({tokens{600}, true}); // possible again
  arena.wake();
  CHECK(arena->flags.size() == 600);
  CHECK(arena->flags.data()[499] == 0);
}

TEST_CASE("elastic: the generation stays while no field moves or goes") {
  auto arena = make_arena(10, elastic_placement::stable);
  const std::uint64_t generation = arena.generation();
  arena.resize({tokens{1000}, true});
  arena.resize({tokens{3}, true});
  arena.sleep();
  arena.resize({tokens{30}, true});
  CHECK_THROWS_AS(arena.require_generation(generation), stowage::usage_error);
  arena.wake();
  CHECK_NOTHROW(arena.require_generation(generation));
  arena.resize({tokens{30}, false}); // maybe goes
  CHECK(arena.generation() != generation);
  const std::uint64_t without = arena.generation();
  arena.resize({tokens{30}, true}); // and comes
  CHECK(arena.generation() == without);

  auto compact = make_arena(10, elastic_placement::compact);
  const std::uint64_t first = compact.generation();
  compact.resize({tokens{10}, true});
  CHECK(compact.generation() == first);
  compact.resize({tokens{11}, true});
  CHECK(compact.generation() != first);
}

TEST_CASE("elastic: what is beyond the reservation is refused with the numbers, and nothing changes") {
  auto arena = make_arena(10, elastic_placement::stable);
  CHECK(message_of<stowage::bounds_error>([&] { arena.resize({tokens{1001}, true}); }) ==
        "stowage: field 'states' needs 64064 bytes, its place in the reservation has 64000; reserve for the "
        "largest "
        "plan");
  CHECK(message_of<stowage::bounds_error>([&] {
          arena.resize(fields_plan({tokens{10}, true}).with_guards(64));
        }) == "stowage: guard zones of 64 bytes wanted, the reservation has room for 0; reserve for a plan "
              "with guards");
  CHECK(arena.plan().bytes("states") == 640);
  CHECK(arena.mapped_bytes() == 5 * granule);
  CHECK(contains(message_of<stowage::bounds_error>([] { make_arena(1001, elastic_placement::stable); }),
                 "'states'"));
  auto compact = make_arena(10, elastic_placement::compact);
  CHECK(message_of<stowage::bounds_error>([&] { compact.resize({tokens{1100}, true}); }) ==
        "stowage: a slab of 586828 bytes wanted, 533480 are reserved; reserve for the largest plan");
  // Without maybe there is room for more of the others.
  CHECK_NOTHROW(compact.resize({tokens{1100}, false}));
}

TEST_CASE("elastic: a reservation for plans of which none is the largest") {
  const stowage::reservation<fields_plan> room =
      stowage::reservation(fields_plan({tokens{1000}, false})).with(fields_plan({tokens{10}, true}));
  stowage::elastic_arena arena(fields_plan({tokens{1000}, false}), room, host());
  CHECK(arena.room().bytes(fields_plan::index_of("maybe")) == 640);
  arena.resize({tokens{10}, true});
  CHECK_THROWS_AS(arena.resize({tokens{11}, true}), stowage::bounds_error);
}

TEST_CASE("elastic: require takes a plan that any arena could be made from") {
  auto arena = make_arena(10, elastic_placement::stable);
  CHECK_NOTHROW(arena.require(fields_plan({tokens{10}, true})));
  CHECK_NOTHROW(arena.require(arena.plan()));
  CHECK_THROWS_AS(arena.require(fields_plan({tokens{11}, true})), stowage::usage_error);
}

TEST_CASE("elastic: guard zones lie behind what fields have now") {
  const auto guarded = [](std::size_t count) { return fields_plan({tokens{count}, true}).with_guards(64); };
  stowage::elastic_arena arena(guarded(10), guarded(1000), host());
  std::vector<std::string> found;
  const auto scan = [&] {
    found.clear();
    stowage::scan_guards(arena, {}, [&](const stowage::guard_damage& one) { found.push_back(format(one)); });
  };
  scan();
  CHECK(found.empty());
  arena.zero_all();
  arena.zero_rows({}, tokens{10});
  scan();
  CHECK(found.empty());
  const auto damage = [&](std::uint8_t* where) {
    const auto guarded_byte = std::uint8_t{1};
    arena.backend().copy_from_host({}, where, &guarded_byte, 1);
  };
#if !STOWAGE_ADDRESS_SANITIZER
  damage(arena->states.data() + 640);
  damage(arena->states.data() - 1);
  damage(arena->keys.copy(0).data() + 2003);
  scan();
  CHECK(found ==
        std::vector<std::string>{
            "guard zone at the start of the slab (before 'states'): bytes 63 to 63 of 64 overwritten",
            "guard zone behind 'states' (before 'keys'): bytes 0 to 0 of 64 overwritten",
            "guard zone behind 'keys' (before 'keys'): bytes 3 to 3 of 64 overwritten"});
  arena.resize({tokens{20}, true}); // fills them anew
  scan();
  CHECK(found.empty());
  damage(arena->states.data() + 1280);
  arena.sleep(stowage::keep_contents);
  arena.wake();
  scan();
  CHECK(found.size() == 1);
#else
  static_cast<void>(damage);
#endif
  arena.sleep();
  CHECK(contains(message_of<stowage::usage_error>(scan), "asleep"));
  arena.wake();
  scan();
  CHECK(found.empty());
}

TEST_CASE("elastic: checksums are refused while it sleeps") {
  auto arena = make_arena(10, elastic_placement::stable);
  arena.sleep();
  CHECK(contains(message_of<stowage::usage_error>(
                     [&] { stowage::checksum<listed>(arena, {}, [](const auto&) { FAIL("a checksum"); }); }),
                 "asleep; wake() it first"));
}

TEST_CASE("elastic: too little memory to wake up leaves it asleep, and it can be tried again") {
  auto backend = host_rig::make();
  const host_rig rig;
  stowage::elastic_arena arena(fields_plan({tokens{1000}, true}), fields_plan({tokens{1000}, true}), backend);
  std::memset(arena->states.data(), 5, 64000);
  arena.sleep(stowage::keep_contents);
  for (int attempt = 0; attempt < 3; ++attempt) {
    host_rig::fail(1);
    CHECK(contains(message_of<stowage::out_of_memory>([&] { arena.wake(); }), "mprotect failed with errno"));
    CHECK(host_rig::fail(0));
    CHECK(arena.asleep());
    CHECK(arena.keeps_contents());
    CHECK(arena.mapped_bytes() == 0);
  }
  arena.wake();
  CHECK(arena->states.data()[63999] == 5);
}

TEST_CASE("elastic: release while asleep, moves, and what is left of an arena that was moved from") {
  const host_rig rig;
  {
    auto arena = stowage::elastic_arena(fields_plan({tokens{10}, true}), fields_plan({tokens{1000}, true}),
                                        host_rig::make());
    arena.sleep(stowage::keep_contents);
    auto moved = std::move(arena);
    CHECK(arena.released()); // NOLINT(bugprone-use-after-move)
    CHECK_FALSE(arena.asleep());
    CHECK(arena.mapped_bytes() == 0);
    CHECK(arena.bytes_awake() == 0);
    CHECK_FALSE(arena.keeps_contents());
    CHECK(moved.asleep());
    CHECK(moved.keeps_contents());
    auto other = stowage::elastic_arena(fields_plan({tokens{10}, true}), fields_plan({tokens{1000}, true}),
                                        host_rig::make());
    other = std::move(moved);
    other.wake();
    other.sleep();
    CHECK(other.release().ok());
    CHECK(other.released());
    CHECK_FALSE(other.asleep());
    CHECK(other.forget_contents().ok());
    CHECK(other.mapped_bytes() == 0);
    CHECK(contains(message_of<stowage::usage_error>([&] { other.zero_all(); }), "released"));

    // Taken over by an arena that does not know of sleep.
    auto last = stowage::elastic_arena(fields_plan({tokens{10}, true}), fields_plan({tokens{1000}, true}),
                                       host_rig::make());
    last.sleep(stowage::keep_contents);
    stowage::arena<fields, params, decltype(host_rig::make())>& known = last;
    stowage::arena plain(std::move(known));
    CHECK(contains(message_of<stowage::usage_error>([&] { plain.zero_all(); }), "asleep"));
  }
  CHECK(host_rig::outstanding() == 0);
}

TEST_CASE("elastic: an ordinary arena on a virtual backend") {
  const host_rig rig;
  {
    auto backend = host_rig::make();
    stowage::arena arena(fields_plan({tokens{100}, true}), backend);
    arena.zero_all();
    std::memset(arena->states.data(), 1, 6400);
    CHECK(arena.release().ok());
    for (std::size_t k = 1; k <= 2; ++k) { // the reservation, the memory
      host_rig::fail(k);
      CHECK_THROWS_AS(stowage::arena(fields_plan({tokens{100}, true}), backend), stowage::out_of_memory);
      CHECK(host_rig::fail(0));
    }
    CHECK_FALSE(backend.deallocate(&backend, 1, 1).ok());
    CHECK_THROWS_AS(static_cast<void>(backend.mapped_bytes(&backend)), stowage::usage_error);
  }
  CHECK(host_rig::outstanding() == 0);
}

TEST_CASE("elastic: backends refuse ranges that cannot be mapped") {
  auto backend = host();
  void* const address = backend.reserve(10 * granule, 4 * granule);
  CHECK(reinterpret_cast<std::uintptr_t>(address) % (4 * granule) == 0);
  using ranges = std::vector<stowage::mapped_range>;
  for (const ranges& wrong :
       {ranges{{0, 0}}, ranges{{1, granule}}, ranges{{0, granule + 1}}, ranges{{0, 11 * granule}},
        ranges{{10 * granule, granule}}, ranges{{granule, granule}, {0, granule}},
        ranges{{0, granule}, {granule, granule}}})
    CHECK_THROWS_AS(backend.map({}, address, wrong), stowage::usage_error);
  CHECK(backend.mapped_bytes(address) == 0);
  backend.map({}, address, ranges{{0, 4 * granule}, {6 * granule, granule}});
  CHECK(backend.mapped_bytes(address) == 5 * granule);
  CHECK(backend.maps(address, ranges{{granule, granule}, {6 * granule, granule}}));
  CHECK_FALSE(backend.maps(address, ranges{{3 * granule, 2 * granule}}));
  CHECK(backend.deallocate(address, 0, 0).ok());
  CHECK(contains(message_of<stowage::usage_error>(
                     [] { stowage::virtual_host_backend({.granularity = 1000, .calls = {}}); }),
                 "1000"));
  CHECK_THROWS_AS(static_cast<void>(backend.reserve(static_cast<std::size_t>(-1), 1)),
                  stowage::out_of_memory);
  CHECK_THROWS_AS(static_cast<void>(backend.reserve(std::size_t{1} << 60, 1)), stowage::out_of_memory);
}

TEST_CASE("elastic: a plan without bytes takes none") {
  struct nothing {
    buffer<float, shape<M>, zero::rows> rows;
  };
  const auto none = stowage::make_plan<nothing>(params{tokens{0}, false});
  stowage::elastic_arena arena(none, none, host());
  CHECK(arena.slab() == nullptr);
  arena.zero_all();
  arena.sleep(stowage::keep_contents);
  CHECK(arena.asleep());
  CHECK_THROWS_AS(arena.zero_all(), stowage::usage_error);
  arena.wake();
  arena.zero_all();
  CHECK(arena.mapped_bytes() == 0);
  stowage::elastic_arena later(none, stowage::make_plan<nothing>(params{tokens{9}, false}), host());
  CHECK(later.mapped_bytes() == 0);
  later.resize({tokens{9}, false});
  CHECK(later.mapped_bytes() == granule);
}

TEST_CASE("elastic: thousands of random steps on the host, against a model") {
  for (std::uint32_t seed = 1; seed <= 10; ++seed) {
    test::elastic::walk<host_rig>(seed, 300, elastic_placement::stable);
    test::elastic::walk<host_rig>(seed, 300, elastic_placement::compact);
  }
}

TEST_CASE("elastic: every call of the system and of the backend fails once") {
  using test::elastic::fail_every_call;
  using test::elastic::operation;
  for (const auto where : {elastic_placement::stable, elastic_placement::compact}) {
    const auto calls = [&](operation what) { return fail_every_call<host_rig>(what, where); };
    // The reservation, memory, clearing counters, two fills and their waits, the wait for the clearing.
    CHECK(calls(operation::construct) >= 8);
    CHECK(calls(operation::sleep) >= 2);         // waiting, giving back
    CHECK(calls(operation::sleep_keeping) >= 5); // host memory, a copy, waiting for it
    CHECK(calls(operation::wake) >= 7);          // as construction
    CHECK(calls(operation::wake_kept) >= 3);     // memory, a copy, waiting
    CHECK(calls(operation::grow) >= 8);          // waiting, values to the host and back, memory, what is new
    CHECK(calls(operation::shrink) >= 2);
    CHECK(calls(operation::narrow) >= 2);
  }
}
