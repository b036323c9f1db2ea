// A decode loop that replays one captured graph. The row zero pass is a node of it, and each batch gives that
// node its own number of rows: no new capture, no new instantiation. Plain C++, no nvcc.

// [include]
#include <stowage/cuda/backend.hpp>
#include <stowage/cuda/graph.hpp>
#include <stowage/stowage.hpp>
// [include]

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

// [buffers]
struct decode_params {
  stowage::tokens max_batch_tokens;
  std::size_t hidden;
};
inline constexpr stowage::dim<&decode_params::max_batch_tokens> M{"M"};
inline constexpr stowage::dim<&decode_params::hidden> hidden{};

struct decode_buffers {
  /// Tokens of the step, written by the host.
  stowage::buffer<std::uint32_t, stowage::shape<M>, stowage::zero::never> token_ids;
  /// Hidden states between layers.
  stowage::buffer<stowage::bf16, stowage::shape<M, hidden>, stowage::zero::rows> hidden_states;
  /// Queries, keys and values; the matrix multiplication writes ceil16(M) rows.
  stowage::buffer<stowage::bf16, stowage::shape<stowage::pad<16>(M), 3 * hidden>, stowage::zero::rows>
      qkv_output;
};
// [buffers]

namespace {

constexpr int skipped = 77; // for CTest
constexpr std::size_t capacity = 64;
constexpr int stale = 0x3f; // what an earlier step left behind

int failures = 0;

void check(bool right, const char* what) {
  if (!right) {
    std::printf("WRONG: %s\n", what);
    ++failures;
  }
}

void cuda_call(cudaError_t code) {
  if (code != cudaSuccess) {
    std::printf("WRONG: CUDA says %s\n", cudaGetErrorString(code));
    std::exit(1);
  }
}

/// Whether the first `cleared` bytes of some device memory are 0 and the rest is stale.
bool cleared_up_to(const void* address, std::size_t bytes, std::size_t cleared) {
  std::vector<unsigned char> memory(bytes);
  cuda_call(cudaMemcpy(memory.data(), address, bytes, cudaMemcpyDefault));
  const auto border = memory.begin() + static_cast<std::ptrdiff_t>(cleared);
  return std::all_of(memory.begin(), border, [](unsigned char byte) { return byte == 0; }) &&
         std::all_of(border, memory.end(), [](unsigned char byte) { return byte == stale; });
}

void run() {
  cudaStream_t stream = nullptr;
  cuda_call(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  // [arena]
  constexpr decode_params params{.max_batch_tokens = stowage::tokens{capacity}, .hidden = 512};
  constexpr auto plan = stowage::make_plan<decode_buffers>(params);
  stowage::arena arena(plan, stowage::cuda::backend{}, {.stream = stream}); // loads the zero kernel
  // [arena]

  std::uint32_t* tokens = nullptr; // where the host writes the tokens of the next step
  cuda_call(cudaHostAlloc(reinterpret_cast<void**>(&tokens), capacity * sizeof(std::uint32_t),
                          cudaHostAllocDefault));
  std::fill_n(tokens, capacity, 0U);

  // [capture]
  cuda_call(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  const stowage::cuda::zero_node zero_rows =
      stowage::cuda::capture_zero_rows(arena, stream, stowage::tokens{1});
  cuda_call(cudaMemcpyAsync(arena->token_ids.data(), tokens, arena->token_ids.bytes(), cudaMemcpyHostToDevice,
                            stream));
  // ... the layers of the model ...
  cudaGraph_t graph = nullptr;
  cuda_call(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t step = nullptr;
  cuda_call(cudaGraphInstantiate(&step, graph, 0));
  const std::uint64_t generation = arena.generation(); // of the addresses in the graph
  // [capture]

  constexpr std::array<std::size_t, 9> batches{1, 7, 16, 17, 3, 64, 63, 32, 1};
  std::size_t in_graph = 1;
  for (std::size_t index = 0; index < batches.size(); ++index) {
    const std::size_t batch = batches[index];
    for (std::size_t token = 0; token < batch; ++token)
      tokens[token] = static_cast<std::uint32_t>(1000 * index + token);
    cuda_call(cudaMemsetAsync(arena->hidden_states.data(), stale, arena->hidden_states.bytes(), stream));
    cuda_call(cudaMemsetAsync(arena->qkv_output.data(), stale, arena->qkv_output.bytes(), stream));

    // [step]
    arena.require_generation(generation);
    if (batch != in_graph) {
      zero_rows.update(step, arena.row_segments(stowage::tokens{batch}).view());
      in_graph = batch;
    }
    cuda_call(cudaGraphLaunch(step, stream));
    // [step]
    cuda_call(cudaStreamSynchronize(stream)); // before the host writes the next tokens

    const std::size_t row = params.hidden * sizeof(stowage::bf16);
    const std::size_t padded = (batch + 15) / 16 * 16;
    check(cleared_up_to(arena->hidden_states.data(), arena->hidden_states.bytes(), batch * row),
          "the rows of the batch are cleared, and no others");
    check(cleared_up_to(arena->qkv_output.data(), arena->qkv_output.bytes(), padded * 3 * row),
          "ceil16 of the rows are cleared where the matrix multiplication writes them");
    std::vector<std::uint32_t> on_device(batch);
    cuda_call(cudaMemcpy(on_device.data(), arena->token_ids.data(), batch * sizeof(std::uint32_t),
                         cudaMemcpyDefault));
    check(std::equal(on_device.begin(), on_device.end(), tokens), "the tokens of the step are there");
    std::printf("step %zu: %2zu tokens, %2zu rows of qkv_output cleared\n", index, batch, padded);
  }

  cuda_call(cudaGraphExecDestroy(step));
  cuda_call(cudaGraphDestroy(graph));
  check(arena.release().ok(), "the arena gives its memory back");
  cuda_call(cudaFreeHost(tokens));
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
