// A budget that elastic arenas share.

#include "../support/messages.hpp"

#include <stowage/backend/virtual_host.hpp>
#include <stowage/pool.hpp>
#include <stowage/stowage.hpp>

#include <doctest/doctest.h>

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>

namespace {

using stowage::tokens;
using test::message_of;

constexpr std::size_t granule = 65536;

struct params {
  tokens capacity{};
};
inline constexpr stowage::dim<&params::capacity> M{"M"};

/// A granule for each token.
struct fields {
  stowage::buffer<std::uint8_t, stowage::shape<M, granule>, stowage::zero::rows> states;
};
using fields_plan = stowage::plan<fields, params>;

/// Memory of the system that runs out.
struct limited {
  static inline bool full = false;
  /// The next call that takes memory away fails.
  static inline bool holds_on = false;
  static void* map(void* address, std::size_t bytes, int access, int flags, int file, off_t offset) {
    if (!holds_on || (flags & MAP_FIXED) == 0) return ::mmap(address, bytes, access, flags, file, offset);
    holds_on = false;
    errno = ENOMEM;
    return MAP_FAILED;
  }
  static int protect(void* address, std::size_t bytes, int access) {
    if (!full) return ::mprotect(address, bytes, access);
    errno = ENOMEM;
    return -1;
  }
};

auto make(std::size_t rows, std::size_t most = 10) {
  return stowage::elastic_arena(
      fields_plan({tokens{rows}}), fields_plan({tokens{most}}),
      stowage::virtual_host_backend(
          {.granularity = granule, .calls = {limited::map, ::munmap, limited::protect}}));
}

} // namespace

TEST_CASE("pool: the least recently used arena makes room") {
  auto first = make(4);
  auto second = make(4);
  auto third = make(4);
  stowage::pool pool(8 * granule);
  pool.add(first);
  std::memset(first->states.data(), 1, 4 * granule);
  pool.add(second);
  CHECK(pool.mapped_bytes() == 8 * granule);
  pool.add(third, {}, stowage::pool_contents::lose); // awake: first goes
  CHECK(first.asleep());
  CHECK(first.keeps_contents());
  CHECK(pool.mapped_bytes() == 8 * granule);
  pool.use(second);
  pool.wake(first); // third is older than second now
  CHECK(third.asleep());
  CHECK_FALSE(third.keeps_contents());
  CHECK_FALSE(second.asleep());
  CHECK(first->states.data()[4 * granule - 1] == 1);
  pool.wake(first); // nothing to do
  CHECK(pool.mapped_bytes() == 8 * granule);
  pool.make_room(4 * granule);
  CHECK(second.asleep());
  CHECK_FALSE(first.asleep());
  pool.make_room(8 * granule);
  CHECK(pool.mapped_bytes() == 0);
  CHECK(pool.budget() == 8 * granule);
  CHECK(pool.members() == 3);
}

TEST_CASE("pool: a resize makes room for what it grows by") {
  auto first = make(4);
  auto second = make(4);
  stowage::pool pool(9 * granule);
  pool.add(first);
  pool.add(second);
  pool.resize(first, {tokens{5}});
  CHECK_FALSE(second.asleep());
  pool.resize(first, {tokens{6}});
  CHECK(second.asleep());
  CHECK(pool.mapped_bytes() == 6 * granule);
  pool.resize(second, {tokens{9}}); // it keeps contents: woken first
  CHECK_FALSE(second.asleep());
  CHECK(first.asleep());
  CHECK(pool.mapped_bytes() == 9 * granule);
  CHECK(first.forget_contents().ok());
  pool.resize(first, {tokens{2}}); // nothing to map
  CHECK(first.asleep());
  CHECK_FALSE(second.asleep());
}

TEST_CASE("pool: a resize that is refused changes nothing, for the others neither") {
  auto kept = make(2);
  auto other = make(4);
  stowage::pool pool(4 * granule);
  pool.add(kept);
  std::memset(kept->states.data(), 7, 2 * granule);
  pool.add(other, {}, stowage::pool_contents::lose); // kept sleeps
  std::memset(other->states.data(), 8, 4 * granule);
  REQUIRE(kept.keeps_contents());
  const auto nothing_changed = [&] {
    CHECK(kept.keeps_contents());
    CHECK(kept.params().capacity.value == 2);
    CHECK_FALSE(other.asleep());
    CHECK(other->states.data()[4 * granule - 1] == 8);
  };
  CHECK_THROWS_AS(pool.resize(kept, {tokens{11}}), stowage::bounds_error); // reserved for 10
  nothing_changed();
  CHECK(message_of<stowage::out_of_memory>([&] { pool.resize(kept, {tokens{5}}); }) ==
        "stowage: out of memory: 327680 bytes wanted: the pool's budget is 262144 bytes, and 0 of them are "
        "mapped by "
        "arenas that it cannot put to sleep for this");
  nothing_changed();
}

