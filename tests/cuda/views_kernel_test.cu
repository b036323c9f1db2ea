// Views and field lists in kernels, passed by value.

#include "device.hpp"
#include "fields.hpp"

#include <stowage/arena.hpp>
#include <stowage/cuda/backend.hpp>
#include <stowage/cuda/views.hpp>
#include <stowage/llm/forward_arena.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace {

using stowage::buffer;
using stowage::shape;
using stowage::tokens;
using test::M;
namespace scuda = stowage::cuda;
namespace zero = stowage::zero;

struct fields {
  buffer<float, shape<M, 3, 5>, zero::rows> cube;
  buffer<float, shape<M, 2>, zero::rows, stowage::when<&test::row_params::off>> absent;
  buffer<stowage::regions<test::pieces>, zero::rows> carved;
  buffer<float, shape<M, 4>, zero::never, stowage::copies<2>> twice;
};

/// What a kernel saw of a field list.
struct seen {
  bool absent_is_null;
  bool absent_is_empty;
  bool present_is_not_null;
  unsigned long long cube_extents[3];
  unsigned long long limited_rows;
  unsigned long long bytes;
};

__global__ void look(fields view, std::size_t rows, seen* out) {
  const auto cube = scuda::view(view.cube);
  out->absent_is_null = view.absent.data() == nullptr && !view.absent;
  out->absent_is_empty = scuda::view(view.absent).size() == 0 && view.absent.size() == 0;
  out->present_is_not_null = static_cast<bool>(view.cube);
  for (int axis = 0; axis < 3; ++axis) out->cube_extents[axis] = cube.extent(static_cast<std::size_t>(axis));
  out->limited_rows = scuda::view_rows(view.cube, rows).extent(0);
  out->bytes = view.cube.bytes();
}

/// Numbers the elements of the first rows.
__global__ void number(fields view, std::size_t rows) {
  const auto cube = scuda::view_rows(view.cube, rows);
  for (std::size_t row = blockIdx.x; row < cube.extent(0); row += gridDim.x) {
    for (std::size_t element = threadIdx.x; element < cube.extent(1) * cube.extent(2);
         element += blockDim.x) {
      const std::size_t middle = element / cube.extent(2);
      const std::size_t last = element % cube.extent(2);
      cube(row, middle, last) = static_cast<float>(row * 100 + middle * 10 + last);
    }
  }
}

/// Adds up rows of a part; reads what was poisoned and cleared before.
__global__ void sum_part(fields view, std::size_t rows, float* out) {
  const auto floats = scuda::view_rows(view.carved->floats, rows);
  float sum = 0;
  for (std::size_t row = 0; row < floats.extent(0); ++row) {
    for (std::size_t column = 0; column < floats.extent(1); ++column) sum += floats(row, column);
  }
  *out = sum;
}

/// The whole forward arena as one argument.
__global__ void look_at_forward(stowage::llm::forward_buffers view, const void** out) {
  out[0] = view.hidden_states.data();
  out[1] = view.logits.data();
  out[2] = view.ssd_scratch.data();
  out[3] = view.fp8_act.data();
  out[4] = view.lora_xa.data();
}
static_assert(sizeof(stowage::llm::forward_buffers) < 32764, "the limit of a kernel's parameters");

template <class Type> class on_device_value {
public:
  explicit on_device_value(std::size_t count = 1) {
    test::cuda(cudaMalloc(&address_, count * sizeof(Type)));
    test::cuda(cudaMemset(address_, test::poison, count * sizeof(Type)));
  }
  ~on_device_value() { static_cast<void>(cudaFree(address_)); }
  on_device_value(const on_device_value&) = delete;
  on_device_value& operator=(const on_device_value&) = delete;
  [[nodiscard]] Type* get() const { return static_cast<Type*>(address_); }

private:
  void* address_ = nullptr;
};

template <class Type> std::vector<Type> copied(const Type* from, std::size_t count) {
  std::vector<Type> result(count);
  test::cuda(cudaMemcpy(result.data(), from, count * sizeof(Type), cudaMemcpyDefault));
  return result;
}

} // namespace

TEST_CASE("views in kernels: a field list by value") {
  const auto plan = stowage::make_plan<fields>(test::row_params{tokens{37}, false});
  const stowage::arena arena(plan, scuda::backend{});
  const on_device_value<seen> out;
  look<<<1, 1>>>(arena.device_view(), 11, out.get());
  test::cuda(cudaGetLastError());
  const seen got = copied(out.get(), 1)[0];
  CHECK(got.absent_is_null);
  CHECK(got.absent_is_empty);
  CHECK(got.present_is_not_null);
  CHECK(got.cube_extents[0] == 37);
  CHECK(got.cube_extents[1] == 3);
  CHECK(got.cube_extents[2] == 5);
  CHECK(got.limited_rows == 11);
  CHECK(got.bytes == 37 * 15 * sizeof(float));
}

TEST_CASE("views in kernels: writes stay within the rows of the batch") {
  const auto plan = stowage::make_plan<fields>(test::row_params{tokens{37}, false});
  const stowage::arena arena(plan, scuda::backend{});
  for (const std::size_t rows :
       {std::size_t{0}, std::size_t{1}, std::size_t{16}, std::size_t{37}, std::size_t{40}}) {
    CAPTURE(rows);
    test::poison_memory(arena);
    number<<<4, 32>>>(arena.device_view(), rows);
    test::cuda(cudaGetLastError());
    test::cuda(cudaDeviceSynchronize());
    const std::size_t there = rows < 37 ? rows : 37;
    const auto cube = copied(arena->cube.data(), arena->cube.size());
    std::size_t wrong = 0;
    for (std::size_t index = 0; index < there * 15; ++index) {
      const auto wanted = static_cast<float>(index / 15 * 100 + index % 15 / 5 * 10 + index % 5);
      wrong += cube[index] == wanted ? 0 : 1;
    }
    CHECK(wrong == 0);
    const auto rest = test::read_back(arena->cube.data() + there * 15, (37 - there) * 15 * sizeof(float));
    CHECK(test::first_difference(rest, {}) == rest.size());
  }
}

TEST_CASE("views in kernels: a part after a row pass") {
  const auto plan = stowage::make_plan<fields>(test::row_params{tokens{37}, false});
  stowage::arena arena(plan, scuda::backend{});
  test::poison_memory(arena);
  arena.zero_rows({}, tokens{20});
  const on_device_value<float> out;
  sum_part<<<1, 1>>>(arena.device_view(), 20, out.get());
  test::cuda(cudaGetLastError());
  CHECK(copied(out.get(), 1)[0] == 0.0F);
  sum_part<<<1, 1>>>(arena.device_view(), 21, out.get());
  test::cuda(cudaGetLastError());
  CHECK(copied(out.get(), 1)[0] != 0.0F);
}

TEST_CASE("views in kernels: the forward arena as one argument") {
  const auto arena = stowage::llm::make_forward_arena(test::llama(64), scuda::backend{});
  const on_device_value<const void*> out(5);
  look_at_forward<<<1, 1>>>(arena.device_view(), out.get());
  test::cuda(cudaGetLastError());
  const auto got = copied(out.get(), 5);
  CHECK(got[0] == arena->hidden_states.data());
  CHECK(got[1] == arena->logits.data());
  CHECK(got[2] == nullptr); // no Mamba-2 layers
  CHECK(got[3] == arena->fp8_act.data());
  CHECK(got[4] == nullptr); // no adapters
}
