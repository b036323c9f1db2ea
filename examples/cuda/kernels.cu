// An arena on a GPU, its buffers in kernels, and the tools around it, in a file for nvcc.

// [declare]
#include <cuda_bf16.h>
#include <stowage/stowage.hpp>

struct params {
  stowage::tokens max_tokens;
  std::size_t hidden;
};
inline constexpr stowage::dim<&params::max_tokens> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};

struct checked; // a tag: never defined

struct buffers {
  stowage::buffer<__nv_bfloat16, stowage::shape<M, hidden>, stowage::zero::rows> states;
  stowage::buffer<float, stowage::shape<M>, stowage::zero::rows, stowage::tag<checked>> sums;
};
// [declare]

#include <stowage/checksum.hpp>
#include <stowage/cuda/backend.hpp>
#include <stowage/cuda/checksum.hpp>
#include <stowage/cuda/graph.hpp>
#include <stowage/cuda/nvtx.hpp>
#include <stowage/cuda/resource.hpp>
#include <stowage/cuda/views.hpp>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

// [views]
__global__ void sum_rows(buffers all) {
  const std::size_t row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= all.states.extent(0)) return;
  const auto states = stowage::cuda::view(all.states); // a cuda::std::mdspan
  float sum = 0;
  for (std::size_t column = 0; column < states.extent(1); ++column)
    sum += __bfloat162float(states(row, column));
  all.sums.data()[row] = sum;
}
// [views]

// [handle]
__global__ void clear_sums(stowage::tensor_handle<float, 1, true> sums) {
  const std::size_t row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < sums.extent(0)) sums.data()[row] = 0;
}
// [handle]

namespace {

constexpr int skipped = 77; // for CTest

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

std::vector<float> on_host(const float* device, std::size_t count) {
  std::vector<float> values(count);
  cuda_call(cudaMemcpy(values.data(), device, count * sizeof(float), cudaMemcpyDefault));
  return values;
}

/// A memory resource of an engine's own, of CCCL's kind.
struct engine_resource {
  std::size_t given = 0;
  void* allocate(std::size_t bytes, std::size_t) {
    void* address = nullptr;
    cuda_call(cudaMalloc(&address, bytes));
    given += bytes;
    return address;
  }
  void deallocate(void* address, std::size_t bytes, std::size_t) {
    cuda_call(cudaFree(address));
    given -= bytes;
  }
};

void run() {
  constexpr auto plan = stowage::make_plan<buffers>(params{stowage::tokens{100}, 3});
  cudaStream_t stream = nullptr;
  cuda_call(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  // [arena]
  stowage::cuda::backend device(0);            // throws where the device cannot be used
  stowage::arena arena(plan, device);          // one cudaMalloc
  arena.zero_rows(stream, stowage::tokens{7}); // one launch, or one node of the graph being captured
  // [arena]

  // Row r is {r, r, r}, exactly.
  std::vector<__nv_bfloat16> rows;
  for (int row = 0; row < 100; ++row)
    for (int column = 0; column < 3; ++column) rows.push_back(__float2bfloat16(static_cast<float>(row)));
  cuda_call(
      cudaMemcpyAsync(arena->states.data(), rows.data(), arena->states.bytes(), cudaMemcpyDefault, stream));

  constexpr unsigned blocks = 1;
  // [launch]
  sum_rows<<<blocks, 256, 0, stream>>>(arena.device_view());
  // [launch]
  cuda_call(cudaGetLastError());
  cuda_call(cudaStreamSynchronize(stream));
  const std::vector<float> sums = on_host(arena->sums.data(), arena->sums.size());
  std::printf("sum of row 7: %g, of row 99: %g\n", static_cast<double>(sums[7]),
              static_cast<double>(sums[99]));
  check(sums[7] == 21.0F && sums[99] == 297.0F, "a kernel reads and writes the fields");

  double total = 0;
  // [checksum]
  stowage::cuda::checksum_workspace workspace; // once: 128 KiB on the device
  stowage::cuda::checksum<checked>(arena, stream, workspace, [&](const stowage::field_checksum& one) {
    std::printf("%s\n", stowage::format("step", one).c_str());
    total = one.sum;
  });
  // [checksum]
  check(total == 3.0 * 99 * 100 / 2, "the checksum adds up the sums");

  // [launch_handle]
  clear_sums<<<blocks, 256, 0, stream>>>(arena->sums);
  // [launch_handle]
  cuda_call(cudaGetLastError());
  cuda_call(cudaStreamSynchronize(stream));
  check(on_host(arena->sums.data(), 100)[99] == 0.0F, "a kernel takes one field");

  // [tools]
  stowage::cuda::nvtx_memory names(arena); // after the arena; goes before it
  // [tools]
  // [ranges]
  stowage::arena traced(plan, stowage::cuda::nvtx_backend{stowage::cuda::backend(0)});
  // [ranges]
  traced.zero_all(stream);

  engine_resource resource;
  {
    // [resource]
    stowage::cuda::resource_backend backend(resource, stream); // a resource of CCCL's or RMM's kind
    stowage::arena from_resource(plan, backend);
    // [resource]
    check(resource.given == plan.slab_bytes(), "the slab comes from the engine's resource");
    from_resource.zero_all(stream);
    cuda_call(cudaStreamSynchronize(stream));
  }
  check(resource.given == 0, "and goes back to it");
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
