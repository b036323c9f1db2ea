#pragma once

#include <stowage/arena.hpp>
#include <stowage/cuda/backend.hpp>
#include <stowage/cuda/error.hpp>
#include <stowage/cuda/zero_kernel.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

namespace stowage::inline v0_1::cuda {

/// One kernel node that clears the segments of a pass, and that an instantiated graph can take other segments
/// for: another number of tokens without another instantiation. Refers to the graph's node; cheap to copy.
class zero_node {
public:
  /// Adds a node to a graph, behind the given ones. At most 120 segments, now and in updates; throws
  /// usage_error beyond.
  zero_node(cudaGraph_t graph, std::span<const cudaGraphNode_t> dependencies,
            std::span<const segment> segments) {
    const launch with(segments);
    detail::check(
        cudaGraphAddKernelNode(&node_, graph, dependencies.data(), dependencies.size(), &with.parameters),
        "cudaGraphAddKernelNode", "adding a zero pass to a graph");
  }

  /// Captures a zero pass as one kernel node on a stream that is capturing, and keeps hold of the node.
  /// Throws usage_error where the stream does not capture. The stream's device must be the current one.
  static zero_node capture(stream on, std::span<const segment> segments) {
    if (!is_capturing(on)) throw usage_error("stowage: zero_node::capture needs a stream that is capturing");
    check_count(segments.size());
    detail::launch_zero_kernel_once<detail::most_zero_segments>(on, segments);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaGraphNode_t* last = nullptr;
    std::size_t count = 0;
#if CUDART_VERSION >= 13000
    const cudaGraphEdgeData* edges = nullptr;
    detail::check(cudaStreamGetCaptureInfo(on.get(), &status, nullptr, nullptr, &last, &edges, &count),
                  "cudaStreamGetCaptureInfo", "finding the node of a zero pass");
#else
    detail::check(cudaStreamGetCaptureInfo_v2(on.get(), &status, nullptr, nullptr, &last, &count),
                  "cudaStreamGetCaptureInfo_v2", "finding the node of a zero pass");
#endif
    if (count != 1)
      throw usage_error("stowage: the captured zero pass is not the one last node of its stream");
    return zero_node(last[0]);
  }

  /// Gives an instantiated graph other segments for this node, for its next launch. No allocation, no
  /// instantiation.
  void update(cudaGraphExec_t graph, std::span<const segment> segments) const {
    const launch with(segments);
    detail::check(cudaGraphExecKernelNodeSetParams(graph, node_, &with.parameters),
                  "cudaGraphExecKernelNodeSetParams", "updating a zero pass in a graph");
  }

  /// The kernel node of the captured graph.
  [[nodiscard]] cudaGraphNode_t node() const noexcept { return node_; }

private:
  explicit zero_node(cudaGraphNode_t node) : node_(node) {}

  static void check_count(std::size_t count) {
    if (count > detail::most_zero_segments) {
      throw usage_error("stowage: a zero node takes at most 120 segments; use several nodes");
    }
  }

  /// The parameters of the node; CUDA copies what they point at during the call.
  struct launch {
    explicit launch(std::span<const segment> segments) {
      check_count(segments.size());
      const unsigned int blocks = detail::fill_zero_arguments(arguments, segments);
      parameters.func = const_cast<void*>(detail::zero_kernel_handle<detail::most_zero_segments>());
      parameters.gridDim = dim3(blocks);
      parameters.blockDim = dim3(detail::zero_threads);
      parameters.kernelParams = pointers;
    }
    ~launch() = default;
    launch(const launch&) = delete;
    launch& operator=(const launch&) = delete;

    detail::zero_arguments<detail::most_zero_segments> arguments;
    void* pointers[1] = {&arguments};
    cudaKernelNodeParams parameters{};
  };

  cudaGraphNode_t node_ = nullptr;
};

/// Captures the row pass of an arena over `count` tokens as a node that can be updated for another count:
/// `node.update(graph, arena.row_segments(other).view())`. The arena's device must be the current one.
template <class Fields, class Params, class Backend>
[[nodiscard]] zero_node capture_zero_rows(const arena<Fields, Params, Backend>& arena, stream on,
                                          tokens count) {
  return zero_node::capture(on, arena.row_segments(count).view());
}

} // namespace stowage::inline v0_1::cuda
