// Arguments, one a line: options, a help text or an option_error, nothing else. What is accepted makes params.

#include "require.hpp"

#include <planner/options.hpp>

#include <stowage/llm/levers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> texts;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    texts.emplace_back(line.substr(0, line.find('\0'))); // an argument of main ends there
  }
  std::vector<const char*> arguments;
  for (const std::string& text : texts) arguments.push_back(text.c_str());

  stowage::llm::levers environment;
  environment.fp8_rowwise = true;
  try {
    const planner::command_line line = planner::parse_command_line(arguments, environment);
    if (!line.wanted) {
      fuzz::require(!line.help.empty(), "without options there is a help text");
      return 0;
    }
    const planner::options& wanted = *line.wanted;
    for (const std::int64_t number : {wanted.max_batch_tokens, wanted.max_seq_len, wanted.kv_block_size,
                                      wanted.max_batch_size, wanted.sm_count, wanted.adapter_max_rank}) {
      fuzz::require(number >= 0, "a number is not negative");
    }
    fuzz::require(!wanted.tokens || *wanted.tokens >= 0, "tokens are not negative");
    const auto params = planner::forward_params_of(wanted, {});
    fuzz::require(params.max_batch_tokens.value == static_cast<std::size_t>(wanted.max_batch_tokens),
                  "the tokens arrive");
  } catch (const planner::option_error& error) {
    fuzz::require(error.what()[0] != '\0', "an error has a message");
  }
  return 0;
}
