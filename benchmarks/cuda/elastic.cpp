// Elastic arenas on a GPU: what sleeping and waking take, without contents and with them (against plain copies of as many
// bytes), what a resize takes, and what a pass on a virtual slab costs against one on an ordinary slab. Each number is the
// median of its counter; times of the host's clock in milliseconds, passes by events in microseconds.

#include "../../tests/support/model_params.hpp"

#include <stowage/cuda/backend.hpp>
#include <stowage/cuda/virtual.hpp>
#include <stowage/elastic.hpp>
#include <stowage/llm/forward_arena.hpp>
#include <stowage/stowage.hpp>

#include <benchmark/benchmark.h>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

namespace {

using stowage::tokens;

constexpr int skipped = 77; // for CTest
constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t gib = std::size_t{1} << 30;

void check(cudaError_t code) {
  if (code != cudaSuccess) {
    std::printf("CUDA says %s\n", cudaGetErrorString(code));
    std::exit(1);
  }
}

struct params {
  tokens capacity{};
};
inline constexpr stowage::dim<&params::capacity> M{"M"};
/// Two MiB for a token.
struct fields {
  stowage::buffer<std::uint8_t, stowage::shape<M, mib>, stowage::zero::rows> one;
  stowage::buffer<std::uint8_t, stowage::shape<M, mib>, stowage::zero::never> other;
};
using fields_plan = stowage::plan<fields, params>;

fields_plan plan_of(std::size_t bytes) { return fields_plan({tokens{bytes / (2 * mib)}}); }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Milliseconds of the host's clock.
template <class Call> double time_of(const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

std::size_t free_device_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total));
  return free;
}

/// Bytes of host memory that are available; 0 where the system does not say.
std::size_t available_host_bytes() {
  std::ifstream information("/proc/meminfo");
  std::string name;
  std::size_t kilobytes = 0;
  std::string rest;
  while (information >> name >> kilobytes && std::getline(information, rest)) {
    if (name == "MemAvailable:") return kilobytes * 1024;
  }
  return 0;
}

/// Arguments: GiB, and MiB of the largest handle.
void sleep_and_wake(benchmark::State& state) {
  const std::size_t bytes = static_cast<std::size_t>(state.range(0)) * gib;
  if (bytes > free_device_bytes() / 10 * 9) {
    state.SkipWithError("the device has too little memory");
    return;
  }
  stowage::elastic_arena arena(
      plan_of(bytes), plan_of(bytes),
      stowage::cuda::virtual_backend(
          {.largest_handle = static_cast<std::size_t>(state.range(1)) * mib, .stream = {}}));
  std::vector<double> asleep;
  std::vector<double> awake;
  for ([[maybe_unused]] auto _ : state) {
    check(cudaMemset(arena->one.data(), 1, arena->one.bytes())); // in use
    check(cudaDeviceSynchronize());
    asleep.push_back(time_of([&] { arena.sleep(); }));
    awake.push_back(time_of([&] { arena.wake(); }));
    state.SetIterationTime((asleep.back() + awake.back()) / 1e3);
  }
  state.counters["sleep_ms"] = median(asleep);
  state.counters["wake_ms"] = median(awake);
  state.counters["both_ms"] = median(asleep) + median(awake);
}

