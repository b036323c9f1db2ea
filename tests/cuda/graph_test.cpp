// Passes inside captured graphs: one node each, replayed on the same addresses, updated for other batches.

#include "../support/messages.hpp"
#include "device.hpp"
#include "fields.hpp"

#include <stowage/arena.hpp>
#include <stowage/checksum.hpp>
#include <stowage/cuda/backend.hpp>
#include <stowage/cuda/graph.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace {

using stowage::segment;
using stowage::tokens;
using test::contains;
using test::message_of;
namespace scuda = stowage::cuda;
namespace zero = stowage::zero;

constexpr std::size_t capacity = 500;

test::row_plan plan() { return test::row_plan(test::row_params{tokens{capacity}, false}); }

/// Rows only: a pass over no tokens clears nothing at all.
struct only_rows {
  stowage::buffer<float, stowage::shape<test::M, 3>, zero::rows> one;
  stowage::buffer<float, stowage::shape<test::M, 3>, zero::never> kept;
  stowage::buffer<stowage::bf16, stowage::shape<stowage::pad<16>(test::M), 3>, zero::rows> other;
};

} // namespace

// In a process of its own (--test-case='graph first*') this is the first launch that the process makes.
TEST_CASE("graph first: a capture right after construction, before any pass") {
  const test::stream on;
  stowage::arena arena(plan(), scuda::backend{}, {.stream = on.get()});
  const test::captured_graph graph(on, [&] {
    arena.zero_rows(on.get(), tokens{17});
    arena.zero_rows(on.get(), tokens{40}, tokens{50});
  });
  CHECK(graph.nodes() == 2);
  test::poison_memory(arena);
  graph.launch(on);
  test::check_fields(arena, [&](std::size_t field) {
    test::ranges expected = test::cleared_rows(field, 17, capacity);
    for (const test::range& tail : test::cleared_tail(field, 40, 50, capacity)) expected.push_back(tail);
    return expected;
  });
}

TEST_CASE("graph: each pass is one node, also with separate allocations") {
  const test::stream on;
  for (const auto where : {stowage::placement::slab, stowage::placement::separate}) {
    CAPTURE(static_cast<int>(where));
    stowage::arena arena(plan(), scuda::backend{}, {.where = where, .stream = on.get()});
    const auto nodes = [&](const auto& pass) {
      const test::captured_graph graph(on, pass);
      return graph.nodes();
    };
    for (const std::size_t count : test::token_counts(capacity)) {
      CAPTURE(count);
      CHECK(nodes([&] { arena.zero_rows(on.get(), tokens{count}); }) == 1);
    }
    CHECK(nodes([&] { arena.zero_rows(on.get(), tokens{3}, tokens{99}); }) == 1);
    CHECK(nodes([&] { arena.zero_rows(on.get(), tokens{3}, tokens{3}); }) == 0);
    CHECK(nodes([&] { arena.zero_all(on.get()); }) == 1);
    CHECK(nodes([&] { arena.zero_tagged<test::essentials>(on.get()); }) == 1);
  }
  auto forward = stowage::llm::make_forward_arena(test::llama(64), scuda::backend{}, {.stream = on.get()});
  const test::captured_graph graph(on, [&] { forward.zero_rows(on.get(), tokens{8}); });
  CHECK(graph.nodes() == 1);
}

TEST_CASE("graph: more segments than one launch takes are the few nodes that are documented") {
  const test::stream on;
  constexpr std::size_t stride = 64;
  void* memory = nullptr;
  test::cuda(cudaMalloc(&memory, 300 * stride));
  for (const std::size_t count : {std::size_t{120}, std::size_t{121}, std::size_t{300}}) {
    CAPTURE(count);
    std::vector<segment> segments;
    test::ranges wanted;
    for (std::size_t index = 0; index < count; ++index) {
      segments.push_back({static_cast<std::byte*>(memory) + index * stride, 33});
      wanted.push_back({index * stride, index * stride + 33});
    }
    scuda::load_zero_kernel();
    const test::captured_graph graph(on, [&] { scuda::launch_zero_kernel(on.get(), segments); });
    CHECK(graph.nodes() == (count + 119) / 120);
    test::cuda(cudaMemset(memory, test::poison, 300 * stride));
    test::cuda(cudaDeviceSynchronize());
    graph.launch(on);
    on.wait();
    CHECK(test::first_difference(test::read_back(memory, 300 * stride), wanted) == 300 * stride);
  }
  test::cuda(cudaFree(memory));
}

