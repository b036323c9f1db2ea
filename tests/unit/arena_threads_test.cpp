// What docs/how-to/threads.md allows, done at once and watched by ThreadSanitizer: accessors from any thread while another
// runs passes, passes over different buffers, arenas of their own, a backend that several share.

#include <stowage/arena.hpp>
#include <stowage/backend/any.hpp>
#include <stowage/backend/host.hpp>
#include <stowage/carve.hpp>
#include <stowage/checksum.hpp>
#include <stowage/cursor.hpp>
#include <stowage/guards.hpp>
#include <stowage/regions.hpp>
#include <stowage/traits/copies.hpp>
#include <stowage/traits/tag.hpp>
#include <stowage/traits/when.hpp>
#include <stowage/traits/zero_at_construction.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <thread>
#include <utility>
#include <vector>

namespace {

using stowage::buffer;
using stowage::shape;
using stowage::tokens;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  bool off = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
struct left;
struct right;

struct pieces {
  stowage::part<std::uint8_t, shape<M>> flags;
  stowage::part<float, shape<M>> values;
};
struct fields {
  buffer<float, shape<stowage::pad<16>(M), 8>, zero::rows, stowage::tag<left>> states;
  buffer<float, shape<M, 4>, zero::full, stowage::copies<2>, stowage::tag<right>> whole;
  buffer<float, shape<M>, zero::rows, stowage::when<&params::off>> absent;
  buffer<stowage::regions<pieces>, zero::never> parts;
  buffer<std::uint8_t, shape<4096>, zero::never> pool;
  buffer<float, shape<8>, zero::never, stowage::zero_at_construction> weight;
};
constexpr auto plan = stowage::make_plan<fields>(params{tokens{40}, false});

constexpr std::size_t rounds = 2000;

/// Runs work(thread) in so many threads, all of them at once.
template <class Work> void run_in_threads(std::size_t count, const Work& work) {
  std::vector<std::thread> threads;
  std::latch start(static_cast<std::ptrdiff_t>(count));
  for (std::size_t thread = 0; thread < count; ++thread) {
    threads.emplace_back([&work, &start, thread] {
      start.arrive_and_wait();
      work(thread);
    });
  }
  for (std::thread& each : threads) each.join();
}

/// Reads everything that an arena says of itself, and counts what is not as it was planned. Touches no memory of the
/// buffers.
template <class Arena> std::size_t wrong_answers(const Arena& arena) {
  std::size_t wrong = 0;
  const auto expect = [&wrong](bool right_answer) { wrong += right_answer ? 0 : 1; };
  expect(arena->states.bytes() == 48 * 8 * 4);
  expect(arena->states.rows(1, 3).size() == 16);
  expect(arena->states.fits(48, 8) && !arena->states.fits(49, 8));
  expect(arena->whole.copy(1).data() != arena->whole.data());
  expect(arena->absent.data() == nullptr && !arena->absent);
  expect(arena->parts->values.extent(0) == 40);
  expect(arena->pool.name() == "pool");
  expect(arena.address(0) == reinterpret_cast<const std::byte*>(arena->states.data()));
  expect(arena.plan().zero_rows_bytes(tokens{7}) == 16 * 8 * 4 + 2 * 40 * 4 * 4);
  expect(arena.row_segments(tokens{7}).view().size() == 3); // states, and two copies
  expect(arena.device_view().states.data() == arena->states.data());
  expect(!arena.released());
  arena.require(plan);
  arena.require_generation(arena.generation());
  const auto carved = stowage::carve<pieces>(arena->pool, params{tokens{100}, false});
  expect(carved->values.bytes() == 400);
  return wrong;
}

TEST_CASE("threads: accessors from four threads while a fifth runs every pass") {
  stowage::arena arena(plan, stowage::host_backend{});
  std::atomic<std::size_t> wrong{0};
  run_in_threads(5, [&](std::size_t thread) {
    if (thread != 0) {
      std::size_t mine = 0;
      for (std::size_t round = 0; round < rounds; ++round) mine += wrong_answers(std::as_const(arena));
      wrong += mine;
      return;
    }
    for (std::size_t round = 0; round < rounds; ++round) {
      arena.zero_rows({}, tokens{round % 41});
      arena.zero_rows({}, tokens{3}, tokens{20});
      arena.zero_tagged<right>();
      arena.zero_all();
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("threads: passes over different buffers from two threads") {
  stowage::arena arena(plan, stowage::host_backend{});
  run_in_threads(2, [&](std::size_t thread) {
    for (std::size_t round = 0; round < rounds; ++round) {
      if (thread == 0) {
        arena.zero_tagged<left>();
        arena->states.span()[round % 384] = 1;
      } else {
        arena.zero_tagged<right>();
        arena->whole.copy(1).span()[round % 160] = 1;
      }
    }
    // A pass over fewer fields than the arena has.
    if (thread == 0) arena.zero_tagged<left>();
  });
  const auto states = arena->states.span();
  CHECK(std::all_of(states.begin(), states.end(), [](float value) { return value == 0; }));
  CHECK(arena->whole.copy(1).span()[(rounds - 1) % 160] == 1);
}

TEST_CASE("threads: each thread makes, moves and releases arenas of its own on one shared backend") {
  constexpr std::size_t count = 4;
  stowage::host_backend host;
  stowage::any_backend shared(host);
  std::array<std::vector<std::uint64_t>, count> generations;
  std::atomic<std::size_t> failures{0};
  run_in_threads(count, [&](std::size_t thread) {
    for (std::size_t round = 0; round < 300; ++round) {
      const stowage::placement where =
          round % 2 == 0 ? stowage::placement::slab : stowage::placement::separate;
      stowage::arena arena(plan, shared, stowage::arena_options<stowage::any_stream>{where, {}});
      generations[thread].push_back(arena.generation());
      arena.zero_rows({}, tokens{5});
      arena->states.data()[0] = static_cast<float>(thread);
      stowage::arena moved(std::move(arena));
      generations[thread].push_back(arena.generation()); // NOLINT(bugprone-use-after-move): a released one
      failures += moved->states.data()[0] == static_cast<float>(thread) ? 0U : 1U;
      failures += wrong_answers(std::as_const(moved));
      stowage::checksum<left>(
          moved, {}, [&](const stowage::field_checksum& each) { failures += each.copied ? 0U : 1U; });
      failures += moved.release().ok() ? 0U : 1U;
      generations[thread].push_back(moved.generation());
    }
  });
  CHECK(failures == 0);
  // No two have a number in common.
  std::vector<std::uint64_t> all;
  for (const auto& each : generations) all.insert(all.end(), each.begin(), each.end());
  std::sort(all.begin(), all.end());
  CHECK(all.size() == count * 300 * 3);
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
}

TEST_CASE("threads: two threads scan the guard zones while others read and take from a cursor") {
  stowage::arena arena(plan.with_guards(64), stowage::host_backend{});
  stowage::cursor pool(arena->pool);
  std::atomic<std::size_t> damaged{0};
  std::atomic<std::size_t> taken{0};
  run_in_threads(4, [&](std::size_t thread) {
    for (std::size_t round = 0; round < 500; ++round) {
      if (thread < 2) {
        damaged += stowage::scan_guards(arena, {}, [](const stowage::guard_damage&) {});
      } else {
        const auto piece = pool.try_take(8, 8);
        std::fill(piece.begin(), piece.end(), std::byte{1});
        taken += piece.size();
      }
    }
  });
  CHECK(damaged == 0);
  CHECK(taken == 4096); // 1000 were wanted, 512 are there
  CHECK(pool.remaining() == 0);
}

} // namespace
