// A serve batch above 128.
// expect-gcc: size_of_field_has_no_value.*"logits"
// expect-clang: constexpr variable 'plan' must be initialized by a constant expression
// expect-nvcc: expression must have a constant value

#include <stowage/llm/forward_buffers.hpp>

constexpr stowage::llm::forward_params params(int batch) {
  stowage::llm::forward_params result{};
  result.max_batch_size = batch;
  return result;
}

#if defined(STOWAGE_MUST_NOT_COMPILE)
inline constexpr auto plan = stowage::make_plan<stowage::llm::forward_buffers>(params(129));
#else
inline constexpr auto plan = stowage::make_plan<stowage::llm::forward_buffers>(params(128));
#endif
