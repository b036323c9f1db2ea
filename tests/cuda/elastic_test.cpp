// Elastic arenas on a device: random steps against a model, failing driver calls, graphs, and other processes.

#include "../support/messages.hpp"
#include "../unit/elastic_suite.hpp"
#include "../unit/failing_calls.hpp"
#include "device.hpp"
#include "fields.hpp"

#include <stowage/arena.hpp>
#include <stowage/cuda/graph.hpp>
#include <stowage/cuda/nvtx.hpp>
#include <stowage/cuda/virtual.hpp>
#include <stowage/elastic.hpp>
#include <stowage/guards.hpp>

#include <doctest/doctest.h>

#include <spawn.h>
#include <sys/wait.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

extern char** environ;

namespace {

using stowage::elastic_placement;
using stowage::tokens;
using test::contains;
using test::message_of;
namespace scuda = stowage::cuda;
namespace zero = stowage::zero;

/// The driver's calls, counted; one of them can fail. Knows what was not given back.
struct counted_driver {
  static inline std::ptrdiff_t outstanding = 0;

  static const scuda::driver_calls& real() { return scuda::loaded_driver_calls(); }
  /// `change` is what a call that works adds to what is outstanding.
  static CUresult count(CUresult code, std::ptrdiff_t change) {
    if (code == CUDA_SUCCESS) outstanding += change;
    return code;
  }
  static CUresult reserve(CUdeviceptr* address, std::size_t bytes, std::size_t alignment, CUdeviceptr at,
                          unsigned long long flags) {
    if (test::call_counter::fails()) return CUDA_ERROR_UNKNOWN;
    return count(real().reserve(address, bytes, alignment, at, flags), 1);
  }
  static CUresult unreserve(CUdeviceptr address, std::size_t bytes) {
    if (test::call_counter::fails()) return CUDA_ERROR_UNKNOWN;
    return count(real().unreserve(address, bytes), -1);
  }
  static CUresult create(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                         const CUmemAllocationProp* kind, unsigned long long flags) {
    if (test::call_counter::fails()) return CUDA_ERROR_OUT_OF_MEMORY;
    return count(real().create(handle, bytes, kind, flags), 1);
  }
  static CUresult release(CUmemGenericAllocationHandle handle) {
    if (test::call_counter::fails()) return CUDA_ERROR_UNKNOWN;
    return count(real().release(handle), -1);
  }
  static CUresult map(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                      CUmemGenericAllocationHandle handle, unsigned long long flags) {
    if (test::call_counter::fails()) return CUDA_ERROR_UNKNOWN;
    return count(real().map(address, bytes, offset, handle, flags), 1);
  }
  static CUresult unmap(CUdeviceptr address, std::size_t bytes) {
    if (test::call_counter::fails()) return CUDA_ERROR_UNKNOWN;
    return count(real().unmap(address, bytes), -1);
  }
  static CUresult set_access(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* access,
                             std::size_t count) {
    if (test::call_counter::fails()) return CUDA_ERROR_UNKNOWN;
    return real().set_access(address, bytes, access, count);
  }
  static CUresult allocate_host(void** address, std::size_t bytes, unsigned int flags) {
    if (test::call_counter::fails()) return CUDA_ERROR_OUT_OF_MEMORY;
    return count(real().allocate_host(address, bytes, flags), 1);
  }
  static CUresult free_host(void* address) {
    if (test::call_counter::fails()) return CUDA_ERROR_UNKNOWN;
    return count(real().free_host(address), -1);
  }
  static CUresult copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream on) {
    if (test::call_counter::fails()) return CUDA_ERROR_UNKNOWN;
    return real().copy(to, from, bytes, on);
  }
  static CUresult synchronize(CUstream on) {
    if (test::call_counter::fails()) return CUDA_ERROR_UNKNOWN;
    return real().synchronize(on);
  }

  static const scuda::driver_calls& calls() {
    static const scuda::driver_calls table = [] {
      scuda::driver_calls counted = real();
      counted.reserve = reserve;
      counted.unreserve = unreserve;
      counted.create = create;
      counted.release = release;
      counted.map = map;
      counted.unmap = unmap;
      counted.set_access = set_access;
      counted.allocate_host = allocate_host;
      counted.free_host = free_host;
      counted.copy = copy;
      counted.synchronize = synchronize;
      return counted;
    }();
    return table;
  }
};