TEST_CASE("pool: a released member is refused") {
  auto arena = make(2);
  stowage::pool pool(4 * granule);
  pool.add(arena);
  CHECK(arena.release().ok());
  CHECK(test::contains(message_of<stowage::usage_error>([&] { pool.wake(arena); }), "released"));
  CHECK(
      test::contains(message_of<stowage::usage_error>([&] { pool.resize(arena, {tokens{1}}); }), "released"));
  pool.remove(arena);
  CHECK(pool.members() == 0);
  CHECK(test::contains(message_of<stowage::usage_error>([&] { pool.add(arena); }), "released"));
  CHECK(pool.members() == 0);
}

namespace {

/// Floors that are larger than the rows.
struct floored {
  stowage::buffer<std::uint32_t, stowage::shape<M>, stowage::zero::rows, stowage::at_least<64>,
                  stowage::zero_at_construction>
      cleared;
  stowage::buffer<std::uint8_t, stowage::shape<M>, stowage::zero::never, stowage::at_least<64>,
                  stowage::pad_fill<std::uint8_t{7}>>
      filled;
};
using floored_plan = stowage::plan<floored, params>;

} // namespace

TEST_CASE("elastic: rows that come back within a floor are as in a new arena, and rows that stay are not") {
  auto arena = stowage::elastic_arena(floored_plan({tokens{8}}), floored_plan({tokens{16}}),
                                      stowage::virtual_host_backend());
  for (std::size_t row = 0; row < 8; ++row) {
    arena->cleared.data()[row] = 42;
    arena->filled.data()[row] = 99;
  }
  arena.resize({tokens{4}});
  arena.resize({tokens{8}});
  for (std::size_t row = 0; row < 8; ++row) {
    CHECK(arena->cleared.data()[row] == (row < 4 ? 42U : 0U));
    CHECK(arena->filled.data()[row] == (row < 4 ? 99 : 7));
  }
}

TEST_CASE("elastic: a resize to the plan in force gives back what an earlier one could not") {
  auto arena = make(8);
  limited::holds_on = true;
  CHECK_THROWS_AS(arena.resize({tokens{3}}), stowage::backend_error);
  CHECK(arena.params().capacity.value == 3);
  CHECK(arena.mapped_bytes() == 8 * granule);
  arena.resize({tokens{3}});
  CHECK(arena.mapped_bytes() == 3 * granule);
}

TEST_CASE("pool: what is beyond the budget is refused with the numbers") {
  auto small = make(4);
  auto large = make(10);
  stowage::pool pool(9 * granule);
  pool.add(small);
  CHECK(message_of<stowage::out_of_memory>([&] { pool.add(large); }) ==
        "stowage: out of memory: 0 bytes wanted: the pool's budget is 589824 bytes, and 655360 of them are "
        "mapped by "
        "arenas that it cannot put to sleep for this");
  CHECK(pool.members() == 1);
  large.sleep();
  pool.add(large);
  CHECK(message_of<stowage::out_of_memory>([&] { pool.wake(large); }).find("655360 bytes wanted") !=
        std::string::npos);
  CHECK(large.asleep());
  CHECK_THROWS_AS(pool.make_room(9 * granule + 1), stowage::out_of_memory);
  CHECK_THROWS_AS(pool.resize(small, {tokens{10}}), stowage::out_of_memory);
  CHECK_FALSE(small.asleep()); // nobody was put to sleep in vain
  pool.remove(large);
  pool.remove(large);
  CHECK(message_of<stowage::usage_error>([&] { pool.wake(large); }).find("no member of the pool") !=
        std::string::npos);
}

TEST_CASE("pool: where the system has less than the budget, others sleep too") {
  auto first = make(4);
  auto second = make(4);
  stowage::pool pool(100 * granule);
  pool.add(first);
  pool.add(second);
  second.sleep();
  limited::full = true;
  CHECK_THROWS_AS(pool.wake(second), stowage::out_of_memory);
  limited::full = false;
  CHECK(second.asleep());
  CHECK(first.asleep()); // it was put to sleep in vain
  pool.wake(second);
  pool.wake(first);
  CHECK(pool.mapped_bytes() == 8 * granule);
}

TEST_CASE("pool: random turns never map more than the budget, and keep contents") {
  std::mt19937 random(5);
  auto a = make(3);
  auto b = make(5);
  auto c = make(7);
  stowage::pool pool(10 * granule);
  const auto all = [&](const auto& call) {
    call(a, 1);
    call(b, 2);
    call(c, 3);
  };
  all([](auto& arena, int value) {
    std::memset(arena->states.data(), value, arena->states.bytes());
    arena.sleep(stowage::keep_contents);
  });
  all([&](auto& arena, int) { pool.add(arena); });
  for (int step = 0; step < 1000; ++step) {
    const auto what = random() % 4;
    const auto whose = static_cast<int>(random() % 3) + 1;
    all([&](auto& arena, int value) {
      if (value != whose) return;
      if (what == 0) {
        pool.make_room((random() % 10) * granule);
      } else {
        pool.wake(arena);
        CHECK_FALSE(arena.asleep());
        const auto row = random() % (arena->states.bytes() / granule);
        CHECK(arena->states.data()[row * granule] == value);
        CHECK(arena->states.data()[row * granule + granule - 1] == value);
      }
    });
    CHECK(pool.mapped_bytes() <= 10 * granule);
  }
}