TEST_CASE("graph: thousands of replays on the same addresses") {
  const test::stream on;
  stowage::arena arena(plan(), scuda::backend{}, {.stream = on.get()});
  const auto generation = arena.generation();
  const test::captured_graph rows(on, [&] { arena.zero_rows(on.get(), tokens{33}); });
  const test::captured_graph all(on, [&] { arena.zero_all(on.get()); });
  std::byte* const slab = arena.slab();
  const auto poison_in_stream = [&] {
    test::cuda(cudaMemsetAsync(slab, test::poison, arena.plan().slab_bytes(), on.get()));
  };
  const int replays = test::replays();
  for (int replay = 0; replay < replays; ++replay) {
    poison_in_stream();
    rows.launch(on);
  }
  test::check_fields(arena, [&](std::size_t field) { return test::cleared_rows(field, 33, capacity); });
  for (int replay = 0; replay < replays; ++replay) {
    poison_in_stream();
    all.launch(on);
  }
  test::check_fields(arena, test::cleared_all);
  // Moving an arena changes no address.
  stowage::arena moved(std::move(arena));
  CHECK(moved.slab() == slab);
  CHECK_NOTHROW(moved.require_generation(generation));
  poison_in_stream();
  rows.launch(on);
  test::check_fields(moved, [&](std::size_t field) { return test::cleared_rows(field, 33, capacity); });
}

TEST_CASE("graph: a zero node is updated for other batches without another instantiation") {
  const test::stream on;
  stowage::arena arena(plan(), scuda::backend{}, {.stream = on.get()});
  std::vector<scuda::zero_node> nodes;
  const test::captured_graph graph(
      on, [&] { nodes.push_back(scuda::capture_zero_rows(arena, on.get(), tokens{8})); });
  CHECK(graph.nodes() == 1);
  test::poison_memory(arena);
  graph.launch(on);
  test::check_fields(arena, [&](std::size_t field) { return test::cleared_rows(field, 8, capacity); });
  for (int round = 0; round < 3; ++round) {
    for (const std::size_t count : test::token_counts(capacity)) {
      CAPTURE(count);
      test::poison_memory(arena);
      nodes[0].update(graph.executable(), arena.row_segments(tokens{count}).view());
      graph.launch(on);
      test::check_fields(arena,
                         [&](std::size_t field) { return test::cleared_rows(field, count, capacity); });
    }
  }
}

TEST_CASE("graph: a zero node between other work") {
  const test::stream on;
  stowage::arena arena(plan(), scuda::backend{}, {.stream = on.get()});
  std::vector<scuda::zero_node> nodes;
  const test::captured_graph graph(on, [&] {
    test::cuda(cudaMemsetAsync(arena.slab(), test::poison, arena.plan().slab_bytes(), on.get()));
    nodes.push_back(scuda::capture_zero_rows(arena, on.get(), tokens{8}));
    test::cuda(cudaMemsetAsync(arena->kept.data(), 0, arena->kept.bytes(), on.get()));
  });
  CHECK(graph.nodes() == 3);
  for (const std::size_t count : {std::size_t{100}, std::size_t{1}, std::size_t{499}}) {
    CAPTURE(count);
    nodes[0].update(graph.executable(), arena.row_segments(tokens{count}).view());
    graph.launch(on);
    test::check_fields(arena, [&](std::size_t field) {
      return test::row_plan::name(field) == "kept" ? test::ranges{{0, test::everything}}
                                                   : test::cleared_rows(field, count, capacity);
    });
  }
}

TEST_CASE("graph: a zero node that has nothing to clear") {
  const test::stream on;
  const auto rows_plan = stowage::make_plan<only_rows>(test::row_params{tokens{100}, false});
  stowage::arena arena(rows_plan, scuda::backend{}, {.stream = on.get()});
  const auto expect = [&](std::size_t count) {
    const auto expected = test::row_pass(rows_plan, 0, count, true);
    test::check_fields(arena, [&](std::size_t field) { return expected[field]; });
  };
  REQUIRE(arena.row_segments(tokens{0}).view().empty());
  std::vector<scuda::zero_node> nodes;
  const test::captured_graph graph(
      on, [&] { nodes.push_back(scuda::capture_zero_rows(arena, on.get(), tokens{8})); });
  for (const std::size_t count : {std::size_t{0}, std::size_t{100}, std::size_t{0}, std::size_t{17}}) {
    CAPTURE(count);
    test::poison_memory(arena);
    nodes[0].update(graph.executable(), arena.row_segments(tokens{count}).view());
    graph.launch(on);
    expect(count);
  }
  SUBCASE("also from the start") {
    std::vector<scuda::zero_node> empty;
    const test::captured_graph second(
        on, [&] { empty.push_back(scuda::capture_zero_rows(arena, on.get(), tokens{0})); });
    test::poison_memory(arena);
    second.launch(on);
    expect(0);
    empty[0].update(second.executable(), arena.row_segments(tokens{50}).view());
    second.launch(on);
    expect(50);
  }
}

