// Byte-level byte pair encoding, as GPT-2 has it, with the vocabulary and merges of a GGUF file.
#pragma once

#include "gguf.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace engine {

class tokenizer {
public:
  explicit tokenizer(const gguf_file& file);

  /// The tokens of a text. Special tokens written in it, such as <|im_start|>, are recognised.
  [[nodiscard]] std::vector<std::uint32_t> encode(std::string_view text) const;
  /// The bytes of a token; nothing for a special one.
  [[nodiscard]] std::string decode(std::uint32_t token) const;
  [[nodiscard]] std::string decode(const std::vector<std::uint32_t>& tokens) const;

  /// One request in the chat format of SmolLM2-Instruct, up to where the assistant's answer begins.
  [[nodiscard]] static std::string chat(std::string_view request);

  /// The token that ends an answer.
  [[nodiscard]] std::uint32_t end() const { return end_; }

private:
  void encode_plain(std::string_view text, std::vector<std::uint32_t>& tokens) const;
  void encode_word(std::string_view word, std::vector<std::uint32_t>& tokens) const;

  std::vector<std::string> pieces_; ///< bytes by token
  std::vector<bool> special_;
  std::unordered_map<std::string, std::uint32_t> token_of_;
  /// Rank and result of a merge, by its two tokens.
  struct merge {
    std::uint32_t rank, token;
  };
  std::unordered_map<std::uint64_t, merge> merges_;
  std::uint32_t end_ = 0;
};

} // namespace engine
