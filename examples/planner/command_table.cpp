#include "option_table.hpp"

#include <cstddef>
#include <string>
#include <vector>

// The commands, and what is looked up in the table of options.

namespace planner {
namespace {

constexpr command_entry commands[] = {
    {command::plan, "plan", "Show bytes and offsets of every buffer",
     "stowage plan config.json --max-batch-tokens 4096 --largest 5"},
    {command::fit, "fit", "Find the largest batch, sequence or batch size that a budget has room for",
     "stowage fit config.json --budget 8GiB --vary max-batch-tokens"},
    {command::explain, "explain", "Show how the size of one buffer comes about",
     "stowage explain qkv_output config.json"},
    {command::diff, "diff", "Compare two models, or one model at two settings",
     "stowage diff config.json --against-max-batch-tokens 16384 --fail-above 5%"},
    {command::sweep, "sweep", "Show bytes for a range of one number, as a table and a plot",
     "stowage sweep config.json --max-batch-tokens 1:16384:x2 --plot sweep.svg"},
    {command::run, "run", "Allocate, do every pass and operation, and verify each byte by byte",
     "stowage run config.json --max-batch-tokens 256"},
    {command::completion, "completion", "Print the completions of a shell",
     "source <(stowage completion bash)"},
};

} // namespace

std::span<const command_entry> command_entries() noexcept { return commands; }

const command_entry& entry_of(command what) noexcept { return commands[static_cast<std::size_t>(what)]; }

std::vector<std::string_view> choices_of(const option_entry& option, command what) {
  std::vector<std::string_view> choices;
  for (const std::string_view choice : option.choices) {
    if (!choice.empty()) choices.push_back(choice);
  }
  if (std::string_view{option.name} == "--format") {
    constexpr std::size_t counts[] = {5, 2, 1, 3, 4, 2, 0}; // by command
    choices.resize(counts[static_cast<std::size_t>(what)]);
  }
  return choices;
}

std::string_view name_of_number(number_option_member number) {
  for (const option_entry& option : option_entries()) {
    if (option.number == number) return option.name;
  }
  return "";
}

std::string listed(std::span<const std::string_view> words) {
  std::string text;
  for (std::size_t word = 0; word < words.size(); ++word) {
    if (word != 0) text += word + 1 == words.size() ? " or " : ", ";
    text += words[word];
  }
  return text;
}

} // namespace planner
