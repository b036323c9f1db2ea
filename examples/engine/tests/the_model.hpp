#pragma once

// The model that STOWAGE_ENGINE_MODEL names, for the tests of both halves.

#include "gguf.hpp"
#include "model.hpp"
#include "tokenizer.hpp"

#include <cstdint>
#include <cstdlib>
#include <doctest/doctest.h>
#include <string_view>
#include <vector>

namespace test {

using tokens = std::vector<std::uint32_t>;

struct loaded {
  engine::gguf_file file;
  engine::model model;
  engine::tokenizer words;
  explicit loaded(const char* path) : file(path), model(file), words(file) {}
};

inline const loaded& the_model() {
  static const loaded result([] {
    const char* path = std::getenv("STOWAGE_ENGINE_MODEL");
    REQUIRE_MESSAGE(path != nullptr, "STOWAGE_ENGINE_MODEL names the model's file");
    return path;
  }());
  return result;
}

inline tokens prompt(std::string_view text) {
  return the_model().words.encode(engine::tokenizer::chat(text));
}

} // namespace test
