// The zeroing experiment on a GPU: the step is a few copies on a stream, one of which reads a stale row. Plain
// C++, no nvcc. examples/zeroing_experiment.cpp says more on the host.

#include <stowage/backend/withholding.hpp>
#include <stowage/cuda/backend.hpp>
#include <stowage/stowage.hpp>
#include <stowage/zeroing_needs.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string_view>
#include <vector>

struct params {
  stowage::tokens max_tokens;
  std::size_t hidden;
};
inline constexpr stowage::dim<&params::max_tokens> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};

struct buffers {
  /// Hidden states of the batch, which the layers before left here: an input.
  stowage::buffer<stowage::bf16, stowage::shape<M, hidden>, stowage::zero::never> hidden_states;
  /// Input of a multiplication that works on tiles of 16 rows.
  stowage::buffer<stowage::bf16, stowage::shape<M, hidden>, stowage::zero::rows> normalised;
  /// What the multiplication writes: every row of its tiles.
  stowage::buffer<stowage::bf16, stowage::shape<stowage::pad<16>(M), hidden>, stowage::zero::rows> product;
  stowage::buffer<float, stowage::shape<4>, stowage::zero::never> penalties;
  stowage::buffer<stowage::bf16, stowage::shape<hidden>, stowage::zero::never> last_row;
  stowage::buffer<float, stowage::shape<4>, stowage::zero::never> applied;
};

namespace {

constexpr int skipped = 77; // for CTest
constexpr params limits{.max_tokens = stowage::tokens{32}, .hidden = 512};
constexpr std::size_t batch = 7;

int failures = 0;

void check(bool right, const char* what) {
  if (right) return;
  std::printf("WRONG: %s\n", what);
  ++failures;
}

void copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  const cudaError_t code = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
  if (code == cudaSuccess) return;
  std::printf("WRONG: CUDA says %s\n", cudaGetErrorString(code));
  ++failures;
}

/// One step. Copies stand for the kernels.
template <class Arena> void decode_step(Arena& arena, cudaStream_t stream) {
  constexpr std::size_t row = limits.hidden * sizeof(stowage::bf16);
  arena.zero_rows(stream, stowage::tokens{batch});
  copy(arena->normalised.data(), arena->hidden_states.data(), batch * row, stream);
  copy(arena->product.data(), arena->normalised.data(), 16 * row, stream); // 16 rows, of which 7 were written
  copy(arena->last_row.data(), arena->product.data() + 15 * limits.hidden, row, stream);  // 15, not batch - 1
  copy(arena->applied.data(), arena->penalties.data(), arena->penalties.bytes(), stream); // never written
}

bool says(const stowage::zeroing_needs& needs, std::string_view field, stowage::zeroing_verdict verdict) {
  const stowage::zeroing_need* need = needs.find(field);
  return need != nullptr && need->verdict == verdict;
}

void run() {
  cudaStream_t stream = nullptr;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) {
    check(false, "a stream");
    return;
  }
  {
    const auto plan = stowage::make_plan<buffers>(limits);
    stowage::arena arena(plan, stowage::withholding_backend(stowage::cuda::backend{}), {.stream = stream});
    const std::vector<stowage::bf16> states(arena->hidden_states.size(), stowage::bf16{0x3f80}); // 1
    arena.backend().copy_from_host(stream, arena->hidden_states.data(), states.data(),
                                   arena->hidden_states.bytes());
    const stowage::zeroing_needs needs =
        stowage::find_zeroing_needs(arena, [&](auto& each) { decode_step(each, stream); },
                                    {arena->last_row.memory(), arena->applied.memory()},
                                    {.stream = stream, .keep = {plan.index_of<&buffers::hidden_states>()}});
    std::printf("%s", needs.text().c_str());

    using verdict = stowage::zeroing_verdict;
    check(needs.deterministic, "the step is deterministic");
    check(says(needs, "hidden_states", verdict::kept), "the hidden states are an input");
    check(says(needs, "normalised", verdict::too_little), "row 15 is stale");
    check(needs.find("normalised")->first_byte == 15 * limits.hidden * 2, "from its first byte");
    check(needs.find("normalised")->last_byte == 16 * limits.hidden * 2 - 1, "to its last");
    check(says(needs, "product", verdict::waste), "the product is written before it is read");
    check(says(needs, "penalties", verdict::lie), "the penalties are never written");
    check(says(needs, "last_row", verdict::not_needed), "the outputs are written");
    std::vector<stowage::bf16> after(states.size());
    arena.backend().copy_to_host(stream, after.data(), arena->hidden_states.data(),
                                 arena->hidden_states.bytes());
    arena.backend().synchronize(stream);
    check(after.back().bits == 0x3f80, "the input is as it was");
    check(arena.release().ok(), "the arena gives its memory back");
  }
  check(cudaStreamDestroy(stream) == cudaSuccess, "the stream is destroyed");
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
