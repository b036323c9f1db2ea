// Any bytes as a config.json: a model or a config_error of one printable line, nothing else. What is accepted can be
// planned, or is refused with a size_error.

#include "require.hpp"

#include <planner/config_reader.hpp>
#include <planner/options.hpp>

#include <stowage/llm/forward_buffers.hpp>
#include <stowage/llm/forward_params.hpp>
#include <stowage/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

namespace {

bool is_one_line(std::string_view text) {
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte < 0x20 || byte == 0x7f) return false;
  }
  return !text.empty();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream input(std::string(reinterpret_cast<const char*>(data), size));
  stowage::llm::model_config model;
  try {
    model = planner::read_model_config(input, "fuzz");
  } catch (const planner::config_error& error) {
    const std::string_view message = error.what();
    fuzz::require(message.starts_with("fuzz: "), "a message names its source");
    fuzz::require(is_one_line(message), "a message is one line");
    fuzz::require(message.size() < 1000, "a message is short");
    return 0;
  }
  for (const planner::config_key& key : planner::config_keys()) {
    if (key.number != nullptr) fuzz::require(model.*key.number >= key.smallest, "a number is in its range");
  }
  planner::options wanted;
  wanted.max_batch_tokens = 33;
  try {
    const auto plan =
        stowage::make_plan<stowage::llm::forward_buffers>(planner::forward_params_of(wanted, model));
    fuzz::require(plan.slab_bytes() >= plan.total_bytes(), "a slab holds its fields");
  } catch (const stowage::size_error& error) {
    fuzz::require(std::string_view{error.what()}.starts_with("stowage: "), "a size error names the library");
  }
  return 0;
}
