// Writes text: stowage-engine --model FILE.gguf PROMPT
// Built twice: on the CPU half, and with STOWAGE_ENGINE_CUDA on the CUDA half.
#ifdef STOWAGE_ENGINE_CUDA
#include "cuda_engine.hpp"
#else
#include "cpu_engine.hpp"
#include <stowage/backend/host.hpp>
#endif
#include "options.hpp"
#include "tokenizer.hpp"

#include <stowage/report.hpp>
#include <stowage/report/table.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <random>
#include <stdexcept>

namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

template <class Engine>
void generate(Engine& engine, const engine::tokenizer& words, const engine::options& options) {
  if (options.report) std::cout << stowage::to_table(stowage::make_report(engine.arena().plan()));
  if (options.prompt.empty()) return;
  const auto prompt = words.encode(options.raw ? options.prompt : engine::tokenizer::chat(options.prompt));
  if (prompt.empty()) throw std::runtime_error("engine: the prompt is empty");
  std::mt19937 random(options.seed);
  const auto choice = [&] {
    return engine::sampling{options.temperature, std::uniform_real_distribution<float>(0.0F, 1.0F)(random)};
  };

  const std::size_t sequence = engine.sequences().open();
  const auto start = clock::now();
  std::uint32_t token = engine.prefill(sequence, prompt, choice());
  const double prefill_seconds = seconds_since(start);
  std::ofstream dump(options.dump);
  for (const std::uint32_t each : prompt) dump << each << ' ';
  dump << '\n';
  std::vector<float> logits;
  if (!options.dump.empty()) logits.assign(engine.logits(0).begin(), engine.logits(0).end());

  const auto decode_start = clock::now();
  std::size_t written = 0;
  while (written < options.tokens && (token != words.end() || options.raw)) {
    std::cout << words.decode(token) << std::flush;
    dump << token << ' ';
    if (++written < options.tokens) engine.decode({&sequence, 1}, {&token, 1}, choice());
  }
  std::cout << '\n';
  const double decode_seconds = seconds_since(decode_start);
  dump << '\n';
  dump.precision(9);
  for (const float each : logits) dump << each << ' ';
  if (!options.dump.empty() && !dump.flush())
    throw std::runtime_error("engine: '" + options.dump + "' cannot be written");
  std::fprintf(stderr, "prompt: %zu tokens, %.0f a second; answer: %zu tokens, %.0f a second\n",
               prompt.size(), static_cast<double>(prompt.size()) / prefill_seconds, written,
               static_cast<double>(written) / decode_seconds);
  engine.sequences().close(sequence);
}

} // namespace

int main(int count, char** arguments) {
  try {
    const engine::options options = engine::read_options(count, arguments);
    if (options.help) {
      std::cout << engine::usage << '\n';
      return 0;
    }
    const engine::gguf_file file(options.model);
    const engine::model model(file);
    const engine::tokenizer words(file);
#ifdef STOWAGE_ENGINE_CUDA
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
      std::cerr << "SKIPPED: no GPU\n";
      return 77; // for CTest
    }
    stowage::cuda::backend device;
    stowage::cuda::backend pinned({.memory = stowage::cuda::memory_kind::pinned});
    engine::cuda_engine<> engine(model, options.limits, stowage::any_backend(device),
                                 stowage::any_backend(pinned));
#else
    stowage::host_backend memory;
    engine::cpu_engine<> engine(model, options.limits, stowage::any_backend(memory));
#endif
    generate(engine, words, options);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
