#include "option_table.hpp"

#include "quantities.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

namespace planner {
namespace {

using stowage::llm::levers;

constexpr unsigned bit(command what) { return 1U << static_cast<unsigned>(what); }

constexpr unsigned on_plan = bit(command::plan);
constexpr unsigned on_fit = bit(command::fit);
constexpr unsigned on_explain = bit(command::explain);
constexpr unsigned on_diff = bit(command::diff);
constexpr unsigned on_sweep = bit(command::sweep);
constexpr unsigned on_run = bit(command::run);
constexpr unsigned on_completion = bit(command::completion);
constexpr unsigned on_models = on_plan | on_fit | on_explain | on_diff | on_sweep | on_run;

// Options.

struct lever_name {
  std::string_view name;
  bool levers::* member;
};

constexpr lever_name lever_names[] = {
    {"q2", &levers::gguf_native_q2},
    {"q2_mmq", &levers::gguf_native_q2_mmq},
    {"rowwise", &levers::fp8_rowwise},
};

/// The number of a choice; throws where the text is none.
std::size_t choice_of(const option_entry& option, command what, const std::string& text) {
  const std::vector<std::string_view> choices = choices_of(option, what);
  const auto found = std::find(choices.begin(), choices.end(), text);
  if (found == choices.end()) refuse_value(option.name, text, "", listed(choices));
  return static_cast<std::size_t>(found - choices.begin());
}

template <class Value>
void take_choice(options& wanted, const option_entry& option, const std::string& text, Value& value) {
  value = static_cast<Value>(choice_of(option, wanted.what, text));
}

/// Levers, once one is named, are those that are named.
void set_lever(const option_entry& option, levers& switches, bool first, const std::string& text) {
  if (first) {
    for (const lever_name& lever : lever_names) switches.*lever.member = false;
  }
  switches.*lever_names[choice_of(option, command::plan, text)].member = true;
}

/// An unknown spelling keeps whatever was declared, so it reads differently for two declared policies.
stowage::llm::splitk_policy known_splitk(const option_entry& option, const std::string& text) {
  using stowage::llm::splitk_kind;
  const stowage::llm::splitk_policy policy = stowage::llm::parse_splitk(text, {splitk_kind::legacy, 0});
  constexpr auto largest = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max());
  if (policy != stowage::llm::parse_splitk(text, {splitk_kind::automatic, 0}) || policy.splits > largest) {
    refuse_value(option.name, text, "", "legacy, auto, off or a count of splits");
  }
  return policy;
}

config_override parse_override(const option_entry& option, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    refuse_value(option.name, text, "", "KEY=VALUE, with a key of stowage --config-help");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void take_path(const option_entry& option, const std::string& text, std::string& path) {
  if (text.empty()) refuse_value(option.name, "", "", "the path of a file");
  path = text;
}

void take_number(options& wanted, const option_entry& option, const std::string& text) {
  if (wanted.what == command::sweep && text.find_first_of(":,") != std::string::npos) {
    if (wanted.swept != nullptr)
      throw option_error(std::string{option.name} + ": only one number can have a range, " +
                         std::string{name_of_number(wanted.swept)} + " has one already");
    wanted.swept = option.number;
    wanted.sweep_values = parse_range(option.name, text);
    return;
  }
  wanted.*option.number = parse_number(option.name, text);
}

void take_other_number(options& wanted, const option_entry& option, const std::string& text) {
  wanted.other_numbers.emplace_back(option.number, parse_number(option.name, text));
}

constexpr option_entry number_entry(const char* name, number_option_member number, const char* default_text,
                                    const char* description) {
  return {name, "N", description, on_models, take_number, default_text, number};
}
constexpr option_entry other_number_entry(const char* name, number_option_member number) {
  return {name, "N", "The same number on the other side", on_diff, take_other_number, "", number};
}

const option_entry entries[] = {
    {.name = "BUFFER",
     .type = "",
     .description = "The name of a buffer, as stowage plan shows it",
     .commands = on_explain,
     .take = [](options& wanted, const option_entry&, const std::string& text) { wanted.buffer = text; },
     .completion = completion_kind::buffer,
     .required = true},
    {.name = "CONFIG.json",
     .type = "",
     .description = "A model's config.json, as on Hugging Face: a file, a folder that has one, or - for\n"
                    "standard input",
     .commands = on_models,
     .take = [](options& wanted, const option_entry&, const std::string& text) { wanted.config = text; },
     .completion = completion_kind::file,
     .required = true},
    {.name = "OTHER.json",
     .type = "",
     .description = "The model to compare with; absent: the same one, with what the --against options say",
     .commands = on_diff,
     .take = [](options& wanted, const option_entry&,
                const std::string& text) { wanted.other_config = text; },
     .completion = completion_kind::file},
    {.name = "SHELL",
     .type = "",
     .description = "bash or zsh",
     .commands = on_completion,
     .take =
         [](options& wanted, const option_entry& option, const std::string& text) {
           choice_of(option, wanted.what, text);
           wanted.shell = text;
         },
     .choices = {"bash", "zsh"},
     .completion = completion_kind::choices,
     .required = true},
    number_entry("--max-batch-tokens", &options::max_batch_tokens, "8192", "Most tokens of one forward pass"),
    number_entry("--max-seq-len", &options::max_seq_len, "32768", "Most tokens of one sequence"),
    number_entry("--kv-block-size", &options::kv_block_size, "16",
                 "Tokens of a key-value cache block; 0: not paged"),
    number_entry("--max-batch-size", &options::max_batch_size, "32",
                 "Most sequences of one batch, at most 128"),
    number_entry("--sm-count", &options::sm_count, "132", "Multiprocessors of the target"),
    number_entry("--adapter-max-rank", &options::adapter_max_rank, "0",
                 "Largest rank of a LoRA adapter; 0: no adapters"),
    {.name = "--lever",
     .type = "NAME",
     .description = "q2, q2_mmq or rowwise; can be repeated. Absent: the environment's\n"
                    "METRALE_GGUF_NATIVE_Q2, METRALE_GGUF_NATIVE_Q2_MMQ and METRALE_FP8_ROWWISE",
     .commands = on_models,
     .take = [](options&, const option_entry&, const std::string&) {}, // see take_levers
     .choices = {"q2", "q2_mmq", "rowwise"},
     .completion = completion_kind::choices,
     .repeatable = true},
    {.name = "--splitk",
     .type = "POLICY",
     .description = "Splits of decode attention: legacy, auto, off or a count. Absent: the\n"
                    "environment's METRALE_ATTN_DECODE_SPLITK, else legacy",
     .commands = on_models,
     .take = [](options& wanted, const option_entry& option,
                const std::string& text) { wanted.switches.splitk = known_splitk(option, text); },
     .choices = {"legacy", "auto", "off"},
     .completion = completion_kind::choices},
    {.name = "--set",
     .type = "KEY=VALUE",
     .description = "Set a key of the config otherwise, such as num_experts=64; can be repeated. See\n"
                    "stowage --config-help",
     .commands = on_models,
     .take = [](options& wanted, const option_entry& option,
                const std::string& text) { wanted.overrides.push_back(parse_override(option, text)); },
     .repeatable = true},
    {.name = "--tokens",
     .type = "T",
     .description = "Also show what a row pass over T tokens clears; run: do row passes for T\n"
                    "tokens only",
     .commands = on_plan | on_run,
     .take = [](options& wanted, const option_entry& option,
                const std::string& text) { wanted.tokens = parse_number(option.name, text); }},
    {.name = "--sort",
     .type = "ORDER",
     .description = "declaration, bytes or name",
     .commands = on_plan,
     .take = [](options& wanted, const option_entry& option,
                const std::string& text) { take_choice(wanted, option, text, wanted.view.order); },
     .default_text = "declaration",
     .choices = {"declaration", "bytes", "name"},
     .completion = completion_kind::choices},
    {.name = "--only",
     .type = "WHICH",
     .description = "all, present or absent buffers",
     .commands = on_plan,
     .take = [](options& wanted, const option_entry& option,
                const std::string& text) { take_choice(wanted, option, text, wanted.view.only); },
     .default_text = "all",
     .choices = {"all", "present", "absent"},
     .completion = completion_kind::choices},
    {.name = "--group",
     .type = "BY",
     .description = "none, policy (what zeroes it) or prefix (its name up to the last dot)",
     .commands = on_plan,
     .take = [](options& wanted, const option_entry& option,
                const std::string& text) { take_choice(wanted, option, text, wanted.view.groups); },
     .default_text = "none",
     .choices = {"none", "policy", "prefix"},
     .completion = completion_kind::choices},
    {.name = "--largest",
     .type = "COUNT",
     .description = "Only the largest so many buffers, largest first; 0: all",
     .commands = on_plan,
     .take =
         [](options& wanted, const option_entry& option, const std::string& text) {
           wanted.view.largest = static_cast<std::size_t>(parse_number(option.name, text));
         }},
    {.name = "--color",
     .type = "WHEN",
     .description = "auto, always or never. auto: on a terminal, unless NO_COLOR is set",
     .commands = on_plan,
     .take = [](options& wanted, const option_entry& option,
                const std::string& text) { take_choice(wanted, option, text, wanted.colours); },
     .default_text = "auto",
     .choices = {"auto", "always", "never"},
     .completion = completion_kind::choices},
    {.name = "--budget",
     .type = "SIZE",
     .description = "Bytes that the slab may have: 8GiB, 512MiB, 1e9 or plain bytes",
     .commands = on_fit,
     .take = [](options& wanted, const option_entry& option,
                const std::string& text) { wanted.budget = parse_bytes(option.name, text); },
     .required = true},
    {.name = "--vary",
     .type = "NAME",
     .description = "What to find: max-batch-tokens, max-seq-len or max-batch-size",
     .commands = on_fit,
     .take =
         [](options& wanted, const option_entry& option, const std::string& text) {
           constexpr number_option_member members[] = {&options::max_batch_tokens, &options::max_seq_len,
                                                       &options::max_batch_size};
           wanted.vary = members[choice_of(option, wanted.what, text)];
         },
     .default_text = "max-batch-tokens",
     .choices = {"max-batch-tokens", "max-seq-len", "max-batch-size"},
     .completion = completion_kind::choices},
    other_number_entry("--against-max-batch-tokens", &options::max_batch_tokens),
    other_number_entry("--against-max-seq-len", &options::max_seq_len),
    other_number_entry("--against-kv-block-size", &options::kv_block_size),
    other_number_entry("--against-max-batch-size", &options::max_batch_size),
    other_number_entry("--against-sm-count", &options::sm_count),
    other_number_entry("--against-adapter-max-rank", &options::adapter_max_rank),
    {.name = "--against-lever",
     .type = "NAME",
     .description = "The levers of the other side; can be repeated",
     .commands = on_diff,
     .take = [](options&, const option_entry&, const std::string&) {}, // see take_levers
     .choices = {"q2", "q2_mmq", "rowwise"},
     .completion = completion_kind::choices,
     .repeatable = true},
    {.name = "--against-splitk",
     .type = "POLICY",
     .description = "The split-K policy of the other side",
     .commands = on_diff,
     .take =
         [](options& wanted, const option_entry& option, const std::string& text) {
           if (!wanted.other_switches) wanted.other_switches = wanted.switches;
           wanted.other_switches->splitk = known_splitk(option, text);
         },
     .choices = {"legacy", "auto", "off"},
     .completion = completion_kind::choices},
    {.name = "--against-set",
     .type = "KEY=VALUE",
     .description = "A key of the other side's config; can be repeated",
     .commands = on_diff,
     .take = [](options& wanted, const option_entry& option,
                const std::string& text) { wanted.other_overrides.push_back(parse_override(option, text)); },
     .repeatable = true},
    {.name = "--fail-above",
     .type = "SHARE",
     .description = "Exit with status 1 where the slab grows by more than this share, such as 5%",
     .commands = on_diff,
     .take = [](options& wanted, const option_entry& option,
                const std::string& text) { wanted.fail_above = parse_percent(option.name, text); }},
    {.name = "--backend",
     .type = "NAME",
     .description = "host or cuda: where the memory lies",
     .commands = on_run,
     .take = [](options& wanted, const option_entry& option,
                const std::string& text) { take_choice(wanted, option, text, wanted.backend); },
     .default_text = "host",
     .choices = {"host", "cuda"},
     .completion = completion_kind::choices},
    {.name = "--plot",
     .type = "FILE",
     .description = "Also write a plot there, stacked by buffer: .svg, or .png with rsvg-convert,\n"
                    "inkscape or ImageMagick",
     .commands = on_sweep,
     .take = [](options& wanted, const option_entry& option,
                const std::string& text) { take_path(option, text, wanted.plot); },
     .completion = completion_kind::file},
    {.name = "--format",
     .type = "NAME",
     .description = "How the result is written",
     .commands = on_models & ~on_explain,
     .take = [](options& wanted, const option_entry& option,
                const std::string& text) { take_choice(wanted, option, text, wanted.format); },
     .default_text = "table",
     .choices = {"table", "json", "csv", "svg", "html"},
     .completion = completion_kind::choices},
    {.name = "--output",
     .type = "FILE",
     .description = "Write the result there, not to standard output",
     .commands = on_models,
     .take = [](options& wanted, const option_entry& option,
                const std::string& text) { take_path(option, text, wanted.output); },
     .completion = completion_kind::file},
};

} // namespace

std::span<const option_entry> option_entries() noexcept { return entries; }

void take_levers(const option_entry& option, levers& switches, const std::vector<std::string>& names) {
  for (std::size_t name = 0; name < names.size(); ++name) set_lever(option, switches, name == 0, names[name]);
}

std::vector<std::string_view> lever_names_of(const levers& switches) {
  std::vector<std::string_view> names;
  for (const lever_name& lever : lever_names) {
    if (switches.*lever.member) names.push_back(lever.name);
  }
  return names;
}

} // namespace planner
