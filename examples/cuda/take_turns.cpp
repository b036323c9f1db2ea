// Two engines that take turns with the memory of one GPU: the arena of the one sleeps while the other works, and the graph
// that was captured before replays after. Plain C++, no nvcc.

#include <stowage/cuda/graph.hpp>
#include <stowage/cuda/virtual.hpp>
#include <stowage/elastic.hpp>
#include <stowage/pool.hpp>
#include <stowage/stowage.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

struct params {
  stowage::tokens max_tokens;
  std::size_t hidden;
};
inline constexpr stowage::dim<&params::max_tokens> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};

struct rollout_buffers {
  stowage::buffer<stowage::bf16, stowage::shape<M, hidden>, stowage::zero::rows> states;
  stowage::buffer<std::uint32_t, stowage::shape<M>, stowage::zero::never, stowage::zero_at_construction>
      counts;
};
struct training_buffers {
  stowage::buffer<float, stowage::shape<M, hidden>, stowage::zero::full> gradients;
};

namespace {

constexpr int skipped = 77; // for CTest

int failures = 0;

void check(bool right, const char* what) {
  if (right) return;
  std::printf("WRONG: %s\n", what);
  ++failures;
}

void cuda_call(cudaError_t code) {
  if (code != cudaSuccess) {
    std::printf("WRONG: CUDA says %s\n", cudaGetErrorString(code));
    std::exit(1);
  }
}

/// Whether some device memory holds one value.
bool holds(const void* address, std::size_t bytes, unsigned char value) {
  std::vector<unsigned char> memory(bytes);
  cuda_call(cudaMemcpy(memory.data(), address, bytes, cudaMemcpyDefault));
  return std::all_of(memory.begin(), memory.end(), [&](unsigned char byte) { return byte == value; });
}

void run() {
  cudaStream_t stream = nullptr;
  cuda_call(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  // [arenas]
  constexpr params now{stowage::tokens{8192}, 16384};
  constexpr params most{stowage::tokens{32768}, 16384};
  stowage::cuda::virtual_backend backend;
  stowage::elastic_arena rollout(stowage::make_plan<rollout_buffers>(now),
                                 stowage::make_plan<rollout_buffers>(most), backend, {.stream = stream});
  stowage::elastic_arena training(stowage::make_plan<training_buffers>(now),
                                  stowage::make_plan<training_buffers>(now), backend, {.stream = stream});
  // [arenas]

  // [capture]
  cuda_call(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  rollout.zero_rows(stream, stowage::tokens{100});
  cuda_call(cudaMemsetAsync(rollout->counts.data(), 5, 100 * sizeof(std::uint32_t), stream));
  cudaGraph_t graph = nullptr;
  cuda_call(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t step = nullptr;
  cuda_call(cudaGraphInstantiate(&step, graph, 0));
  const std::uint64_t generation = rollout.generation();
  // [capture]

  // [turns]
  stowage::pool pool(std::size_t{600} << 20); // rollout takes 268 MB, training 537: one at a time
  training.sleep(stream);
  pool.add(rollout, stream);
  pool.add(training, stream, stowage::pool_contents::lose);
  for (int turn = 0; turn < 3; ++turn) {
    const auto begin = std::chrono::steady_clock::now();
    pool.wake(training);
    training.zero_all(stream);
    pool.wake(rollout);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;

    rollout.require_generation(generation);
    cuda_call(cudaGraphLaunch(step, stream)); // the graph from before
    cuda_call(cudaStreamSynchronize(stream));
    std::printf("turn %d: there and back in %.1f ms, %zu bytes mapped\n", turn, took.count(),
                pool.mapped_bytes());
    check(training.asleep() && pool.mapped_bytes() <= pool.budget(), "one of them is awake");
    check(holds(rollout->states.data(), 100 * now.hidden * sizeof(stowage::bf16), 0),
          "the graph clears rows");
    check(holds(rollout->counts.data(), 100 * sizeof(std::uint32_t), 5), "and counts");
  }
  // [turns]

  pool.resize(rollout, {stowage::tokens{16384}, 16384});
  rollout.require_generation(generation);
  cuda_call(cudaGraphLaunch(step, stream));
  cuda_call(cudaStreamSynchronize(stream));
  check(holds(rollout->counts.data(), 100 * sizeof(std::uint32_t), 5), "the graph replays after a resize");

  cuda_call(cudaGraphExecDestroy(step));
  cuda_call(cudaGraphDestroy(graph));
  pool.remove(rollout);
  pool.remove(training);
  check(rollout.release().ok() && training.release().ok(), "the arenas give everything back");
  cuda_call(cudaStreamDestroy(stream));
}

} // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("SKIPPED: no GPU");
    return skipped;
  }
  try {
    run();
  } catch (const std::exception& error) {
    std::printf("WRONG: %s\n", error.what());
    ++failures;
  }
  std::puts(failures == 0 ? "right" : "wrong");
  return failures == 0 ? 0 : 1;
}