using counted_backend = stowage::virtual_backend_over<scuda::backend, scuda::driver_pages<>>;

/// Rows of so many bytes, handles of at most so many.
template <std::size_t Width, std::size_t LargestHandle> class device_rig {
public:
  device_rig() {
    test::call_counter::fail(0);
    counted_driver::outstanding = 0;
  }
  static counted_backend make() {
    const int device = scuda::current_device();
    return counted_backend(scuda::backend(device),
                           scuda::driver_pages<>(device, LargestHandle, counted_driver::calls()));
  }
  [[nodiscard]] scuda::stream stream() const { return scuda::stream(stream_.get()); }
  static std::size_t width() { return Width; }
  static bool fail(std::size_t k) { return test::call_counter::fail(k); }
  static std::size_t outstanding() { return static_cast<std::size_t>(counted_driver::outstanding); }

private:
  test::stream stream_;
};
constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
using narrow_rows = device_rig<8 * kib, 1024 * mib>; // fields share granules
using wide_rows = device_rig<128 * kib, 1024 * mib>; // fields are several granules large
using wide_rows_in_small_handles = device_rig<128 * kib, 4 * mib>;

/// Steps of a walk: fewer for tools that make each one slow.
std::size_t steps(std::size_t wanted) { return test::replays() < 1000 ? wanted / 20 : wanted; }

struct params {
  tokens capacity{};
};
inline constexpr stowage::dim<&params::capacity> M{"M"};

/// 4 MiB for 64 tokens, each.
struct fields {
  stowage::buffer<std::uint8_t, stowage::shape<M, 65536>, zero::rows> states;
  stowage::buffer<std::uint8_t, stowage::shape<M, 65536>, zero::never> marks;
  stowage::buffer<std::uint8_t, stowage::shape<M, 65536>, zero::rows> queries;
};
using fields_plan = stowage::plan<fields, params>;
fields_plan plan_for(std::size_t capacity) { return fields_plan({tokens{capacity}}); }

void fill(const void* address, std::size_t bytes, int value) {
  test::cuda(cudaMemset(const_cast<void*>(address), value, bytes));
  test::cuda(cudaDeviceSynchronize());
}

/// Whether all bytes have a value.
bool holds(const void* address, std::size_t bytes, unsigned char value) {
  const auto memory = test::read_back(address, bytes);
  return std::all_of(memory.begin(), memory.end(), [&](unsigned char byte) { return byte == value; });
}

std::size_t free_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  test::cuda(cudaMemGetInfo(&free, &total));
  return free;
}

/// Whether another process can allocate so many bytes on the device; see main.cpp.
bool another_process_allocates(std::size_t bytes) {
  std::string program = "/proc/self/exe";
  std::string option = "--allocate";
  std::string number = std::to_string(bytes);
  char* const arguments[] = {program.data(), option.data(), number.data(), nullptr};
  pid_t process = 0;
  REQUIRE(posix_spawn(&process, program.c_str(), nullptr, nullptr, arguments, environ) == 0);
  int status = 0;
  REQUIRE(waitpid(process, &status, 0) == process);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) <= 1);
  return WEXITSTATUS(status) == 0;
}

} // namespace

TEST_CASE("elastic: random steps on the device, against a model") {
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    for (const auto where : {elastic_placement::stable, elastic_placement::compact}) {
      test::elastic::walk<narrow_rows>(seed, steps(400), where);
      test::elastic::walk<wide_rows>(seed + 10, steps(60), where);
      test::elastic::walk<wide_rows_in_small_handles>(seed + 20, steps(60), where);
    }
  }
}

TEST_CASE("elastic: every call of the driver fails once on the device") {
  using test::elastic::operation;
  for (const auto where : {elastic_placement::stable, elastic_placement::compact}) {
    for (const auto what : {operation::construct, operation::sleep, operation::sleep_keeping, operation::wake,
                            operation::wake_kept, operation::grow, operation::shrink, operation::narrow})
      CHECK(test::elastic::fail_every_call<wide_rows>(what, where) >= 1);
  }
}

