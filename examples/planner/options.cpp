#include "options.hpp"

#include <stowage/count.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <limits>
#include <system_error>

namespace planner {
namespace {

using stowage::llm::levers;

// The options, each under its name.

struct number_option {
  const char* name;
  std::int64_t options::* member;
  const char* description;
};

constexpr number_option number_options[] = {
    {"--max-batch-tokens", &options::max_batch_tokens, "Most tokens of one forward pass"},
    {"--max-seq-len", &options::max_seq_len, "Most tokens of one sequence"},
    {"--kv-block-size", &options::kv_block_size, "Tokens of a key-value cache block; 0: not paged"},
    {"--max-batch-size", &options::max_batch_size, "Most sequences of one batch, at most 128"},
    {"--sm-count", &options::sm_count, "Multiprocessors of the target"},
    {"--adapter-max-rank", &options::adapter_max_rank, "Largest rank of a LoRA adapter; 0: no adapters"},
};

struct lever_name {
  std::string_view name;
  bool levers::* member;
};

constexpr lever_name lever_names[] = {
    {"q2", &levers::gguf_native_q2},
    {"q2_mmq", &levers::gguf_native_q2_mmq},
    {"rowwise", &levers::fp8_rowwise},
};

struct command_name {
  command what;
  const char* name;
  const char* description;
};

constexpr command_name command_names[] = {
    {command::plan, "plan", "Show bytes and offsets of every buffer"},
    {command::run, "run", "Allocate on the host, do every pass and operation, and verify each byte by byte"},
};

constexpr const char* config_option = "CONFIG.json";
constexpr const char* lever_option = "--lever";
constexpr const char* splitk_option = "--splitk";
constexpr const char* tokens_option = "--tokens";
constexpr const char* format_option = "--format";
constexpr const char* output_option = "--output";

// Values.

/// An argument as a message shows it: one that is too long is cut.
std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 40;
  std::string result{"'"};
  result.append(text.substr(0, longest)).append(text.size() > longest ? "...'" : "'");
  return result;
}

[[noreturn]] void refuse(std::string_view where, std::string_view problem) {
  throw option_error(std::string{where}.append(": ").append(problem));
}

[[noreturn]] void refuse_value(std::string_view option, std::string_view text, std::string_view why,
                               std::string_view wanted) {
  refuse(option, std::string{"is "}.append(in_quotes(text)).append(why).append("; wanted ").append(wanted));
}

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char each) { return each >= '0' && each <= '9'; });
}

/// An integer from 0 on, in decimal digits and nothing else.
std::int64_t parse_number(std::string_view option, std::string_view text) {
  constexpr std::string_view wanted = "an integer from 0 to 9223372036854775807";
  static_assert(std::numeric_limits<std::int64_t>::max() == 9223372036854775807);
  if (!all_digits(text)) {
    const bool negative = text.starts_with('-') && all_digits(text.substr(1));
    refuse_value(option, text, negative ? " (negative)" : "", wanted);
  }
  std::int64_t number = 0;
  const std::from_chars_result result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc{}) refuse_value(option, text, " (too large)", wanted);
  return number;
}

output_format parse_format(std::string_view text) {
  if (text == "table") return output_format::table;
  if (text == "json") return output_format::json;
  refuse_value(format_option, text, "", "table or json");
}

/// An unknown spelling keeps whatever was declared, so it reads differently for two declared policies.
stowage::llm::splitk_policy parse_known_splitk(std::string_view text) {
  using stowage::llm::splitk_kind;
  const stowage::llm::splitk_policy policy = stowage::llm::parse_splitk(text, {splitk_kind::legacy, 0});
  constexpr auto largest = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max());
  if (policy != stowage::llm::parse_splitk(text, {splitk_kind::automatic, 0}) || policy.splits > largest) {
    refuse_value(splitk_option, text, "", "legacy, auto, off or a count of splits");
  }
  return policy;
}

// The command line.

/// What an option was given; null where it was not.
const std::string* value_of(const CLI::App& parsed, const char* name) {
  const std::vector<std::string>& values = parsed.get_option(name)->results();
  if (values.size() > 1) refuse(name, "is given more than once");
  return values.empty() ? nullptr : values.data();
}

void add_options(CLI::App& parser) {
  const options defaults;
  const auto add = [&parser](const char* name, const std::string& type, const std::string& description) {
    // It keeps all values; value_of refuses those that are too many.
    return parser.add_option(name, description)->type_name(type)->allow_extra_args(false)->take_all();
  };
  add(config_option, "", "The config.json of a model, as on Hugging Face")->required();
  for (const number_option& number : number_options) {
    add(number.name, "N", number.description)->default_str(std::to_string(defaults.*number.member));
  }
  add(lever_option, "NAME",
      "q2, q2_mmq or rowwise; can be repeated. Absent: the environment's\n"
      "METRALE_GGUF_NATIVE_Q2, METRALE_GGUF_NATIVE_Q2_MMQ and METRALE_FP8_ROWWISE");
  add(splitk_option, "POLICY",
      "Splits of decode attention: legacy, auto, off or a count. Absent: the\n"
      "environment's METRALE_ATTN_DECODE_SPLITK, else legacy");
  add(tokens_option, "T",
      "Also show what a row pass over T tokens clears; run: do row passes for T\n"
      "tokens only");
  add(format_option, "NAME", "table or json")->default_str("table");
  add(output_option, "FILE", "Write the result there, not to standard output");
}

