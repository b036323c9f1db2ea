// What the engine's programs are told.
#pragma once

#include "buffers.hpp"
#include "sampler.hpp"

#include <cstdint>
#include <string>

namespace engine {

struct options {
  std::string model, prompt, dump;
  bool raw = false;    ///< the prompt as it is, without the chat format
  bool report = false; ///< the arena's buffers and their bytes
  std::size_t tokens = 128;
  float temperature = 0.0F;
  std::uint32_t seed = 1;
  engine_limits limits;
};

/// Throws std::runtime_error that says what is wrong, or the usage.
options read_options(int count, char** arguments);

} // namespace engine