TEST_CASE("elastic: graphs replay after sleep and wake, and after a stable resize") {
  const test::stream on;
  stowage::elastic_arena arena(plan_for(64), plan_for(128), scuda::virtual_backend{}, {.stream = on.get()});
  const std::uint64_t generation = arena.generation();
  std::vector<scuda::zero_node> nodes;
  const test::captured_graph graph(on, [&] {
    nodes.push_back(scuda::capture_zero_rows(arena, on.get(), tokens{8}));
    test::cuda(cudaMemsetAsync(arena->marks.data(), 0x77, 3 * 65536, on.get()));
  });
  const auto replay_and_check = [&] {
    fill(arena->states.data(), arena->states.bytes(), test::poison);
    fill(arena->marks.data(), arena->marks.bytes(), test::poison);
    fill(arena->queries.data(), arena->queries.bytes(), test::poison);
    arena.require_generation(generation);
    graph.launch(on);
    on.wait();
    for (const auto* field : {&arena->states, &arena->queries}) {
      CHECK(holds(field->data(), 8 * 65536, 0));
      CHECK(holds(field->data() + 8 * 65536, field->bytes() - 8 * 65536, test::poison));
    }
    CHECK(holds(arena->marks.data(), 3 * 65536, 0x77));
    CHECK(holds(arena->marks.data() + 3 * 65536, arena->marks.bytes() - 3 * 65536, test::poison));
  };
  replay_and_check();
  for (int round = 0; round < 5; ++round) {
    CAPTURE(round);
    arena.sleep(on.get());
    CHECK_THROWS_AS(arena.require_generation(generation), stowage::usage_error);
    arena.wake(on.get());
    replay_and_check();
    arena.sleep(stowage::keep_contents, on.get());
    arena.wake(on.get());
    CHECK(holds(arena->marks.data(), 3 * 65536, 0x77)); // what the replay has left
    replay_and_check();
    arena.resize({tokens{128}}, on.get());
    replay_and_check();
    arena.resize({tokens{std::size_t{9} + static_cast<std::size_t>(round)}}, on.get());
    replay_and_check();
  }
}

TEST_CASE("elastic: sleep gives memory back to other processes") {
  const std::size_t free = free_bytes();
  // 7 of 10 parts for the arena, and 5 for another process: only one of them fits.
  const std::size_t rows = free / 10 * 7 / (3 * 65536);
  stowage::elastic_arena arena(plan_for(rows), plan_for(rows), scuda::virtual_backend{});
  const std::size_t wanted = free / 2;
  CHECK_FALSE(another_process_allocates(wanted));
  arena.sleep();
  CHECK(another_process_allocates(wanted));
  arena.wake();
  CHECK_FALSE(another_process_allocates(wanted));
  arena.resize({tokens{16}});
  CHECK(another_process_allocates(wanted));
  fill(arena->queries.data(), arena->queries.bytes(), 1);
}

TEST_CASE("elastic: too little memory to wake up leaves it asleep, with its contents") {
  const std::size_t free = free_bytes();
  const std::size_t rows = free / 2 / (3 * 65536);
  const std::size_t largest = 2 * free / (3 * 65536);
  {
    stowage::elastic_arena arena(plan_for(64), plan_for(largest), scuda::virtual_backend{});
    const std::string message = message_of<stowage::out_of_memory>([&] { arena.resize({tokens{largest}}); });
    CAPTURE(message);
    CHECK(contains(message, "cuMemCreate failed with CUDA_ERROR_OUT_OF_MEMORY"));
    CHECK(contains(message, " bytes free of "));
    CHECK(arena.params().capacity.value == 64);
    arena.zero_all();
    CHECK(contains(message_of<stowage::bounds_error>([&] { arena.resize({tokens{largest + 1}}); }),
                   "'states'"));
  }
  stowage::elastic_arena arena(plan_for(64), plan_for(rows), scuda::virtual_backend{});
  fill(arena->marks.data(), arena->marks.bytes(), 0x42);
  arena.sleep(stowage::keep_contents);
  // Nearly all memory goes to somebody else.
  std::vector<void*> taken;
  for (std::size_t bytes = free; bytes >= 2 * mib;) {
    void* address = nullptr;
    if (cudaMalloc(&address, bytes) == cudaSuccess) {
      taken.push_back(address);
    } else {
      static_cast<void>(cudaGetLastError());
      bytes /= 2;
    }
  }
  for (int attempt = 0; attempt < 2; ++attempt) {
    CHECK_THROWS_AS(arena.wake(), stowage::out_of_memory);
    CHECK(arena.asleep());
    CHECK(arena.keeps_contents());
    CHECK(arena.mapped_bytes() == 0);
  }
  for (void* const address : taken) test::cuda(cudaFree(address));
  arena.wake();
  CHECK(holds(arena->marks.data(), arena->marks.bytes(), 0x42));
}

