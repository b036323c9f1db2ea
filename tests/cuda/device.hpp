#pragma once

// What several tests on a device do: streams, poison, and reading memory back byte for byte.

#include "../support/model_params.hpp"

#include <stowage/arena.hpp>
#include <stowage/cuda/backend.hpp>
#include <stowage/llm/forward_arena.hpp>

#include <doctest/doctest.h>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace test {

/// What memory holds before a pass.
inline constexpr unsigned char poison = 0xa5;

/// Ends the test case where a call of the runtime fails.
inline void cuda(cudaError_t code) {
  INFO("CUDA says ", std::string(cudaGetErrorName(code)));
  REQUIRE(code == cudaSuccess);
}

/// A stream that waits for no other.
class stream {
public:
  stream() { cuda(cudaStreamCreateWithFlags(&native_, cudaStreamNonBlocking)); }
  ~stream() { static_cast<void>(cudaStreamDestroy(native_)); }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

  [[nodiscard]] cudaStream_t get() const { return native_; }
  void wait() const { cuda(cudaStreamSynchronize(native_)); }

private:
  cudaStream_t native_ = nullptr;
};

/// Makes a device current and the one before again, so that a failed test leaves no trace.
class on_device {
public:
  explicit on_device(int device) {
    cuda(cudaGetDevice(&before_));
    cuda(cudaSetDevice(device));
  }
  ~on_device() { static_cast<void>(cudaSetDevice(before_)); }
  on_device(const on_device&) = delete;
  on_device& operator=(const on_device&) = delete;

private:
  int before_ = 0;
};

inline int device_count() {
  int count = 0;
  cuda(cudaGetDeviceCount(&count));
  return count;
}

/// Every kind of memory that the current device has.
inline std::vector<stowage::cuda::memory_kind> memory_kinds() {
  using stowage::cuda::memory_kind;
  std::vector<memory_kind> kinds{memory_kind::device, memory_kind::pinned};
  const auto add = [&](memory_kind kind, cudaDeviceAttr attribute) {
    int value = 0;
    cuda(cudaDeviceGetAttribute(&value, attribute, stowage::cuda::current_device()));
    if (value != 0) {
      kinds.push_back(kind);
    } else {
      MESSAGE("SKIPPED: a kind of memory that this device does not have");
    }
  };
  add(memory_kind::pool, cudaDevAttrMemoryPoolsSupported);
  add(memory_kind::managed, cudaDevAttrManagedMemory);
  return kinds;
}

/// Replays of a graph: thousands, or what STOWAGE_CUDA_REPLAYS says, for tools that make each one slow.
inline int replays() {
  const char* const text = std::getenv("STOWAGE_CUDA_REPLAYS");
  const int wanted = text == nullptr ? 0 : std::atoi(text);
  return wanted > 0 ? wanted : 5000;
}

/// Fills every allocation of an arena on the current device, what lies between the fields too, and waits.
template <class Arena> void poison_memory(const Arena& arena) {
  cuda(cudaDeviceSynchronize());
  if (arena.slab() != nullptr) {
    cuda(cudaMemset(arena.slab(), poison, arena.plan().slab_bytes()));
  } else {
    for (std::size_t field = 0; field < Arena::plan_type::field_count; ++field) {
      if (arena.address(field) == nullptr) continue;
      cuda(cudaMemset(arena.address(field), poison, arena.plan().layout(field).allocated()));
    }
  }
  cuda(cudaDeviceSynchronize());
}

/// A range of bytes, counted from the start of its field.
struct range {
  std::size_t begin = 0;
  std::size_t end = 0;
};
using ranges = std::vector<range>;

/// The first byte that is not what it should be: zero inside of `cleared`, poison elsewhere. The size of the
/// memory if there is none.
inline std::size_t first_difference(const std::vector<unsigned char>& memory, const ranges& cleared) {
  std::vector<unsigned char> expected(memory.size(), poison);
  for (const range& part : cleared) {
    const std::size_t end = std::min(part.end, memory.size());
    if (part.begin < end) std::memset(expected.data() + part.begin, 0, end - part.begin);
  }
  const auto found = std::mismatch(memory.begin(), memory.end(), expected.begin());
  return static_cast<std::size_t>(found.first - memory.begin());
}

inline std::vector<unsigned char> read_back(const void* address, std::size_t bytes) {
  std::vector<unsigned char> memory(bytes);
  if (bytes != 0) cuda(cudaMemcpy(memory.data(), address, bytes, cudaMemcpyDefault));
  return memory;
}

/// Reads every field back, copy for copy. `cleared(field)` gives the ranges of one copy of a field that a
/// pass has cleared; all else must still be poison.
template <class Arena, class Cleared> void check_fields(const Arena& arena, const Cleared& cleared) {
  cuda(cudaDeviceSynchronize());
  for (std::size_t field = 0; field < Arena::plan_type::field_count; ++field) {
    if (arena.address(field) == nullptr) continue;
    const stowage::field_layout& layout = arena.plan().layout(field);
    const ranges expected = cleared(field);
    for (std::size_t copy = 0; copy < layout.copies; ++copy) {
      const auto memory = read_back(arena.address(field) + copy * layout.stride, layout.bytes);
      const std::size_t difference = first_difference(memory, expected);
      INFO("field ", std::string(arena.plan().name(field)), ", copy ", copy);
      CHECK(difference == layout.bytes);
    }
  }
}

/// The ranges that a row pass clears of each field's first copy, as the plan says them.
template <class Plan>
std::vector<ranges> row_pass(const Plan& plan, std::size_t first, std::size_t last, bool with_full) {
  std::vector<ranges> result(Plan::field_count);
  plan.visit_row_pass(first, last, with_full, [&](std::size_t field, std::size_t begin, std::size_t end) {
    if (begin < plan.layout(field).bytes) result[field].push_back({begin, end});
  });
  return result;
}

/// A graph and what is instantiated from it.
class captured_graph {
public:
  /// Captures what `work()` enqueues on the stream.
  template <class Work> captured_graph(const stream& on, const Work& work) {
    cuda(cudaStreamBeginCapture(on.get(), cudaStreamCaptureModeThreadLocal));
    work();
    cuda(cudaStreamEndCapture(on.get(), &graph_));
    cuda(cudaGraphInstantiate(&executable_, graph_, 0));
  }
  ~captured_graph() {
    static_cast<void>(cudaGraphExecDestroy(executable_));
    static_cast<void>(cudaGraphDestroy(graph_));
  }
  captured_graph(const captured_graph&) = delete;
  captured_graph& operator=(const captured_graph&) = delete;

  [[nodiscard]] std::size_t nodes() const {
    std::size_t count = 0;
    cuda(cudaGraphGetNodes(graph_, nullptr, &count));
    return count;
  }
  [[nodiscard]] cudaGraphExec_t executable() const { return executable_; }
  void launch(const stream& on) const { cuda(cudaGraphLaunch(executable_, on.get())); }

private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

} // namespace test
