#pragma once

#include <stowage/arena.hpp>
#include <stowage/checksum.hpp>
#include <stowage/cuda/backend.hpp>
#include <stowage/cuda/checksum_arguments.hpp>
#include <stowage/cuda/device.hpp>
#include <stowage/cuda/error.hpp>
#include <stowage/cuda/kernel_library.hpp>
#include <stowage/cuda/stream.hpp>

#include <cuda_runtime_api.h>

#if defined(__CUDACC__)
#include <stowage/cuda/checksum_kernel.cuh>
#else
#include <stowage/cuda/checksum_kernel_ptx.hpp>
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace stowage::inline v0_1::cuda {

namespace detail {

#if defined(__CUDACC__)
/// A template, so that every .cu file can have it.
template <class Arguments>
__global__ void __launch_bounds__(checksum_threads)
    checksum_buffers(const __grid_constant__ Arguments arguments) {
  checksum_share(arguments);
}
inline const void* checksum_kernel_handle() {
  return reinterpret_cast<const void*>(&checksum_buffers<checksum_arguments>);
}
#else
inline const void* checksum_kernel_handle() {
  static const void* const kernel =
      kernel_from_ptx(checksum_kernel_ptx, "stowage_checksum", "loading the checksum kernel");
  return kernel;
}
#endif

} // namespace detail

/// The memory that checksums on the device need: 128 KiB there and as much on the host, taken once. On the
/// device that is current when it is made. Not for two checksums at once.
class checksum_workspace {
public:
  checksum_workspace() : device_(current_device()), host_(std::make_unique<partials>()) {
    detail::load_on_current_device(detail::checksum_kernel_handle(), "loading the checksum kernel");
    void* memory = nullptr;
    detail::check(cudaMalloc(&memory, sizeof(partials)), "cudaMalloc", "the workspace of checksums");
    on_device_ = static_cast<detail::checksum_partial*>(memory);
  }
  ~checksum_workspace() {
    const device_guard guard(device_);
    static_cast<void>(cudaFree(on_device_)); // also while the runtime is being unloaded
  }
  checksum_workspace(const checksum_workspace&) = delete;
  checksum_workspace& operator=(const checksum_workspace&) = delete;

private:
  using partials = std::array<detail::checksum_partial,
                              std::size_t{detail::most_checksum_buffers} * detail::checksum_blocks>;

  template <class Tag, class Fields, class Params, class Backend, class Sink>
  friend void checksum(arena<Fields, Params, Backend>&, stream, checksum_workspace&, const Sink&);

  int device_;
  detail::checksum_partial* on_device_ = nullptr;
  std::unique_ptr<partials> host_;
};

/// As stowage::checksum, but added up on the device: every listed buffer is read there once, in one launch
/// for up to 64 buffers, and only partial sums come to the host. The same bytes give the same sums on every
/// run. They differ from the host's, which adds in another order, by at most n * 2^-52 of the sum of the
/// magnitudes (of the squares), where n is the number of lanes. Throws as stowage::checksum does, and error
/// where a call fails.
template <class Tag, class Fields, class Params, class Backend, class Sink>
void checksum(arena<Fields, Params, Backend>& arena, stream on, checksum_workspace& workspace,
              const Sink& sink) {
  using plan_type = typename stowage::arena<Fields, Params, Backend>::plan_type;
  arena.require_memory("checksum");
  const device_guard guard(workspace.device_);
  guard.check();
  if (is_capturing(on)) stowage::detail::refuse_during_capture("a checksum, which waits for the stream,");
  constexpr auto& listed = stowage::detail::fields_with_tag<Fields, Tag>;

  std::size_t field = 0;
  while (field < plan_type::field_count) {
    detail::checksum_arguments arguments;
    arguments.partials = workspace.on_device_;
    std::array<std::size_t, detail::most_checksum_buffers> fields{};
    unsigned int buffers = 0;
    for (; field < plan_type::field_count && buffers < detail::most_checksum_buffers; ++field) {
      if (!listed[field] || arena.address(field) == nullptr) continue;
      const auto address = reinterpret_cast<std::uintptr_t>(arena.address(field));
      if (address % 4 != 0) {
        throw usage_error(
            "stowage: a checksum on the device needs buffers that are aligned to 4; use align<4>");
      }
      arguments.address[buffers] = address;
      arguments.lanes[buffers] = arena.plan().bytes(field) / 4;
      fields[buffers++] = field;
    }
    if (buffers == 0) return;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(detail::checksum_blocks, buffers);
    config.blockDim = dim3(detail::checksum_threads);
    config.stream = on.get();
    void* parameters[] = {&arguments};
    detail::check(cudaLaunchKernelExC(&config, detail::checksum_kernel_handle(), parameters),
                  "cudaLaunchKernelExC", "adding up checksums");
    const std::size_t count = std::size_t{buffers} * detail::checksum_blocks;
    detail::check(cudaMemcpyAsync(workspace.host_->data(), workspace.on_device_,
                                  count * sizeof(detail::checksum_partial), cudaMemcpyDeviceToHost, on.get()),
                  "cudaMemcpyAsync", "fetching partial checksums");
    detail::check(cudaStreamSynchronize(on.get()), "cudaStreamSynchronize", "waiting for checksums");
    for (unsigned int buffer = 0; buffer < buffers; ++buffer) {
      field_checksum result{arena.plan().name(fields[buffer]), arena.plan().bytes(fields[buffer])};
      for (unsigned int block = 0; block < detail::checksum_blocks; ++block) {
        const detail::checksum_partial& partial =
            (*workspace.host_)[std::size_t{buffer} * detail::checksum_blocks + block];
        result.sum += partial.sum;
        result.sum_of_squares += partial.sum_of_squares;
        result.sum_of_magnitudes += partial.sum_of_magnitudes;
        result.skipped_lanes += static_cast<std::size_t>(partial.skipped_lanes);
      }
      sink(static_cast<const field_checksum&>(result));
    }
  }
}

} // namespace stowage::inline v0_1::cuda
