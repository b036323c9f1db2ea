#pragma once

#include <stowage/detail/cold.hpp>
#include <stowage/text.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stowage::inline v0_1 {

/// What the zeroing experiment says of one field.
enum class zeroing_verdict : unsigned char {
  needed,     ///< the outputs are others when the passes leave it out
  waste,      ///< it is cleared, or its policy says so, and the outputs are the same without
  too_little, ///< it is cleared, and still old content reaches the outputs: of other bytes, or before the pass
  lie,        ///< its policy is never, nothing clears it, and old content reaches the outputs
  not_needed, ///< nothing clears it, and rightly so
  kept,       ///< not tested: its content is an input of the step
  absent,     ///< it takes no memory
  unknown     ///< the step is not deterministic
};

/// As it stands in a report: "too little".
[[nodiscard]] constexpr std::string_view name_of(zeroing_verdict verdict) {
  switch (verdict) {
    case zeroing_verdict::needed: return "needed";
    case zeroing_verdict::waste: return "waste";
    case zeroing_verdict::too_little: return "too little";
    case zeroing_verdict::lie: return "lie";
    case zeroing_verdict::not_needed: return "not needed";
    case zeroing_verdict::kept: return "kept";
    case zeroing_verdict::absent: return "absent";
    case zeroing_verdict::unknown: break;
  }
  return "unknown";
}

/// One field in a zeroing report.
struct zeroing_need {
  /// Dotted in groups.
  std::string_view name;
  /// Zero policy: rows, full or never.
  std::string_view policy;
  /// What was found out about its policy.
  zeroing_verdict verdict = zeroing_verdict::unknown;
  /// Bytes of the field with its copies and tails.
  std::size_t bytes = 0;
  /// Those of them that the zero passes of one step clear.
  std::size_t cleared_bytes = 0;
  /// Old content reaches the outputs though the passes run as they are.
  bool leaks = false;
  /// Old content reaches the outputs when the passes leave the field out.
  bool leaks_when_left_out = false;
  /// It leaks only while other fields hold old content too.
  bool jointly = false;
  /// Where `leaks` and not `jointly`: the first and the last byte whose old content reaches the outputs,
  /// counted from the start of the field (of its first copy). `located` says whether they were looked for.
  bool located = false;
  /// The first such byte.
  std::size_t first_byte = 0;
  /// The last such byte.
  std::size_t last_byte = 0;
  /// Bytes of a row, where the field is one tensor without copies; 0 elsewhere.
  std::size_t row_bytes = 0;
};

/// What find_zeroing_needs() found out about a step.
struct zeroing_needs {
  /// False where two runs from the same memory gave different outputs. Then the verdicts are `unknown`.
  bool deterministic = true;
  /// How often the step ran.
  std::size_t runs = 0;
  /// Poison patterns that it ran from.
  std::size_t patterns = 0;
  /// Bytes that were compared.
  std::size_t output_bytes = 0;
  /// All fields, in declaration order.
  std::vector<zeroing_need> fields;

  /// The outputs depend on nothing that an earlier step left behind: no lie, nothing cleared too little.
  [[nodiscard]] bool clean() const {
    return deterministic &&
           std::none_of(fields.begin(), fields.end(), [](const zeroing_need& field) { return field.leaks; });
  }
  /// Bytes that one step clears to no effect.
  [[nodiscard]] std::size_t wasted_bytes() const {
    std::size_t bytes = 0;
    for (const zeroing_need& field : fields)
      bytes += field.verdict == zeroing_verdict::waste ? field.cleared_bytes : 0;
    return bytes;
  }
  /// A field by name, or null.
  [[nodiscard]] const zeroing_need* find(std::string_view name) const {
    for (const zeroing_need& field : fields) {
      if (field.name == name) return &field;
    }
    return nullptr;
  }
  /// A line for the step and one for each field.
  [[nodiscard]] std::string text() const;
};

namespace detail {

inline void pad_to(std::string& line, std::size_t column) {
  line.append(line.size() < column ? column - line.size() : 1, ' ');
}

inline std::string place_of_leak(const zeroing_need& field) {
  if (field.jointly) return ", but only together with that of other fields";
  if (!field.located) return {};
  std::string text = ": bytes " + std::to_string(field.first_byte) + " to " + std::to_string(field.last_byte);
  if (field.row_bytes != 0) {
    text += " (rows " + std::to_string(field.first_byte / field.row_bytes) + " to " +
            std::to_string(field.last_byte / field.row_bytes) + ')';
  }
  return text;
}

inline std::string reason_of(const zeroing_need& field) {
  const std::string cleared = std::to_string(field.cleared_bytes) + " of " + std::to_string(field.bytes);
  switch (field.verdict) {
    case zeroing_verdict::needed:
      return "the step clears " + cleared + " bytes, and the outputs are others when it does not" +
             (field.jointly ? " and other fields hold old content too" : "");
    case zeroing_verdict::waste:
      return field.cleared_bytes == 0
                 ? "the step does not clear it, and nothing of it reaches the outputs"
                 : "the step clears " + cleared + " bytes, and the outputs are the same when it does not";
    case zeroing_verdict::too_little:
      return "the step clears " + cleared + " bytes, and old content reaches the outputs all the same" +
             place_of_leak(field);
    case zeroing_verdict::lie: return "old content reaches the outputs" + place_of_leak(field);
    case zeroing_verdict::not_needed: return "old content does not reach the outputs";
    case zeroing_verdict::kept: return "not tested: its content is an input";
    case zeroing_verdict::absent: return "takes no memory";
    case zeroing_verdict::unknown: break;
  }
  return "two runs from the same memory gave different outputs";
}

} // namespace detail

STOWAGE_NOINLINE inline std::string zeroing_needs::text() const {
  std::string result = std::to_string(runs) + " runs of the step, " + std::to_string(patterns) +
                       " patterns, " + std::to_string(output_bytes) + " bytes of outputs\n";
  if (!deterministic)
    result += "the step is not deterministic: two runs from the same memory gave different outputs\n";
  std::size_t name_width = 0;
  for (const zeroing_need& field : fields)
    name_width = field.name.size() > name_width ? field.name.size() : name_width;
  for (const zeroing_need& field : fields) {
    std::string line(field.name);
    detail::pad_to(line, name_width + 2);
    line += field.policy;
    detail::pad_to(line, name_width + 9);
    line += name_of(field.verdict);
    if (deterministic || field.verdict != zeroing_verdict::unknown) {
      detail::pad_to(line, name_width + 21);
      line += detail::reason_of(field);
    }
    result += line + '\n';
  }
  return result;
}

} // namespace stowage::inline v0_1