/// Argument: GiB.
void sleep_keeping(benchmark::State& state) {
  const std::size_t bytes = static_cast<std::size_t>(state.range(0)) * gib;
  if (bytes > free_device_bytes() / 10 * 9 || bytes > available_host_bytes() / 10 * 8) {
    state.SkipWithError("the device or the host has too little memory");
    return;
  }
  stowage::elastic_arena arena(plan_of(bytes), plan_of(bytes), stowage::cuda::virtual_backend{});
  check(cudaMemset(arena->one.data(), 1, arena->one.bytes()));
  // The first time pins host memory, which stays.
  state.counters["first_sleep_ms"] = time_of([&] { arena.sleep(stowage::keep_contents); });
  arena.wake();
  std::vector<double> asleep;
  std::vector<double> awake;
  for ([[maybe_unused]] auto _ : state) {
    asleep.push_back(time_of([&] { arena.sleep(stowage::keep_contents); }));
    awake.push_back(time_of([&] { arena.wake(); }));
    state.SetIterationTime((asleep.back() + awake.back()) / 1e3);
  }
  // Plain copies between the device and pinned memory, a GiB at a time.
  void* host = nullptr;
  check(cudaHostAlloc(&host, gib, cudaHostAllocDefault));
  std::vector<double> to_host;
  std::vector<double> to_device;
  for (int turn = 0; turn < 5; ++turn) {
    to_host.push_back(time_of([&] {
      check(cudaMemcpyAsync(host, arena->one.data(), std::min(gib, arena->one.bytes()), cudaMemcpyDefault,
                            nullptr));
      check(cudaStreamSynchronize(nullptr));
    }));
    to_device.push_back(time_of([&] {
      check(cudaMemcpyAsync(arena->one.data(), host, std::min(gib, arena->one.bytes()), cudaMemcpyDefault,
                            nullptr));
      check(cudaStreamSynchronize(nullptr));
    }));
  }
  const auto copied = static_cast<double>(std::min(gib, arena->one.bytes()));
  check(cudaFreeHost(host));
  state.counters["sleep_ms"] = median(asleep);
  state.counters["wake_ms"] = median(awake);
  state.counters["sleep_GB_s"] = static_cast<double>(bytes) / median(asleep) / 1e6;
  state.counters["wake_GB_s"] = static_cast<double>(bytes) / median(awake) / 1e6;
  state.counters["copy_to_host_GB_s"] = copied / median(to_host) / 1e6;
  state.counters["copy_to_device_GB_s"] = copied / median(to_device) / 1e6;
}

/// Arguments: GiB, and MiB of the largest handle: to a quarter, and back.
void resize(benchmark::State& state) {
  const std::size_t bytes = static_cast<std::size_t>(state.range(0)) * gib;
  stowage::elastic_arena arena(
      plan_of(bytes), plan_of(bytes),
      stowage::cuda::virtual_backend(
          {.largest_handle = static_cast<std::size_t>(state.range(1)) * mib, .stream = {}}));
  std::vector<double> down;
  std::vector<double> up;
  for ([[maybe_unused]] auto _ : state) {
    // Anew each time: pieces of a slab that grew in steps are smaller.
    arena.sleep();
    arena.wake();
    down.push_back(time_of([&] { arena.resize(plan_of(bytes / 4)); }));
    up.push_back(time_of([&] { arena.resize(plan_of(bytes)); }));
    state.SetIterationTime((down.back() + up.back()) / 1e3);
  }
  state.counters["shrink_ms"] = median(down);
  state.counters["grow_ms"] = median(up);
}

/// Microseconds of one of `count` passes in a row.
class pass_timer {
public:
  pass_timer() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    check(cudaEventCreate(&begin_));
    check(cudaEventCreate(&end_));
  }
  ~pass_timer() {
    static_cast<void>(cudaEventDestroy(end_));
    static_cast<void>(cudaEventDestroy(begin_));
    static_cast<void>(cudaStreamDestroy(stream_));
  }
  pass_timer(const pass_timer&) = delete;
  pass_timer& operator=(const pass_timer&) = delete;

  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  template <class Call> double operator()(int count, const Call& call) {
    check(cudaEventRecord(begin_, stream_));
    for (int index = 0; index < count; ++index) call();
    check(cudaEventRecord(end_, stream_));
    check(cudaEventSynchronize(end_));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return static_cast<double>(milliseconds) * 1e3 / count;
  }

private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

/// A pass as a graph of its own.
class graph {
public:
  template <class Call> graph(cudaStream_t stream, const Call& call) : stream_(stream) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    call();
    cudaGraph_t captured = nullptr;
    check(cudaStreamEndCapture(stream, &captured));
    check(cudaGraphInstantiate(&executable_, captured, 0));
    check(cudaGraphDestroy(captured));
  }
  ~graph() { static_cast<void>(cudaGraphExecDestroy(executable_)); }
  graph(const graph&) = delete;
  graph& operator=(const graph&) = delete;
  void launch() const { check(cudaGraphLaunch(executable_, stream_)); }

