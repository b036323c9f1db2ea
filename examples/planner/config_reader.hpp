#pragma once

#include "options.hpp"

#include <stowage/llm/model_config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace planner {

/// A model config cannot be used. The message is one line of printable UTF-8: where the config comes from,
/// the key, what is wrong with it and what is wanted instead.
class config_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Bytes of the largest config that is read. Real ones have a few thousand.
inline constexpr std::size_t largest_config_bytes = std::size_t{16} * 1024 * 1024;

/// Arrays and objects inside each other that a config may have. Real ones have about five.
inline constexpr std::size_t deepest_config_nesting = 64;

/// A member of model_config that a key fills: an integer, or true or false.
using number_member = std::int64_t stowage::llm::model_config::*;
using flag_member = bool stowage::llm::model_config::*;

/// One key of `config.json` that the reader looks at.
struct config_key {
  /// The spellings of the key. The first one that a config has counts; the places after the last are empty.
  std::array<std::string_view, 3> spellings;
  /// Where an integer goes; null for other keys.
  number_member number = nullptr;
  /// Where true or false goes; null for other keys. A key with neither member serves to find others out.
  flag_member flag = nullptr;
  /// What stands in for an absent key, or what a key without a member serves for.
  std::string_view note = "absent: 0";
  /// The smallest integer that is accepted.
  std::int64_t smallest = 0;
};

/// Every key that is read, in the order of the members of model_config, then those without a member.
std::span<const config_key> config_keys() noexcept;

/// Values that a config may have, all arrays and objects counted. Real ones have a few hundred.
inline constexpr std::size_t most_config_values = 1000000;

/// A model, and what its config leaves open.
struct read_config {
  stowage::llm::model_config model;
  /// Keys that matter for this model and are not there, with what that means: "vocab_size: absent, counts as 0".
  std::vector<std::string> missing;
};

/// Reads a Hugging Face `config.json`. The keys of a nested `text_config` override those around it, by whatever name;
/// a null counts as absent; of a key that stands twice in one object the last counts; keys that config_keys() does
/// not list are ignored. `overrides` replace what the config says. `source_name` is what messages call the input.
/// Throws config_error.
read_config read_whole_config(std::string_view text, std::string_view source_name,
                              std::span<const config_override> overrides = {});
stowage::llm::model_config read_model_config(std::istream& input, std::string_view source_name);

/// Reads the config in a file or pipe, in a folder, or, for "-", on standard input. Throws config_error.
read_config read_config_file(const std::filesystem::path& path,
                             std::span<const config_override> overrides = {});
stowage::llm::model_config read_model_config_file(const std::filesystem::path& path);

} // namespace planner
