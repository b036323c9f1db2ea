#pragma once

#include <stowage/llm/forward_params.hpp>
#include <stowage/llm/levers.hpp>
#include <stowage/llm/model_config.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace planner {

/// A command line cannot be used. The message says which argument, what is wrong with it and what is wanted
/// instead.
class option_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

enum class command : unsigned char { plan, run };
enum class output_format : unsigned char { table, json };

/// What a command line asks for.
struct options {
  command what = command::plan;
  /// Path of the model's config.json.
  std::string config;
  std::int64_t max_batch_tokens = 8192;
  std::int64_t max_seq_len = 32768;
  std::int64_t kv_block_size = 16;
  std::int64_t max_batch_size = 32;
  std::int64_t sm_count = 132;
  std::int64_t adapter_max_rank = 0;
  /// Those of the environment, but for what the command line says.
  stowage::llm::levers switches{};
  /// Tokens of a row pass.
  std::optional<std::int64_t> tokens;
  output_format format = output_format::table;
  /// Path of the file that receives the result; empty for standard output.
  std::string output;
};

/// A read command line: what it asks for, or else the help text.
struct command_line {
  std::optional<options> wanted;
  std::string help;
  /// The help text was asked for, and is not there for want of a command.
  bool help_wanted = false;
};

/// Reads the arguments behind the program's name. `environment` are the levers that count where no option
/// replaces them. Throws option_error.
command_line parse_command_line(std::span<const char* const> arguments,
                                const stowage::llm::levers& environment);

/// The names of the levers that are on, as --lever takes them, and a split-K policy as --splitk takes it.
std::vector<std::string_view> lever_names_of(const stowage::llm::levers& switches);
std::string splitk_spelling_of(const stowage::llm::splitk_policy& policy);

/// What the sizes of the forward arena of a model depend on.
stowage::llm::forward_params forward_params_of(const options& wanted,
                                               const stowage::llm::model_config& model);

} // namespace planner
