// Measures: tokens a second, what clearing costs, bytes of each buffer.
#include "cpu_engine.hpp"
#include "options.hpp"
#ifdef STOWAGE_ENGINE_CUDA
#include "cuda_engine.hpp"
#endif

#include <stowage/backend/host.hpp>
#include <stowage/report.hpp>
#include <stowage/report/table.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
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
  std::vector<std::uint32_t> tokens;
  for (std::size_t index = 0; index < length; ++index)
    tokens.push_back(static_cast<std::uint32_t>((index * 7919 + 17) % vocabulary));
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

/// What a step would clear by habit: the buffers with a row policy, by number.
template <class Plan> std::vector<std::size_t> row_fields(const Plan& plan) {
  std::vector<std::size_t> result;
  for (std::size_t field = 0; field < Plan::field_count; ++field)
    if (stowage::report_field(plan, field).policy == "rows" && plan.present(field)) result.push_back(field);
  return result;
}

void measure_cpu(const engine::model& model, engine::engine_limits limits) {
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
    std::printf("decode, batch %zu: %.3f ms a step, %.1f tokens a second\n", batch, step * 1e3,
                static_cast<double>(batch) / step);
    const auto line = [&](const char* what, std::vector<double> seconds, std::size_t bytes) {
      const double each = median(std::move(seconds));
      std::printf("  %-44s %10zu bytes %10.2f us %7.3f %% of a step\n", what, bytes, each * 1e6,
                  each / step * 100);
    };
    line("a memset a buffer, whole", whole, habit.plan().zero_all_bytes());
    line("a memset a buffer, rows", by_rows, habit.plan().zero_rows_bytes(rows));
    line("zero_rows of the same buffers", habit_pass, habit.plan().zero_rows_bytes(rows));
    line("zero_rows of what the experiment left", own_pass, engine.arena().plan().zero_rows_bytes(rows));
  }
}

} // namespace

int main(int count, char** arguments) {
  try {
    std::vector<char*> with_prompt(arguments, arguments + count); // the options want one
    char none[] = "none";
    with_prompt.push_back(none);
    engine::options options = engine::read_options(static_cast<int>(with_prompt.size()), with_prompt.data());
    options.limits.max_sequences = stowage::sequences{16};
    options.limits.max_context = 1024;
    options.limits.cache_pages = stowage::pages{16 * 1024 / engine::page_tokens};
    const engine::gguf_file file(options.model);
    const engine::model model(file);
    if (options.cuda) {
#ifdef STOWAGE_ENGINE_CUDA
      engine::cuda_engine engine(model, options.limits);
      std::cout << stowage::to_table(stowage::make_report(engine.arena().plan())) << std::flush;
      measure_prefill(engine);
      measure_cuda(engine);
#else
      throw std::runtime_error("engine: built without CUDA");
#endif
    } else {
      measure_cpu(model, options.limits);
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
