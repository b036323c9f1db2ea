// The cursor slab from several threads. ThreadSanitizer sees two takes that overlap, since both are written.

#include <stowage/cursor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <latch>
#include <span>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t thread_count = 4;
constexpr std::size_t takes = 300000;

using spans = std::vector<std::span<std::byte>>;

/// Runs work(thread, its list) in each thread and gives everything that was taken, in the order of the
/// memory.
template <class Work> spans run_in_threads(const Work& work) {
  std::array<spans, thread_count> taken;
  std::array<std::thread, thread_count> threads;
  std::latch start(thread_count); // all at once, so that they meet
  for (std::size_t thread = 0; thread < thread_count; ++thread) {
    threads[thread] = std::thread([&work, &taken, &start, thread] {
      taken[thread].reserve(takes);
      start.arrive_and_wait();
      work(thread, taken[thread]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  spans all;
  for (const spans& part : taken) all.insert(all.end(), part.begin(), part.end());
  std::sort(all.begin(), all.end(),
            [](const auto& one, const auto& other) { return one.data() < other.data(); });
  return all;
}

/// Bytes of all, or 0 where two overlap.
std::size_t bytes_of(const spans& taken) {
  std::size_t bytes = 0;
  const std::byte* end = nullptr;
  for (const std::span<std::byte>& each : taken) {
    if (each.data() < end) return 0;
    end = each.data() + each.size();
    bytes += each.size();
  }
  return bytes;
}

void write(std::span<std::byte> taken, std::size_t thread) {
  std::memset(taken.data(), static_cast<int>(thread + 1), taken.size());
}

TEST_CASE("cursor: four threads, nothing overlaps and the total is exact") {
  std::size_t wanted = 0;
  for (std::size_t each = 0; each < takes; ++each) wanted += thread_count * (each % 8 + 1);
  std::vector<std::byte> memory(wanted);
  stowage::cursor slab(memory.data(), memory.size(), "weights");

  const spans taken = run_in_threads([&](std::size_t thread, spans& mine) {
    for (std::size_t each = 0; each < takes; ++each) {
      mine.push_back(slab.take(each % 8 + 1));
      write(mine.back(), thread);
    }
  });
  CHECK(taken.size() == thread_count * takes);
  CHECK(bytes_of(taken) == wanted);
  CHECK(slab.used() == wanted);
  CHECK(slab.remaining() == 0);
  CHECK(slab.high_water() == wanted);
  CHECK(slab.try_take(1).data() == nullptr);
}

TEST_CASE("cursor: four threads until the slab is exhausted, at an alignment") {
  constexpr std::size_t size = 64 * 100001 + 7;
  std::vector<std::byte> storage(size + 64);
  std::byte* const memory = storage.data() + (64 - reinterpret_cast<std::uintptr_t>(storage.data()) % 64);
  stowage::cursor slab(memory, size, "weights");
  const spans taken = run_in_threads([&](std::size_t thread, spans& mine) {
    for (;;) {
      const auto next = slab.try_take(64, 64);
      if (next.data() == nullptr) break;
      mine.push_back(next);
      write(next, thread);
    }
  });
  CHECK(taken.size() == 100001);
  CHECK(bytes_of(taken) == 64 * 100001);
  CHECK(slab.used() == 64 * 100001); // no failed take moved it
  CHECK(slab.remaining() == 7);
  CHECK(slab.high_water() == 64 * 100001);
}

} // namespace
