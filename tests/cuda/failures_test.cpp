// The failure suite for the CUDA backend, over every kind of memory that the device has.

#include "../unit/failure_suite.hpp"
#include "device.hpp"

#include <stowage/cuda/backend.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace test {

/// Each kind of memory is a variant. Kinds that the device does not have are replaced by its own memory.
class cuda_source {
public:
  using backend_type = stowage::cuda::backend;
  static constexpr std::size_t variants = 4;

  explicit cuda_source(std::size_t variant) {
    static const std::vector<stowage::cuda::memory_kind> kinds = memory_kinds();
    kind_ = kinds[variant < kinds.size() ? variant : 0];
  }
  [[nodiscard]] backend_type make() {
    stowage::cuda::backend_options options;
    options.memory = kind_;
    options.stream = stowage::cuda::stream(stream_.get());
    return backend_type(options);
  }
  [[nodiscard]] stowage::cuda::stream stream() { return stowage::cuda::stream(stream_.get()); }

private:
  test::stream stream_;
  stowage::cuda::memory_kind kind_{};
};

namespace failures {
TEST_CASE_TEMPLATE_INVOKE(failure_suite, rig<cuda_source>, rig_behind_any<cuda_source>);
} // namespace failures

} // namespace test