TEST_CASE("graph: a zero node in a graph that is built by hand") {
  const test::stream on;
  stowage::arena arena(plan(), scuda::backend{}, {.stream = on.get()});
  cudaGraph_t graph = nullptr;
  test::cuda(cudaGraphCreate(&graph, 0));
  cudaMemsetParams fill{};
  fill.dst = arena.slab();
  fill.elementSize = 1;
  fill.width = arena.plan().slab_bytes();
  fill.height = 1;
  fill.value = test::poison;
  cudaGraphNode_t poisoned = nullptr;
  test::cuda(cudaGraphAddMemsetNode(&poisoned, graph, nullptr, 0, &fill));
  const scuda::zero_node node(graph, std::span<const cudaGraphNode_t>(&poisoned, 1),
                              arena.row_segments(tokens{30}).view());
  CHECK(node.node() != nullptr);
  cudaGraphExec_t executable = nullptr;
  test::cuda(cudaGraphInstantiate(&executable, graph, 0));
  test::cuda(cudaGraphLaunch(executable, on.get()));
  test::check_fields(arena, [&](std::size_t field) { return test::cleared_rows(field, 30, capacity); });
  node.update(executable, arena.row_segments(tokens{2}).view());
  test::cuda(cudaGraphLaunch(executable, on.get()));
  test::check_fields(arena, [&](std::size_t field) { return test::cleared_rows(field, 2, capacity); });

  std::vector<segment> many(121, segment{arena.slab(), 1});
  CHECK(contains(message_of<stowage::usage_error>([&] { node.update(executable, many); }), "120"));
  CHECK(contains(message_of<stowage::usage_error>([&] { scuda::zero_node(graph, {}, many); }), "120"));
  test::cuda(cudaGraphExecDestroy(executable));
  test::cuda(cudaGraphDestroy(graph));
}

TEST_CASE("graph: a zero node needs a stream that captures") {
  const test::stream on;
  stowage::arena arena(plan(), scuda::backend{});
  CHECK(contains(message_of<stowage::usage_error>(
                     [&] { static_cast<void>(scuda::capture_zero_rows(arena, on.get(), tokens{8})); }),
                 "captur"));
}

TEST_CASE("graph: what cannot be captured is refused, and the capture goes on") {
  const test::stream on;
  scuda::backend backend({.memory = scuda::memory_kind::device, .stream = on.get()});
  scuda::backend pool({.memory = scuda::memory_kind::pool, .stream = on.get()});
  auto forward = stowage::llm::make_forward_arena(test::llama(16), backend, {.stream = on.get()});
  stowage::arena arena(plan(), backend, {.stream = on.get()});
  const test::captured_graph graph(on, [&] {
    CHECK(scuda::is_capturing(on.get()));
    CHECK(backend.is_capturing(on.get()));
    CHECK(contains(message_of<stowage::usage_error>(
                       [&] { stowage::arena refused(plan(), backend, {.stream = on.get()}); }),
                   "captur"));
    CHECK(contains(message_of<stowage::usage_error>([&] { static_cast<void>(pool.allocate(256, 256)); }),
                   "captur"));
    CHECK(contains(message_of<stowage::usage_error>([&] {
                     stowage::checksum<stowage::llm::checksummed>(forward, on.get(), [](const auto&) {});
                   }),
                   "captur"));
    arena.zero_rows(on.get(), tokens{5});
  });
  CHECK_FALSE(scuda::is_capturing(on.get()));
  CHECK(graph.nodes() == 1);
  test::poison_memory(arena);
  graph.launch(on);
  test::check_fields(arena, [&](std::size_t field) { return test::cleared_rows(field, 5, capacity); });
}

TEST_CASE("graph: two graphs on two streams at once") {
  const test::stream one;
  const test::stream other;
  stowage::arena first(plan(), scuda::backend{});
  stowage::arena second(plan(), scuda::backend{});
  const test::captured_graph of_first(one, [&] { first.zero_rows(one.get(), tokens{21}); });
  const test::captured_graph of_second(other, [&] { second.zero_rows(other.get(), tokens{77}); });
  test::poison_memory(first);
  test::poison_memory(second);
  for (int replay = 0; replay < 100; ++replay) {
    of_first.launch(one);
    of_second.launch(other);
  }
  test::check_fields(first, [&](std::size_t field) { return test::cleared_rows(field, 21, capacity); });
  test::check_fields(second, [&](std::size_t field) { return test::cleared_rows(field, 77, capacity); });
}
