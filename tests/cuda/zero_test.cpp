// Every pass over device memory, read back byte for byte, and the zero kernel against a model on the host.

#include "device.hpp"
#include "fields.hpp"

#include <stowage/arena.hpp>
#include <stowage/cuda/backend.hpp>
#include <stowage/cuda/zero_kernel.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

namespace {

using stowage::placement;
using stowage::segment;
using stowage::tokens;
namespace scuda = stowage::cuda;

/// All passes on one arena.
template <class Arena> void check_passes(Arena& arena, const test::stream& on) {
  const std::size_t capacity = arena.params().capacity.value;
  for (const std::size_t count : test::token_counts(capacity)) {
    CAPTURE(count);
    test::poison_memory(arena);
    arena.zero_rows(on.get(), tokens{count});
    test::check_fields(arena, [&](std::size_t field) { return test::cleared_rows(field, count, capacity); });
  }

  for (const auto& [first, last] : std::vector<test::range>{{0, capacity},
                                                            {0, 1},
                                                            {1, 2},
                                                            {3, 17},
                                                            {15, 16},
                                                            {16, 17},
                                                            {17, capacity},
                                                            {capacity - 1, capacity},
                                                            {5, 5},
                                                            {9, 2},
                                                            {capacity, capacity + 9}}) {
    CAPTURE(first);
    CAPTURE(last);
    test::poison_memory(arena);
    arena.zero_rows(on.get(), tokens{first}, tokens{last});
    test::check_fields(arena,
                       [&](std::size_t field) { return test::cleared_tail(field, first, last, capacity); });
  }

  test::poison_memory(arena);
  arena.zero_all(on.get());
  test::check_fields(arena, test::cleared_all);

  test::poison_memory(arena);
  arena.template zero_tagged<test::essentials>(on.get());
  test::check_fields(arena, test::cleared_tagged);
}

/// Memory that the zero kernel is launched on directly.
class device_memory {
public:
  explicit device_memory(std::size_t bytes) { test::cuda(cudaMalloc(&address_, bytes)); }
  ~device_memory() { static_cast<void>(cudaFree(address_)); }
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(address_); }

private:
  void* address_ = nullptr;
};

/// Clears ranges of some memory with the kernel, and compares all of it.
void check_kernel(const device_memory& memory, std::size_t bytes, const test::ranges& wanted) {
  std::vector<segment> segments;
  for (const test::range& part : wanted)
    segments.push_back({memory.data() + part.begin, part.end - part.begin});
  test::cuda(cudaMemset(memory.data(), test::poison, bytes));
  scuda::launch_zero_kernel({}, segments);
  test::cuda(cudaDeviceSynchronize());
  CHECK(test::first_difference(test::read_back(memory.data(), bytes), wanted) == bytes);
}

} // namespace

TEST_CASE("zero: every pass of an arena, read back byte for byte") {
  const test::stream on;
  for (const std::size_t capacity : {std::size_t{37}, std::size_t{48}}) {
    const test::row_plan plan(test::row_params{tokens{capacity}, false});
    CAPTURE(capacity);
    for (const auto kind : test::memory_kinds()) {
      CAPTURE(static_cast<int>(kind));
      stowage::arena arena(plan, scuda::backend({.memory = kind, .stream = on.get()}));
      check_passes(arena, on);
      CHECK(arena.release().ok());
    }
  }
}

TEST_CASE("zero: fields in allocations of their own") {
  const test::stream on;
  const test::row_plan plan(test::row_params{tokens{37}, false});
  stowage::arena arena(plan, scuda::backend{}, {.where = placement::separate, .stream = on.get()});
  CHECK(arena.slab() == nullptr);
  check_passes(arena, on);
}

TEST_CASE("zero: passes on the default stream") {
  const test::row_plan plan(test::row_params{tokens{37}, false});
  stowage::arena arena(plan, scuda::backend{});
  test::poison_memory(arena);
  arena.zero_rows({}, tokens{17});
  test::check_fields(arena, [&](std::size_t field) { return test::cleared_rows(field, 17, 37); });
  test::poison_memory(arena);
  arena.zero_all();
  test::check_fields(arena, test::cleared_all);
}

TEST_CASE("zero: the row passes of a forward arena") {
  constexpr std::size_t capacity = 64;
  const test::stream on;
  const stowage::llm::forward_plan plan(test::llama(capacity));
  for (const auto where : {placement::slab, placement::separate}) {
    CAPTURE(static_cast<int>(where));
    auto arena = stowage::llm::make_forward_arena(test::llama(capacity), scuda::backend{},
                                                  {.where = where, .stream = on.get()});
    for (const std::size_t count : test::token_counts(capacity)) {
      CAPTURE(count);
      test::poison_memory(arena);
      arena.zero_rows(on.get(), tokens{count});
      const auto expected = test::row_pass(plan, 0, count, true);
      test::check_fields(arena, [&](std::size_t field) { return expected[field]; });
    }
    test::poison_memory(arena);
    arena.zero_rows(on.get(), tokens{7}, tokens{33});
    const auto tail = test::row_pass(plan, 7, 33, false);
    test::check_fields(arena, [&](std::size_t field) { return tail[field]; });

    test::poison_memory(arena);
    arena.zero_tagged<stowage::llm::prefill_essentials>(on.get());
    std::size_t cleared = 0;
    test::check_fields(arena, [&](std::size_t field) {
      const auto name = plan.name(field);
      const bool tagged = name == "hidden_states" || name == "residual" || name == "gate_logits" ||
                          name == "moe_output" || name == "expert_gate_out" || name == "expert_up_out" ||
                          name == "expert_down_out";
      cleared += tagged ? 1 : 0;
      return tagged ? test::ranges{{0, test::everything}} : test::ranges{};
    });
    CHECK(cleared == 7); // gate_logits is a placeholder in this model, and cleared like the rest
  }
}

