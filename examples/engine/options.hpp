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
  bool help = false;
  std::size_t tokens = 128;
  float temperature = 0.0F;
  std::uint32_t seed = 1;
  engine_limits limits;
};

inline constexpr const char* usage =
    "usage: stowage-engine --model FILE.gguf [options] PROMPT\n"
    "  --raw              the prompt as it is, without the chat format\n"
    "  --tokens N         the most tokens to write (128)\n"
    "  --threads N        of the CPU (all that there are)\n"
    "  --context N        the most tokens of a sequence (2048)\n"
    "  --temperature X    chooses among the best tokens; 0 takes the best one (0)\n"
    "  --top-k N          from how many (40, with a temperature)\n"
    "  --seed N           of the choice (1)\n"
    "  --report           what each buffer takes\n"
    "  --dump FILE        writes tokens of the prompt, tokens of the answer, and logits behind the prompt";

/// Throws std::runtime_error that says what is wrong, or the usage.
options read_options(int count, char** arguments);

} // namespace engine
