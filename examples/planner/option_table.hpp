#pragma once

#include "options.hpp"

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Every command and every option in one table, from which the parser, the help texts, the completions and the tests
// take them.

namespace planner {

struct command_entry {
  command what;
  const char* name;
  const char* description;
  /// A command line to start from.
  const char* example;
};

std::span<const command_entry> command_entries() noexcept;
const command_entry& entry_of(command what) noexcept;

/// How the words of an option are completed.
enum class completion_kind : unsigned char { nothing, file, choices, buffer };

struct option_entry {
  /// "--tokens"; the name of an argument without dashes in front.
  const char* name;
  /// What stands for its value in a help text.
  const char* type;
  const char* description;
  /// The commands that have it, a bit each.
  unsigned commands;
  /// Takes one value; throws option_error.
  void (*take)(options&, const option_entry&, const std::string&);
  const char* default_text = "";
  /// For options that fill a number.
  number_option_member number = nullptr;
  /// The values that there are, where there are few.
  std::array<std::string_view, 6> choices{};
  completion_kind completion = completion_kind::nothing;
  bool required = false;
  bool repeatable = false;

  [[nodiscard]] bool belongs_to(command what) const {
    return (commands >> static_cast<unsigned>(what) & 1U) != 0;
  }
  [[nodiscard]] bool is_argument() const { return name[0] != '-'; }
};

std::span<const option_entry> option_entries() noexcept;

/// The choices that an option has with a command: formats differ.
std::vector<std::string_view> choices_of(const option_entry& option, command what);

/// The option of a number: "--max-batch-tokens".
std::string_view name_of_number(number_option_member number);

/// Turns on the levers with these names, and off all others; nothing where there are none. Throws option_error.
void take_levers(const option_entry& option, stowage::llm::levers& switches,
                 const std::vector<std::string>& names);

/// "a, b or c".
std::string listed(std::span<const std::string_view> words);

} // namespace planner
