#pragma once

#include <stowage/llm/forward_params.hpp>
#include <stowage/llm/levers.hpp>
#include <stowage/llm/model_config.hpp>
#include <stowage/report/plan_report.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace planner {

/// A command line cannot be used. The message says which argument, what is wrong with it and what is wanted
/// instead.
class option_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

enum class command : unsigned char { plan, fit, explain, diff, sweep, run, completion };
enum class output_format : unsigned char { table, json, csv, svg, html };
enum class backend_kind : unsigned char { host, cuda };
enum class colour_choice : unsigned char { automatic, always, never };

/// A key of the config with a value that replaces the file's: JSON, or else a string.
struct config_override {
  std::string key;
  std::string value;

  friend bool operator==(const config_override&, const config_override&) = default;
};

struct options;
using number_option_member = std::int64_t options::*;

/// What a command line asks for.
struct options {
  command what = command::plan;
  /// Path of the model's config.json, of a folder that has one, or - for standard input.
  std::string config;
  std::int64_t max_batch_tokens = 8192;
  std::int64_t max_seq_len = 32768;
  std::int64_t kv_block_size = 16;
  std::int64_t max_batch_size = 32;
  std::int64_t sm_count = 132;
  std::int64_t adapter_max_rank = 0;
  /// Those of the environment, but for what the command line says.
  stowage::llm::levers switches{};
  /// Keys of the config that are set otherwise.
  std::vector<config_override> overrides{};
  /// Tokens of a row pass.
  std::optional<std::int64_t> tokens{};
  output_format format = output_format::table;
  /// Path of the file that receives the result; empty for standard output.
  std::string output{};

  // plan
  stowage::report_view view{};
  colour_choice colours = colour_choice::automatic;
  /// What comes of it; the program decides, which knows where its output goes.
  bool colour = false;

  // fit
  std::uint64_t budget = 0;
  number_option_member vary = &options::max_batch_tokens;

  // explain
  std::string buffer{};

  // diff
  /// Path of the other config; empty for the same one at other settings.
  std::string other_config{};
  std::vector<std::pair<number_option_member, std::int64_t>> other_numbers{};
  std::vector<config_override> other_overrides{};
  std::optional<stowage::llm::levers> other_switches{};
  /// Percent by which the slab may grow.
  std::optional<long double> fail_above{};

  // sweep
  number_option_member swept = nullptr;
  std::vector<std::int64_t> sweep_values{};
  /// Path of the picture beside the table; empty for none.
  std::string plot{};

  // run
  backend_kind backend = backend_kind::host;

  // completion
  std::string shell{};
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

/// The other side of a diff: the same options but for those that differ.
options other_side_of(const options& wanted);

} // namespace planner
