#pragma once

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <type_traits>

namespace stowage::inline v0_1::llm {

/// How many parts the keys of one decode attention are split into.
enum class splitk_kind : unsigned char {
  legacy,    ///< one workspace slot a multiprocessor
  automatic, ///< as many splits as fill the multiprocessors twice; spelled `auto`
  pinned     ///< the number in splitk_policy::splits
};

/// The split-K policy of decode attention. The workspace formula clamps the number of splits, not this.
struct splitk_policy {
  /// Who decides the number of splits.
  splitk_kind kind = splitk_kind::legacy;
  /// Splits of a pinned policy, as spelled: 99 stays 99 here. 0 for the other kinds.
  std::size_t splits = 0;

  friend constexpr bool operator==(const splitk_policy&, const splitk_policy&) = default;
};

namespace detail {

constexpr char ascii_lower(char character) {
  return character >= 'A' && character <= 'Z' ? static_cast<char>(character - 'A' + 'a') : character;
}

/// `lower` is in lower case already.
constexpr bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (std::size_t index = 0; index < text.size(); ++index) {
    if (ascii_lower(text[index]) != lower[index]) return false;
  }
  return true;
}

constexpr std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\n\v\f\r";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

} // namespace detail

/// Reads a split-K spelling, trimmed and in any case: `legacy`, `auto`, `0|off|false|no` (one split), or a
/// decimal count of splits. Anything else keeps the declared policy. A count beyond 64 bits counts as the
/// largest std::size_t: it is no size, and the formula takes every count above 16 as 16.
constexpr splitk_policy parse_splitk(std::string_view spelling, splitk_policy declared) {
  const std::string_view text = detail::trimmed(spelling);
  if (detail::equals_ignoring_case(text, "legacy")) return {splitk_kind::legacy, 0};
  if (detail::equals_ignoring_case(text, "auto")) return {splitk_kind::automatic, 0};
  for (const std::string_view off : {"0", "off", "false", "no"}) {
    if (detail::equals_ignoring_case(text, off)) return {splitk_kind::pinned, 1};
  }
  if (text.empty()) return declared;

  constexpr std::size_t largest = std::numeric_limits<std::size_t>::max();
  std::size_t splits = 0;
  for (const char character : text) {
    if (character < '0' || character > '9') return declared;
    const auto digit = static_cast<std::size_t>(character - '0');
    splits = splits > (largest - digit) / 10 ? largest : splits * 10 + digit;
  }
  return {splitk_kind::pinned, splits};
}

/// Switches of the forward arena that are no property of the model. Fill it by hand or read it from the
/// environment once; formulas only ever see this struct.
struct levers {
  /// Keep GGUF Q2 weights and expand them on use: q2_dequant_scratch. `METRALE_GGUF_NATIVE_Q2`.
  bool gguf_native_q2 = false;
  /// Multiply Q2 weights with quantised activations: q2_act_q8. `METRALE_GGUF_NATIVE_Q2_MMQ`.
  bool gguf_native_q2_mmq = false;
  /// Keep bf16 copies of the projections of the linear-attention layers: ssm_rowwise_w_bf16.
  /// `METRALE_FP8_ROWWISE`.
  bool fp8_rowwise = false;
  /// Splits of decode attention: splitk_workspace. `METRALE_ATTN_DECODE_SPLITK`.
  splitk_policy splitk{};

  friend constexpr bool operator==(const levers&, const levers&) = default;
};

/// Reads the levers through `lookup(name)`, which gives a variable's text, or null where there is no such
/// variable; the declared lever then stays. A switch with a text is on when the text is exactly `1`, else
/// off.
template <class Lookup>
  requires std::is_invocable_r_v<const char*, Lookup&, const char*>
constexpr levers read_levers(Lookup&& lookup, levers declared = {}) {
  const auto read_switch = [&lookup](const char* name, bool otherwise) {
    const char* const text = lookup(name);
    return text == nullptr ? otherwise : std::string_view{text} == "1";
  };
  levers result = declared;
  result.gguf_native_q2 = read_switch("METRALE_GGUF_NATIVE_Q2", declared.gguf_native_q2);
  result.gguf_native_q2_mmq = read_switch("METRALE_GGUF_NATIVE_Q2_MMQ", declared.gguf_native_q2_mmq);
  result.fp8_rowwise = read_switch("METRALE_FP8_ROWWISE", declared.fp8_rowwise);
  const char* const spelling = lookup("METRALE_ATTN_DECODE_SPLITK");
  if (spelling != nullptr) result.splitk = parse_splitk(spelling, declared.splitk);
  return result;
}

/// Reads the levers from the environment: the one place of the library that does. Call it once, before other
/// threads change the environment.
inline levers levers_from_environment(levers declared = {}) {
  return read_levers([](const char* name) -> const char* { return std::getenv(name); }, declared);
}

} // namespace stowage::inline v0_1::llm
