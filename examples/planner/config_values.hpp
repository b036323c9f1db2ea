#pragma once

#include "config_reader.hpp"
#include "config_text.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

// Looking values of a config up, and refusing those that are wrong.

namespace planner {

inline constexpr std::string_view text_config_key = "text_config";

/// "an integer from 0 to ...".
inline std::string integer_from(std::int64_t smallest) {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  return "an integer from " + std::to_string(smallest) + " to " + std::to_string(largest);
}

/// A value of the config and the key it was found under, such as "text_config.hidden_size".
struct entry {
  const nlohmann::json* value = nullptr;
  std::string key;

  explicit operator bool() const { return value != nullptr; }
};

/// A value as a message shows it.
inline std::string describe(const nlohmann::json& value) {
  if (value.is_array()) return "an array";
  if (value.is_object()) return "an object";
  if (!value.is_string()) return value.dump();
  // Written as JSON in ASCII. Cutting may split a character, which dump is told to replace.
  const nlohmann::json text = shortened(value.get_ref<const std::string&>(), 40);
  return "the string " + text.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

/// The values of one config under the rules of the format: text_config over the object around it, null as
/// absent.
class config_values {
public:
  /// `outer` is an object and outlives this.
  config_values(const nlohmann::json& outer, std::string_view source) : outer_(outer), source_(source) {
    text_config_ = member(outer_, text_config_key, "");
    if (text_config_ && !text_config_.value->is_object()) refuse_value(text_config_, "an object");
  }

  [[nodiscard]] entry find(std::string_view spelling) const {
    // A text_config inside text_config overrides nothing.
    if (text_config_) {
      if (entry nested = member(*text_config_.value, spelling, text_config_.key)) return nested;
    }
    return member(outer_, spelling, "");
  }

  /// What text_config says decides, by whatever name; in one object the first spelling does.
  [[nodiscard]] entry find(const config_key& key) const {
    for (const bool nested : {true, false}) {
      if (nested && !text_config_) continue;
      for (const std::string_view spelling : key.spellings) {
        if (spelling.empty()) break;
        entry found =
            nested ? member(*text_config_.value, spelling, text_config_.key) : member(outer_, spelling, "");
        if (found) return found;
      }
    }
    return {};
  }

  [[nodiscard]] static entry member(const nlohmann::json& object, std::string_view spelling,
                                    std::string_view parent) {
    const auto found = object.find(std::string{spelling});
    if (found == object.end() || found->is_null()) return {};
    std::string key{parent};
    if (!key.empty()) key.push_back('.');
    return {&*found, key.append(spelling)};
  }

  [[nodiscard]] std::int64_t number(const entry& found, std::int64_t smallest = 0) const {
    const nlohmann::json& value = *found.value;
    const std::string wanted = integer_from(smallest);
    if (!value.is_number()) refuse_value(found, wanted);
    if (value.is_number_float()) {
      // Also integers of more than 64 bits: the parser has no other place for them.
      const double real = value.get<double>();
      if (real < 0) refuse_value(found, wanted, "negative");
      if (real >= 9223372036854775808.0) refuse_value(found, wanted, "too large");
      refuse_value(found, wanted + ", written without a point or an exponent");
    }
    if (value.is_number_unsigned()) {
      const auto magnitude = value.get<std::uint64_t>();
      if (magnitude > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
        refuse_value(found, wanted, "too large");
      }
    }
    const auto result = value.get<std::int64_t>();
    if (result < smallest) refuse_value(found, wanted, result < 0 ? "negative" : "");
    return result;
  }

  [[nodiscard]] bool flag(const entry& found) const {
    if (!found.value->is_boolean()) refuse_value(found, "true or false");
    return found.value->get<bool>();
  }

  [[nodiscard]] const std::string& text(const entry& found) const {
    if (!found.value->is_string()) refuse_value(found, "a string");
    return found.value->get_ref<const std::string&>();
  }

  [[noreturn]] void refuse_value(const entry& found, std::string_view wanted,
                                 std::string_view why = "") const {
    std::string problem = found.key + ": is " + describe(*found.value);
    if (!why.empty()) problem.append(" (").append(why).append(")");
    refuse(source_, problem.append("; wanted ").append(wanted));
  }

  [[noreturn]] void refuse_missing(std::string_view key, std::string_view wanted) const {
    refuse(source_, std::string{key}.append(": is missing; wanted ").append(wanted));
  }

private:
  const nlohmann::json& outer_;
  std::string_view source_;
  entry text_config_;
};

} // namespace planner
