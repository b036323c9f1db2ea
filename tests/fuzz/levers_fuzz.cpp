// An environment as lines NAME=TEXT, the declared policy in the first byte: the levers are what their description says,
// worked out a second time with the standard library.

#include "require.hpp"

#include <stowage/llm/levers.hpp>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>

namespace {

using stowage::llm::levers;
using stowage::llm::splitk_kind;
using stowage::llm::splitk_policy;

bool is_blank(char character) {
  return std::string_view{" \t\n\v\f\r"}.find(character) != std::string_view::npos;
}

/// What a split-K spelling means, by its description.
splitk_policy expected_splitk(std::string text, splitk_policy declared) {
  while (!text.empty() && is_blank(text.back())) text.pop_back();
  while (!text.empty() && is_blank(text.front())) text.erase(0, 1);
  std::string lower;
  for (const char character : text) {
    const bool upper = character >= 'A' && character <= 'Z';
    lower.push_back(upper ? static_cast<char>(character + 32) : character);
  }
  if (lower == "legacy") return {splitk_kind::legacy, 0};
  if (lower == "auto") return {splitk_kind::automatic, 0};
  if (lower == "0" || lower == "off" || lower == "false" || lower == "no") return {splitk_kind::pinned, 1};
  if (lower.empty()) return declared;
  if (!std::all_of(lower.begin(), lower.end(), [](char each) { return each >= '0' && each <= '9'; }))
    return declared;
  // 2^64 - 1 has 20 digits: compared as texts, so that nothing can wrap here.
  lower.erase(0, std::min(lower.find_first_not_of('0'), lower.size()));
  const std::string largest = "18446744073709551615";
  if (lower.size() > largest.size() || (lower.size() == largest.size() && lower > largest)) lower = largest;
  return {splitk_kind::pinned, lower.empty() ? 0 : static_cast<std::size_t>(std::stoull(lower))};
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const unsigned first = size == 0 ? 0U : data[0];
  levers declared;
  declared.gguf_native_q2 = (first & 1U) != 0;
  declared.gguf_native_q2_mmq = (first & 2U) != 0;
  declared.fp8_rowwise = (first & 4U) != 0;
  if ((first & 8U) != 0) declared.splitk = {splitk_kind::automatic, 0};
  if ((first & 16U) != 0) declared.splitk = {splitk_kind::pinned, 7};

  std::map<std::string, std::string, std::less<>> environment;
  std::string_view text;
  if (size != 0) text = {reinterpret_cast<const char*>(data) + 1, size - 1};
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\0'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(line.substr(0, equals), line.substr(equals + 1));
  }

  const auto lookup = [&environment](const char* name) -> const char* {
    const auto found = environment.find(std::string_view{name});
    return found == environment.end() ? nullptr : found->second.c_str();
  };
  const levers result = stowage::llm::read_levers(lookup, declared);

  const auto expected = [&](const char* name, bool otherwise) {
    const auto found = environment.find(std::string_view{name});
    return found == environment.end() ? otherwise : found->second == "1";
  };
  fuzz::require(result.gguf_native_q2 == expected("METRALE_GGUF_NATIVE_Q2", declared.gguf_native_q2), "q2");
  fuzz::require(result.gguf_native_q2_mmq ==
                    expected("METRALE_GGUF_NATIVE_Q2_MMQ", declared.gguf_native_q2_mmq),
                "q2_mmq");
  fuzz::require(result.fp8_rowwise == expected("METRALE_FP8_ROWWISE", declared.fp8_rowwise), "rowwise");
  const auto spelling = environment.find(std::string_view{"METRALE_ATTN_DECODE_SPLITK"});
  fuzz::require(result.splitk == (spelling == environment.end()
                                      ? declared.splitk
                                      : expected_splitk(spelling->second, declared.splitk)),
                "split-K in the environment");

  // The whole input as one spelling: it needs no 26 characters in front to be looked at. Here also zero bytes.
  const std::string whole(reinterpret_cast<const char*>(data), size);
  fuzz::require(stowage::llm::parse_splitk(whole, declared.splitk) == expected_splitk(whole, declared.splitk),
                "split-K");
  return 0;
}
