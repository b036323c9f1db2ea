#include "tokenizer.hpp"

#include <array>
#include <clocale>
#include <cwctype>
#include <limits>
#include <stdexcept>

namespace engine {

namespace {

std::string utf8(char32_t code) {
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
  return {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
          static_cast<char>(0x80 | (code & 0x3f))};
}

/// The vocabulary writes bytes as printable characters: those that are printable in Latin-1 as themselves, the
/// others, in order, as the characters from U+0100 on.
const std::unordered_map<std::string, char>& byte_of_character() {
  static const auto table = [] {
    std::unordered_map<std::string, char> result;
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
      result.emplace(utf8(printable ? byte : next++), static_cast<char>(byte));
    }
    return result;
  }();
  return table;
}

std::string bytes_of(std::string_view written) {
  std::string result;
  for (std::size_t at = 0; at < written.size();) {
    const auto first = static_cast<unsigned char>(written[at]);
    const std::size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    const auto found = byte_of_character().find(std::string(written.substr(at, length)));
    if (found == byte_of_character().end()) return std::string(written); // a special token
    result += found->second;
    at += length;
  }
  return result;
}

/// Letters as the C library's UTF-8 locale knows them; digits of other scripts count as letters there.
bool is_letter(char32_t code) {
  if (code < 0x80) return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z');
  static const locale_t unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return unicode == nullptr || iswalpha_l(static_cast<std::wint_t>(code), unicode) != 0;
}
bool is_space(char32_t code) {
  return code == ' ' || (code >= '\t' && code <= '\r') || code == 0x85 || code == 0xa0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f ||
         code == 0x205f || code == 0x3000;
}
bool is_digit(char32_t code) { return code >= '0' && code <= '9'; }

enum class character_class { letter, digit, space, other, end };

struct character {
  character_class kind;
  std::size_t bytes;
};

/// The character at a place; a byte that is no UTF-8 counts as one other character.
character character_at(std::string_view text, std::size_t at) {
  if (at >= text.size()) return {character_class::end, 0};
  const auto first = static_cast<unsigned char>(text[at]);
  std::size_t length = first < 0x80   ? 1
                       : first < 0xc2 ? 0
                       : first < 0xe0 ? 2
                       : first < 0xf0 ? 3
                       : first < 0xf5 ? 4
                                      : 0;
  char32_t code = length < 2 ? first : first & (0x7fU >> length);
  for (std::size_t next = 1; next < length; ++next) {
    const auto byte = at + next < text.size() ? static_cast<unsigned char>(text[at + next]) : 0U;
    if ((byte & 0xc0U) != 0x80U) length = 0;
    code = code << 6 | (byte & 0x3fU);
  }
  if (length == 0) return {character_class::other, 1};
  if (is_space(code)) return {character_class::space, length};
  if (is_digit(code)) return {character_class::digit, length};
  return {is_letter(code) ? character_class::letter : character_class::other, length};
}

/// Bytes of the characters of one class from a place on.
std::size_t run_of(std::string_view text, std::size_t at, character_class kind) {
  const std::size_t start = at;
  for (character next = character_at(text, at); next.kind == kind; next = character_at(text, at))
    at += next.bytes;
  return at - start;
}

/// Bytes of the next word: GPT-2's pattern within what lies between digits, and each digit by itself. A space goes
/// with the letters or signs behind it; of several spaces the last one does.
std::size_t word_length(std::string_view text) {
  if (text[0] == '\'') {
    for (const std::string_view suffix : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
      if (text.substr(0, suffix.size()) == suffix) return suffix.size();
  }
  const character first = character_at(text, 0);
  if (first.kind == character_class::digit) return first.bytes;
  const std::size_t lead = text[0] == ' ' ? 1 : 0;
  const character head = character_at(text, lead);
  if (head.kind == character_class::letter || head.kind == character_class::other)
    return lead + run_of(text, lead, head.kind);
  const std::size_t spaces = run_of(text, 0, character_class::space);
  const character_class behind = character_at(text, spaces).kind;
  if (behind == character_class::end || behind == character_class::digit) return spaces;
  std::size_t last = 0; // bytes up to the last space
  while (last + character_at(text, last).bytes < spaces) last += character_at(text, last).bytes;
  return last == 0 ? spaces : last;
}

std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) { return std::uint64_t{left} << 32 | right; }

} // namespace