TEST_CASE("zero: two streams at once") {
  const test::stream one;
  const test::stream other;
  const test::row_plan plan(test::row_params{tokens{1000}, false});
  stowage::arena first(plan, scuda::backend{});
  stowage::arena second(plan, scuda::backend{});
  for (std::size_t round = 0; round < 50; ++round) {
    test::poison_memory(first);
    test::poison_memory(second);
    const std::size_t count = 1 + round * 19;
    for (int repeat = 0; repeat < 4; ++repeat) {
      first.zero_rows(one.get(), tokens{count});
      second.zero_rows(other.get(), tokens{count + 5}, tokens{count + 40});
    }
    test::check_fields(first, [&](std::size_t field) { return test::cleared_rows(field, count, 1000); });
    test::check_fields(
        second, [&](std::size_t field) { return test::cleared_tail(field, count + 5, count + 40, 1000); });
  }
}

TEST_CASE("zero kernel: 1 to 300 segments, sizes and starts of any kind") {
  constexpr std::size_t bytes = std::size_t{8} << 20;
  const device_memory memory(bytes);
  std::mt19937 random(20261130);
  const auto up_to = [&](std::size_t largest) { return static_cast<std::size_t>(random()) % (largest + 1); };
  for (std::size_t count = 1; count <= 300; ++count) {
    CAPTURE(count);
    test::ranges wanted;
    std::size_t cursor = up_to(40);
    for (std::size_t index = 0; index < count; ++index) {
      std::size_t size = 1 + up_to(39);
      const std::size_t choice = up_to(99);
      if (choice >= 97) size = 1 + up_to(100000);
      if (choice < 3) size = 16384 * (1 + up_to(1)) - 20 + up_to(40); // around whole tiles
      if (cursor + size > bytes) break;
      wanted.push_back({cursor, cursor + size});
      cursor += size + up_to(40); // 0: the next one begins where this one ends
    }
    REQUIRE(wanted.size() == count);
    check_kernel(memory, std::min(bytes, cursor + 64), wanted);
  }
}

TEST_CASE("zero kernel: each start and end around a vector and around a tile") {
  constexpr std::size_t bytes = 65536 + 128;
  const device_memory memory(bytes);
  for (std::size_t start = 0; start <= 17; ++start) {
    CAPTURE(start);
    for (const std::size_t size : std::vector<std::size_t>{1, 2, 15, 16, 17, 30, 31, 32, 33, 40}) {
      CAPTURE(size);
      check_kernel(memory, 128, {{start, start + size}, {96, 97}});
    }
    for (const std::size_t end :
         std::vector<std::size_t>{16383, 16384, 16385, 16399, 16400, 16401, 32767, 32768, 32769, 65536}) {
      CAPTURE(end);
      check_kernel(memory, bytes, {{start, end}, {65600, 65601}});
    }
  }
}

TEST_CASE("zero kernel: nothing to clear") {
  CHECK_NOTHROW(scuda::launch_zero_kernel({}, {}));
  test::cuda(cudaDeviceSynchronize());
}

TEST_CASE("zero kernel: segments beyond 4 GiB") {
  constexpr std::size_t gigabyte = std::size_t{1} << 30;
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  test::cuda(cudaMemGetInfo(&free_bytes, &total_bytes));
  if (free_bytes < 12 * gigabyte) {
    MESSAGE("SKIPPED: not enough memory");
    return;
  }
  constexpr std::size_t bytes = 5 * gigabyte + 4096;
  const device_memory memory(bytes);
  test::cuda(cudaMemset(memory.data(), test::poison, bytes));
  constexpr std::size_t begin = 5;
  constexpr std::size_t end = 5 * gigabyte + 7;
  const std::vector<segment> segments{{memory.data() + begin, end - begin}, {memory.data() + end + 9, 3}};
  scuda::launch_zero_kernel({}, segments);
  test::cuda(cudaDeviceSynchronize());
  constexpr std::size_t window = std::size_t{1} << 20;
  for (std::size_t at = 0; at < bytes; at += gigabyte / 2) {
    CAPTURE(at);
    const std::size_t from = at < window ? 0 : at - window;
    const std::size_t to = std::min(bytes, at + window);
    test::ranges expected;
    for (const test::range& cleared : test::ranges{{begin, end}, {end + 9, end + 12}}) {
      const std::size_t first = std::max(cleared.begin, from);
      const std::size_t last = std::min(cleared.end, to);
      if (first < last) expected.push_back({first - from, last - from});
    }
    CHECK(test::first_difference(test::read_back(memory.data() + from, to - from), expected) == to - from);
  }
}