TEST_CASE("elastic: neither sleep nor wake nor resize while the stream captures") {
  const test::stream on;
  stowage::elastic_arena arena(plan_for(8), plan_for(16), scuda::virtual_backend{}, {.stream = on.get()});
  stowage::elastic_arena sleeping(plan_for(8), plan_for(16), scuda::virtual_backend{}, {.stream = on.get()});
  sleeping.sleep(on.get());
  const test::captured_graph graph(on, [&] {
    arena.zero_rows(on.get(), tokens{4});
    const auto refused = [](const auto& call) {
      return contains(message_of<stowage::usage_error>(call), "while the stream captures");
    };
    CHECK(refused([&] { arena.sleep(on.get()); }));
    CHECK(refused([&] { arena.sleep(stowage::keep_contents, on.get()); }));
    CHECK(refused([&] { sleeping.wake(on.get()); }));
    CHECK(refused([&] { arena.resize({tokens{16}}, on.get()); }));
    scuda::virtual_backend backend({.stream = scuda::stream(on.get())});
    CHECK(refused([&] { stowage::elastic_arena(plan_for(8), plan_for(16), backend, {.stream = on.get()}); }));
  });
  CHECK(graph.nodes() == 1);
  graph.launch(on);
  on.wait();
  sleeping.wake(on.get());
}

TEST_CASE("elastic: guard zones on the device, in a reservation with room") {
  const auto guarded = [](std::size_t count) { return plan_for(count).with_guards(256); };
  stowage::elastic_arena arena(guarded(8), guarded(64), scuda::virtual_backend{});
  std::vector<std::string> found;
  const auto scan = [&] {
    found.clear();
    stowage::scan_guards(arena, {}, [&](const stowage::guard_damage& one) { found.push_back(format(one)); });
  };
  scan();
  CHECK(found.empty());
  arena.zero_all();
  fill(arena->states.data() + 8 * 65536, 3, 0);
  scan();
  REQUIRE(found.size() == 1);
  CHECK(contains(found[0], "behind 'states' (before 'queries'): bytes 0 to 2 of 256 overwritten"));
  { const scuda::nvtx_memory names(arena); }
  arena.sleep();
  CHECK(contains(message_of<stowage::usage_error>([&] { const scuda::nvtx_memory names(arena); }), "asleep"));
  arena.wake();
  scan();
  CHECK(found.empty());
}

TEST_CASE("elastic: an ordinary arena on a virtual backend, and a forward arena that sleeps") {
  const test::stream on;
  stowage::arena ordinary(plan_for(8), scuda::virtual_backend{}, {.stream = on.get()});
  fill(ordinary->states.data(), ordinary->states.bytes(), 1);
  ordinary.zero_rows(on.get(), tokens{3});
  on.wait();
  CHECK(holds(ordinary->states.data(), 3 * 65536, 0));
  CHECK(ordinary.release().ok());

  using stowage::llm::forward_buffers;
  const auto small = stowage::make_plan<forward_buffers>(test::llama(64));
  const auto large = stowage::make_plan<forward_buffers>(test::llama(512));
  stowage::elastic_arena forward(small, large, scuda::virtual_backend{}, {.stream = on.get()});
  forward.zero_all(on.get());
  forward.sleep(on.get());
  forward.wake(on.get());
  forward.resize(test::llama(512), on.get());
  forward.zero_all(on.get());
  forward.zero_rows(on.get(), tokens{33});
  CHECK(forward.plan().is_contiguous());
  CHECK(forward.release().ok());
}