tokenizer::tokenizer(const gguf_file& file) {
  const auto& written = file.texts("tokenizer.ggml.tokens");
  const auto& types = file.integers("tokenizer.ggml.token_type");
  if (types.size() != written.size())
    throw std::runtime_error("engine: tokens and token types differ in number");
  for (std::size_t token = 0; token < written.size(); ++token) {
    special_.push_back(types[token] == 3); // a control token
    pieces_.push_back(special_.back() ? std::string(written[token]) : bytes_of(written[token]));
    token_of_.emplace(pieces_.back(), static_cast<std::uint32_t>(token));
  }
  std::uint32_t rank = 0;
  for (const std::string_view line : file.texts("tokenizer.ggml.merges")) {
    const std::size_t space = line.find(' ', 1);
    const std::string left = bytes_of(line.substr(0, space));
    const std::string right = space == std::string_view::npos ? "" : bytes_of(line.substr(space + 1));
    const auto one = token_of_.find(left);
    const auto other = token_of_.find(right);
    const auto both = token_of_.find(left + right);
    if (one != token_of_.end() && other != token_of_.end() && both != token_of_.end())
      merges_.emplace(pair_of(one->second, other->second), merge{rank, both->second});
    ++rank;
  }
  end_ = static_cast<std::uint32_t>(file.integer("tokenizer.ggml.eos_token_id"));
}

std::vector<std::uint32_t> tokenizer::encode(std::string_view text) const {
  std::vector<std::uint32_t> tokens;
  while (!text.empty()) {
    // The first special token in what is left, and the longest of those that begin there.
    std::size_t first = text.size();
    std::uint32_t found = 0;
    for (std::uint32_t token = 0; token < pieces_.size(); ++token) {
      if (!special_[token] || pieces_[token].empty()) continue;
      const std::size_t at = text.find(pieces_[token]);
      if (at < first || (at == first && at < text.size() && pieces_[token].size() > pieces_[found].size())) {
        first = at;
        found = token;
      }
    }
    encode_plain(text.substr(0, first), tokens);
    if (first == text.size()) break;
    tokens.push_back(found);
    text.remove_prefix(first + pieces_[found].size());
  }
  return tokens;
}

void tokenizer::encode_plain(std::string_view text, std::vector<std::uint32_t>& tokens) const {
  while (!text.empty()) {
    const std::size_t length = word_length(text);
    encode_word(text.substr(0, length), tokens);
    text.remove_prefix(length);
  }
}

void tokenizer::encode_word(std::string_view word, std::vector<std::uint32_t>& tokens) const {
  std::vector<std::uint32_t> parts;
  for (const char byte : word) {
    const auto found = token_of_.find(std::string(1, byte));
    if (found == token_of_.end()) throw std::runtime_error("engine: the vocabulary lacks a byte");
    parts.push_back(found->second);
  }
  for (;;) { // the merge of the lowest rank, until there is none
    merge best{std::numeric_limits<std::uint32_t>::max(), 0};
    std::size_t where = 0;
    for (std::size_t at = 0; at + 1 < parts.size(); ++at) {
      const auto found = merges_.find(pair_of(parts[at], parts[at + 1]));
      if (found != merges_.end() && found->second.rank < best.rank) {
        best = found->second;
        where = at;
      }
    }
    if (best.rank == std::numeric_limits<std::uint32_t>::max()) break;
    parts[where] = best.token;
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(where) + 1);
  }
  tokens.insert(tokens.end(), parts.begin(), parts.end());
}

std::string tokenizer::decode(std::uint32_t token) const {
  return token < pieces_.size() && !special_[token] ? pieces_[token] : std::string();
}

std::string tokenizer::decode(const std::vector<std::uint32_t>& tokens) const {
  std::string text;
  for (const std::uint32_t token : tokens) text += decode(token);
  return text;
}

std::string tokenizer::chat(std::string_view request) {
  return "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
         "Face<|im_end|>\n<|im_start|>user\n" +
         std::string(request) + "<|im_end|>\n<|im_start|>assistant\n";
}

} // namespace engine
