#include "options.hpp"

#include "help.hpp"
#include "option_table.hpp"
#include "quantities.hpp"

#include <stowage/count.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

namespace planner {
namespace {

using stowage::llm::levers;

[[noreturn]] void refuse(std::string_view where, std::string_view problem) {
  throw option_error(std::string{where}.append(": ").append(problem));
}

void add_options(CLI::App& parser, command what) {
  for (const option_entry& option : option_entries()) {
    if (!option.belongs_to(what)) continue;
    // Constant: the parser would take another string for a variable that the value is written to.
    const std::string description = std::string_view{option.name} == "--format"
                                        ? listed(choices_of(option, what))
                                        : std::string{option.description};
    // It keeps all values; read_options refuses those that are too many.
    CLI::Option* const added = parser.add_option(option.name, description)
                                   ->type_name(option.type)
                                   ->allow_extra_args(false)
                                   ->take_all()
                                   ->required(option.required);
    if (option.default_text[0] != '\0') added->default_str(option.default_text);
  }
  parser.footer(std::string{"Example: "} + entry_of(what).example);
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

/// What only makes sense together, or not at all.
void check(const options& wanted, const CLI::App& parsed) {
  const auto given = [&parsed](std::string_view name) {
    return parsed.get_option(std::string{name})->count() != 0;
  };
  if (wanted.what == command::plan &&
      (wanted.format == output_format::svg || wanted.format == output_format::html)) {
    for (const char* const name : {"--sort", "--only", "--group", "--largest"}) {
      if (given(name)) refuse(name, "has no meaning for a memory map; wanted table, json or csv as --format");
    }
  }
  if (wanted.what == command::fit && given(name_of_number(wanted.vary)))
    refuse(name_of_number(wanted.vary), "is given, but it is what --vary looks for; leave one of them out");
  if (wanted.what == command::sweep && wanted.swept == nullptr)
    refuse("stowage sweep", "no number has a range; wanted one such as --max-batch-tokens 1:16384:x2");
  const bool differs = !wanted.other_config.empty() || !wanted.other_numbers.empty() ||
                       wanted.other_switches || !wanted.other_overrides.empty();
  if (wanted.what == command::diff && !differs)
    refuse("stowage diff", "nothing to compare with; wanted OTHER.json or an --against option");
  if (wanted.what == command::diff && wanted.config == "-" && wanted.other_config == "-")
    refuse("OTHER.json", "is '-', and so is CONFIG.json; standard input can be read once");
}

options read_options(const CLI::App& parsed, command what, const levers& environment) {
  if (const std::vector<std::string> extras = extras_of(parsed); !extras.empty()) {
    refuse_extras(extras, "stowage " + parsed.get_name());
  }
  options wanted;
  wanted.what = what;
  wanted.switches = environment;
  for (const option_entry& option : option_entries()) {
    if (!option.belongs_to(what)) continue;
    const std::vector<std::string>& values = parsed.get_option(option.name)->results();
    if (values.size() > 1 && !option.repeatable) refuse(option.name, "is given more than once");
    if (std::string_view{option.name} == "--lever") take_levers(option, wanted.switches, values);
    if (std::string_view{option.name} == "--against-lever" && !values.empty()) {
      if (!wanted.other_switches) wanted.other_switches = wanted.switches;
      take_levers(option, *wanted.other_switches, values);
    }
    for (const std::string& value : values) option.take(wanted, option, value);
  }
  check(wanted, parsed);
  return wanted;
}

} // namespace

command_line parse_command_line(std::span<const char* const> arguments, const levers& environment) {
  CLI::App parser{"Plans the GPU buffers of a model's forward pass.", "stowage"};
  parser.require_subcommand(0, 1);
  parser.allow_extras();
  parser.footer(general_footer());
  const CLI::Option* const version = parser.add_flag("--version")->description("Print the version");
  const CLI::Option* const config_help =
      parser.add_flag("--config-help")->description("Print every key of a config.json that is read");
  std::array<CLI::App*, 7> subcommands{};
  for (const command_entry& each : command_entries()) {
    CLI::App* subcommand = parser.add_subcommand(each.name, each.description);
    subcommand->allow_extras();
    add_options(*subcommand, each.what);
    subcommands[static_cast<std::size_t>(each.what)] = subcommand;
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
  if (extras.empty() && version->count() != 0) return {std::nullopt, version_text(), true};
  if (extras.empty() && config_help->count() != 0) return {std::nullopt, config_help_text(), true};
  for (const command_entry& each : command_entries()) {
    const CLI::App& subcommand = *subcommands[static_cast<std::size_t>(each.what)];
    if (!subcommand.parsed()) continue;
    if (!extras.empty()) refuse_extras(extras, parser.get_name());
    return {read_options(subcommand, each.what, environment), {}, false};
  }
  if (extras.empty()) return {std::nullopt, parser.help(), false};
  const std::string unknown = first_unknown(extras);
  if (unknown.starts_with('-')) refuse_extras(extras, parser.get_name());
  std::vector<std::string_view> names;
  for (const command_entry& each : command_entries()) names.emplace_back(each.name);
  refuse_value("COMMAND", unknown, "", listed(names));
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

options other_side_of(const options& wanted) {
  options other = wanted;
  if (!wanted.other_config.empty()) other.config = wanted.other_config;
  for (const auto& [member, number] : wanted.other_numbers) other.*member = number;
  if (wanted.other_switches) other.switches = *wanted.other_switches;
  other.overrides.insert(other.overrides.end(), wanted.other_overrides.begin(), wanted.other_overrides.end());
  return other;
}

} // namespace planner