private:
  cudaStream_t stream_;
  cudaGraphExec_t executable_ = nullptr;
};

/// Arguments: tokens of zero_rows, 0 for zero_all; 1 for graphs. The Llama 3.1 8B forward arena at 4096 tokens, by turns on
/// an ordinary slab and on virtual ones; half_us is a stable one that is resized to 2048 tokens.
void passes(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const bool in_graph = state.range(1) != 0;
  using stowage::elastic_placement;
  const auto plan = stowage::make_plan<stowage::llm::forward_buffers>(test::llama(4096));
  const auto half = stowage::make_plan<stowage::llm::forward_buffers>(test::llama(2048));
  pass_timer timer;
  const cudaStream_t stream = timer.stream();
  stowage::arena ordinary(plan, stowage::cuda::backend{}, {.stream = stream});
  stowage::arena ordinary_half(half, stowage::cuda::backend{}, {.stream = stream});
  stowage::elastic_arena stable(plan, plan, stowage::cuda::virtual_backend{},
                                {.where = elastic_placement::stable, .stream = stream});
  stowage::elastic_arena compact(plan, plan, stowage::cuda::virtual_backend{},
                                 {.where = elastic_placement::compact, .stream = stream});
  stowage::elastic_arena smaller(half, plan, stowage::cuda::virtual_backend{},
                                 {.where = elastic_placement::stable, .stream = stream});
  stable.sleep(stream); // as they are in use
  stable.wake(stream);
  const auto pass = [&](auto& arena) {
    return [&arena, count, stream] {
      if (count == 0) {
        arena.zero_all(stream);
      } else {
        arena.zero_rows(stream, tokens{count});
      }
    };
  };
  const int repetitions = count == 0 || count > 1000 ? 20 : 200;
  std::array<std::vector<double>, 5> times;
  const auto measure = [&](std::size_t which, auto& arena) {
    const auto call = pass(arena);
    if (in_graph) {
      const graph captured(stream, call);
      captured.launch(); // uploads it
      check(cudaStreamSynchronize(stream));
      times[which].push_back(timer(repetitions, [&] { captured.launch(); }));
    } else {
      times[which].push_back(timer(repetitions, call));
    }
  };
  for ([[maybe_unused]] auto _ : state) {
    measure(0, ordinary);
    measure(1, stable);
    measure(2, compact);
    measure(3, ordinary_half);
    measure(4, smaller);
    state.SetIterationTime(times[0].back() / 1e6);
  }
  state.counters["plain_us"] = median(times[0]);
  state.counters["stable_us"] = median(times[1]);
  state.counters["compact_us"] = median(times[2]);
  state.counters["plain_half_us"] = median(times[3]);
  state.counters["half_us"] = median(times[4]);
}

BENCHMARK(sleep_and_wake)
    ->ArgNames({"GiB", "handle_MiB"})
    ->ArgsProduct({{1, 4, 8, 64}, {64, 256, 1024, 4096}})
    ->UseManualTime()
    ->Iterations(11)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(sleep_keeping)
    ->ArgNames({"GiB"})
    ->Arg(1)
    ->Arg(8)
    ->Arg(64)
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(resize)
    ->ArgNames({"GiB", "handle_MiB"})
    ->ArgsProduct({{4}, {64, 256, 1024, 4096}})
    ->UseManualTime()
    ->Iterations(7)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(passes)
    ->ArgNames({"tokens", "graph"})
    ->ArgsProduct({{8, 128, 4096, 0}, {0, 1}})
    ->UseManualTime()
    ->Iterations(31)
    ->Unit(benchmark::kMicrosecond);

} // namespace

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("SKIPPED: no GPU");
    return skipped;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  try {
    benchmark::RunSpecifiedBenchmarks();
  } catch (const std::exception& error) {
    std::printf("WRONG: %s\n", error.what());
    return 1;
  }
  return 0;
}
