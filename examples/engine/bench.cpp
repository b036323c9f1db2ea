// Measures: tokens a second, what clearing costs, bytes of each buffer.
// Built twice: on the CPU half, and with STOWAGE_ENGINE_CUDA on the CUDA half.
#ifdef STOWAGE_ENGINE_CUDA
#include "cuda_engine.hpp"
#else
#include "cpu_engine.hpp"
#include <stowage/backend/host.hpp>
#endif
#include "options.hpp"

#include <stowage/report.hpp>
#include <stowage/report/table.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <iostream>
#include <stdexcept>
#include <vector>

namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t prompt_tokens = 512, decode_steps = 128, repeats = 5;

template <class Work> double seconds_of(const Work& work) {
  const auto start = clock::now();
  work();
  return std::chrono::duration<double>(clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

/// The same tokens every time.
std::vector<std::uint32_t> prompt_of(std::size_t length, std::size_t vocabulary) {
  std::vector<std::uint32_t> tokens(length);
  for (std::size_t index = 0; index < length; ++index)
    tokens[index] = static_cast<std::uint32_t>((index * 7919 + 17) % vocabulary);
  return tokens;
}

template <class Engine> void measure_prefill(Engine& engine) {
  const auto prompt = prompt_of(prompt_tokens, engine.arena().params().vocabulary);
  std::vector<double> seconds;
  for (std::size_t repeat = 0; repeat <= repeats; ++repeat) {
    const std::size_t sequence = engine.sequences().open();
    const double each = seconds_of([&] { engine.prefill(sequence, prompt); });
    if (repeat != 0) seconds.push_back(each); // the first one warms up
    engine.sequences().close(sequence);
  }
  const double each = median(seconds);
  std::printf("prefill of %zu tokens: %.2f ms, %.0f tokens a second\n", prompt_tokens, each * 1e3,
              static_cast<double>(prompt_tokens) / each);
}

/// Opens `batch` sequences of 32 tokens each.
template <class Engine>
void open_batch(Engine& engine, std::size_t batch, std::vector<std::size_t>& open,
                std::vector<std::uint32_t>& tokens) {
  const auto prompt = prompt_of(32, engine.arena().params().vocabulary);
  for (std::size_t index = 0; index < batch; ++index) {
    open.push_back(engine.sequences().open());
    tokens.push_back(engine.prefill(open.back(), prompt));
  }
}

/// Seconds of a decode step, the median of some. Before each step, `between` is called.
template <class Engine, class Between>
double measure_decode(Engine& engine, std::size_t batch, const Between& between) {
  std::vector<std::size_t> open;
  std::vector<std::uint32_t> tokens;
  open_batch(engine, batch, open, tokens);
  std::vector<double> seconds;
  for (std::size_t step = 0; step < decode_steps; ++step) {
    between();
    seconds.push_back(seconds_of([&] { engine.decode(open, tokens); }));
  }
  for (const std::size_t sequence : open) engine.sequences().close(sequence);
  return median(seconds);
}

void print_step(std::size_t batch, double seconds) {
  std::printf("decode, batch %zu: %.3f ms a step, %.1f tokens a second\n", batch, seconds * 1e3,
              static_cast<double>(batch) / seconds);
}
void print_clearing(const char* what, std::size_t bytes, double seconds, double step) {
  std::printf("  %-44s %10zu bytes %10.2f us %7.3f %% of a step\n", what, bytes, seconds * 1e6,
              seconds / step * 100);
}

#ifdef STOWAGE_ENGINE_CUDA

/// Seconds of a replay of the captured step, from the device's clock: many, one behind the other.
template <class Engine> double measure_replays(Engine& engine) {
  constexpr int replays = 200;
  cudaEvent_t start = nullptr;
  cudaEvent_t end = nullptr;
  cudaEventCreate(&start);
  cudaEventCreate(&end);
  std::vector<double> seconds;
  for (std::size_t repeat = 0; repeat <= repeats; ++repeat) {
    cudaEventRecord(start, engine.stream());
    for (int replay = 0; replay < replays; ++replay) engine.replay();
    cudaEventRecord(end, engine.stream());
    float milliseconds = 0;
    if (cudaEventSynchronize(end) != cudaSuccess ||
        cudaEventElapsedTime(&milliseconds, start, end) != cudaSuccess)
      throw std::runtime_error("engine: the replays could not be timed");
    if (repeat != 0) seconds.push_back(static_cast<double>(milliseconds) / 1e3 / replays);
  }
  cudaEventDestroy(start);
  cudaEventDestroy(end);
  return median(seconds);
}

/// What a step takes with a way of clearing, less what it takes with none: graphs of their own, by turns.
template <class Engine>
std::vector<double> measure_clearing(Engine& engine, std::initializer_list<engine::clearing> ways,
                                     std::size_t batch) {
  std::vector<double> result;
  engine.capture(engine::clearing::none, batch);
  const double none = measure_replays(engine);
  for (const engine::clearing how : ways) {
    engine.capture(how, batch);
    result.push_back(measure_replays(engine) - none);
  }
  return result;
}

void measure(const engine::model& model, engine::engine_limits limits) {
  stowage::cuda::backend device;
  stowage::cuda::backend pinned({.memory = stowage::cuda::memory_kind::pinned});
  engine::cuda_engine<> engine(model, limits, stowage::any_backend(device), stowage::any_backend(pinned));
  using habit_list = engine::cuda_buffers<stowage::zero::rows>;
  engine::cuda_engine<habit_list> habit(model, limits, stowage::any_backend(device),
                                        stowage::any_backend(pinned));

  std::cout << stowage::to_table(stowage::make_report(engine.arena().plan())) << std::flush;
  std::printf("\n");
  measure_prefill(engine);
  for (const std::size_t batch : {1U, 4U, 16U}) {
    const stowage::tokens rows{batch};
    const double step = measure_decode(engine, batch, [] {});
    print_step(batch, step);
    // A replay for the metadata of the step before gives the same again.
    measure_decode(habit, batch, [] {});
    const auto by_habit = measure_clearing(
        habit, {engine::clearing::whole_memsets, engine::clearing::row_memsets, engine::clearing::pass},
        batch);
    const double own = measure_clearing(engine, {engine::clearing::pass}, batch)[0];
    std::printf("  a replay, device time: %.2f us\n", measure_replays(engine) * 1e6);
    print_clearing("a memset a buffer, whole", habit.arena().plan().zero_all_bytes(), by_habit[0], step);
    print_clearing("a memset a buffer, rows", habit.arena().plan().zero_rows_bytes(rows), by_habit[1], step);
    print_clearing("zero_rows of the same buffers", habit.arena().plan().zero_rows_bytes(rows), by_habit[2],
                   step);
    print_clearing("zero_rows of what the experiment left", engine.arena().plan().zero_rows_bytes(rows), own,
                   step);
  }
}

#else

/// What a step would clear by habit: the buffers with a row policy, by number.
template <class Plan> std::vector<std::size_t> row_fields(const Plan& plan) {
  std::vector<std::size_t> result;
  for (std::size_t field = 0; field < Plan::field_count; ++field)
    if (stowage::report_field(plan, field).policy == "rows" && plan.present(field)) result.push_back(field);
  return result;
}

void measure(const engine::model& model, engine::engine_limits limits) {
  stowage::host_backend memory;
  engine::cpu_engine<> engine(model, limits, stowage::any_backend(memory));
  using habit_list = engine::cpu_buffers<stowage::zero::rows>;
  stowage::arena habit(stowage::make_plan<habit_list>(engine::engine_params{model.shape, limits}), memory);
  const auto fields = row_fields(habit.plan());

  std::cout << stowage::to_table(stowage::make_report(engine.arena().plan())) << std::flush;
  std::printf("\n%zu threads\n", limits.threads);
  measure_prefill(engine);
  for (const std::size_t batch : {1U, 4U, 16U}) {
    const stowage::tokens rows{batch};
    std::vector<double> whole, by_rows, habit_pass, own_pass;
    // One of the four a step: a step reads all weights, so what is cleared after it is in no cache of a core.
    std::size_t turn = 0;
    const double step = measure_decode(engine, batch, [&] {
      switch (turn++ % 4) {
        case 0:
          whole.push_back(seconds_of([&] {
            for (const std::size_t field : fields)
              std::memset(habit.address(field), 0, habit.plan().bytes(field));
          }));
          break;
        case 1:
          by_rows.push_back(seconds_of([&] {
            for (const std::size_t field : fields)
              std::memset(habit.address(field), 0, habit.plan().zero_bytes(field, rows));
          }));
          break;
        case 2: habit_pass.push_back(seconds_of([&] { habit.zero_rows({}, rows); })); break;
        default: own_pass.push_back(seconds_of([&] { engine.arena().zero_rows({}, rows); }));
      }
    });
    print_step(batch, step);
    const auto& plan = habit.plan();
    print_clearing("a memset a buffer, whole", plan.zero_all_bytes(), median(whole), step);
    print_clearing("a memset a buffer, rows", plan.zero_rows_bytes(rows), median(by_rows), step);
    print_clearing("zero_rows of the same buffers", plan.zero_rows_bytes(rows), median(habit_pass), step);
    print_clearing("zero_rows of what the experiment left", engine.arena().plan().zero_rows_bytes(rows),
                   median(own_pass), step);
  }
}

#endif

} // namespace

int main(int count, char** arguments) {
  try {
    std::vector<char*> with_prompt(arguments, arguments + count); // the options want one
    char none[] = "none";
    with_prompt.push_back(none);
    engine::options options = engine::read_options(static_cast<int>(with_prompt.size()), with_prompt.data());
    options.limits.max_sequences = stowage::sequences{16};
    options.limits.max_context = 1024;
    options.limits.cache_pages = stowage::pages{std::size_t{16} * 1024 / engine::page_tokens};
    const engine::gguf_file file(options.model);
    const engine::model model(file);
    measure(model, options.limits);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