/// What the parser could not place; it leaves the mark that ends the options there too.
std::vector<std::string> extras_of(const CLI::App& parsed) {
  std::vector<std::string> extras = parsed.remaining();
  extras.erase(std::remove(extras.begin(), extras.end(), "--"), extras.end());
  return extras;
}

/// An option that nobody knows, rather than the value that was meant for it.
std::string first_unknown(const std::vector<std::string>& extras) {
  const auto option = std::find_if(extras.begin(), extras.end(),
                                   [](const std::string& extra) { return extra.starts_with('-'); });
  return option != extras.end() ? *option : extras.front();
}

[[noreturn]] void refuse_extras(const std::vector<std::string>& extras, const std::string& program) {
  const std::string extra = first_unknown(extras);
  refuse(in_quotes(extra), (extra.starts_with('-') ? "unknown option" : "one argument too many") +
                               ("; see " + program + " --help"));
}

void set_levers(levers& switches, const CLI::App& parsed) {
  const std::vector<std::string>& names = parsed.get_option(lever_option)->results();
  if (names.empty()) return;
  for (const lever_name& lever : lever_names) switches.*lever.member = false;
  for (const std::string& name : names) {
    const auto* const lever = std::find_if(std::begin(lever_names), std::end(lever_names),
                                           [&name](const lever_name& each) { return each.name == name; });
    if (lever == std::end(lever_names)) refuse_value(lever_option, name, "", "q2, q2_mmq or rowwise");
    switches.*lever->member = true;
  }
}

options read_options(const CLI::App& parsed, command what, const levers& environment) {
  if (const std::vector<std::string> extras = extras_of(parsed); !extras.empty()) {
    refuse_extras(extras, "stowage " + parsed.get_name());
  }

  options wanted;
  wanted.what = what;
  wanted.switches = environment;
  wanted.config = *value_of(parsed, config_option); // the parser saw to it that there is one
  for (const number_option& number : number_options) {
    if (const std::string* text = value_of(parsed, number.name)) {
      wanted.*number.member = parse_number(number.name, *text);
    }
  }
  set_levers(wanted.switches, parsed);
  if (const std::string* text = value_of(parsed, splitk_option)) {
    wanted.switches.splitk = parse_known_splitk(*text);
  }
  if (const std::string* text = value_of(parsed, tokens_option)) {
    wanted.tokens = parse_number(tokens_option, *text);
  }
  if (const std::string* text = value_of(parsed, format_option)) wanted.format = parse_format(*text);
  if (const std::string* text = value_of(parsed, output_option)) {
    if (text->empty()) refuse_value(output_option, "", "", "the path of a file");
    wanted.output = *text;
  }
  return wanted;
}

} // namespace

command_line parse_command_line(std::span<const char* const> arguments, const levers& environment) {
  CLI::App parser{"Plans the GPU buffers of a model's forward pass.", "stowage"};
  parser.require_subcommand(0, 1);
  parser.allow_extras();
  for (const command_name& each : command_names) {
    CLI::App* subcommand = parser.add_subcommand(each.name, each.description);
    subcommand->allow_extras();
    add_options(*subcommand);
  }

  // The parser takes them from the back.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    parser.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return {std::nullopt, parser.help(), true};
  } catch (const CLI::ParseError& error) {
    throw option_error(error.what() + std::string{"; see stowage --help"});
  }
  const std::vector<std::string> extras = extras_of(parser); // those in front of the command
  for (const command_name& each : command_names) {
    const CLI::App& subcommand = *parser.get_subcommand(each.name);
    if (!subcommand.parsed()) continue;
    if (!extras.empty()) refuse_extras(extras, parser.get_name());
    return {read_options(subcommand, each.what, environment), {}, false};
  }
  if (extras.empty()) return {std::nullopt, parser.help(), false};
  const std::string unknown = first_unknown(extras);
  if (unknown.starts_with('-')) refuse_extras(extras, parser.get_name());
  refuse_value("COMMAND", unknown, "", "plan or run");
}

std::vector<std::string_view> lever_names_of(const levers& switches) {
  std::vector<std::string_view> names;
  for (const lever_name& lever : lever_names) {
    if (switches.*lever.member) names.push_back(lever.name);
  }
  return names;
}

std::string splitk_spelling_of(const stowage::llm::splitk_policy& policy) {
  switch (policy.kind) {
    case stowage::llm::splitk_kind::legacy: return "legacy";
    case stowage::llm::splitk_kind::automatic: return "auto";
    case stowage::llm::splitk_kind::pinned: break;
  }
  return std::to_string(policy.splits);
}

stowage::llm::forward_params forward_params_of(const options& wanted,
                                               const stowage::llm::model_config& model) {
  stowage::llm::forward_params params{model};
  params.max_batch_tokens = stowage::tokens{wanted.max_batch_tokens};
  params.max_seq_len = wanted.max_seq_len;
  params.kv_block_size = wanted.kv_block_size;
  params.max_batch_size = wanted.max_batch_size;
  params.sm_count = wanted.sm_count;
  params.adapter_max_rank = wanted.adapter_max_rank;
  params.switches = wanted.switches;
  return params;
}

} // namespace planner
