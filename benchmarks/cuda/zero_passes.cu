// Zeroing the forward arena on a GPU: code written by hand that calls cudaMemsetAsync for each buffer, the
// generated pass, and one memset of as many bytes, on the same buffers and in turns within one run; in a
// stream and in a graph. Then allocation and release of the buffers, and what enqueueing a pass costs the
// CPU. Times are medians. Options besides those of Google Benchmark: --csv=FILE (and FILE with .notes for
// .csv).

#include "../../tests/support/model_params.hpp"

#include <stowage/cuda/backend.hpp>
#include <stowage/llm/forward_arena.hpp>
#include <stowage/stowage.hpp>

#include <benchmark/benchmark.h>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using stowage::segment;
using stowage::tokens;

constexpr int skipped = 77; // for CTest

void check(cudaError_t code) {
  if (code != cudaSuccess) {
    std::printf("CUDA says %s\n", cudaGetErrorString(code));
    std::exit(1);
  }
}

struct model {
  const char* name;
  stowage::llm::forward_params (*params)(std::size_t capacity);
};
constexpr std::array<model, 3> models{{{"Qwen3-Next-80B", test::qwen3_next},
                                       {"DeepSeek-V3", test::deepseek_v3},
                                       {"Llama-3.1-8B", test::llama}}};
constexpr std::array<std::size_t, 2> capacities{4096, 8193};
constexpr std::array<std::size_t, 6> token_counts{1, 8, 32, 128, 512, 2048}; // and the capacity

using arena_type = stowage::llm::forward_arena<stowage::cuda::backend>;

cudaStream_t stream() {
  static const cudaStream_t result = [] {
    cudaStream_t created = nullptr;
    check(cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking));
    return created;
  }();
  return result;
}

/// The arena of a model; one at a time, kept from one benchmark to the next.
arena_type& arena_of(const model& which, std::size_t capacity) {
  static std::unique_ptr<arena_type> current;
  static std::pair<const char*, std::size_t> current_key{};
  if (current == nullptr || current_key != std::pair{which.name, capacity}) {
    current.reset();
    current = std::make_unique<arena_type>(
        stowage::llm::make_forward_arena(which.params(capacity), stowage::cuda::backend{}));
    current_key = {which.name, capacity};
  }
  return *current;
}

// What is compared.

enum class set : unsigned char { rows, rows_and_whole };
enum class mode : unsigned char { stream, graph };

/// The ranges that code written by hand clears, a call each: rows of 15 buffers, or of these and 3 buffers
/// whole. A buffer with two ranges takes two calls, as it would by hand.
std::vector<segment> by_hand(const arena_type& arena, set buffers, std::size_t count) {
  std::vector<segment> calls;
  std::size_t last_field = arena_type::plan_type::field_count;
  arena.plan().visit_row_pass(
      0, count, buffers == set::rows_and_whole, [&](std::size_t field, std::size_t begin, std::size_t end) {
        std::byte* const address = arena.address(field) + begin;
        if (field == last_field && calls.back().address + calls.back().bytes == address) {
          calls.back().bytes += end - begin;
        } else {
          calls.push_back({address, end - begin});
        }
        last_field = field;
      });
  return calls;
}

constexpr std::size_t contenders = 3;

struct contest {
  arena_type& arena;
  set buffers;
  std::size_t count;
  std::vector<segment> calls = by_hand(arena, buffers, count);
  std::size_t bytes = 0;

  contest(arena_type& given, set which, std::size_t tokens_of_pass)
      : arena(given), buffers(which), count(tokens_of_pass) {
    for (const segment& call : calls) bytes += call.bytes;
  }

  void hand() const {
    for (const segment& call : calls) check(cudaMemsetAsync(call.address, 0, call.bytes, stream()));
  }
  void ours() const {
    if (buffers == set::rows) {
      arena.zero_rows(stream(), tokens{0}, tokens{count});
    } else {
      arena.zero_rows(stream(), tokens{count});
    }
  }
  void one_memset() const { check(cudaMemsetAsync(arena.slab(), 0, bytes, stream())); }

  void enqueue(std::size_t contender) const {
    switch (contender) {
      case 0: return hand();
      case 1: return ours();
      default: return one_memset();
    }
  }

  /// Whether ours clears what the code written by hand clears: as many bytes, and each of them.
  [[nodiscard]] bool same_bytes() const {
    std::size_t planned = arena.plan().zero_rows_bytes(tokens{count});
    if (buffers == set::rows) planned -= arena.plan().zero_rows_bytes(tokens{0});
    if (planned != bytes) return false;
    for (const segment& call : calls) check(cudaMemsetAsync(call.address, 1, call.bytes, stream()));
    ours();
    std::vector<unsigned char> ends;
    for (const segment& call : calls) {
      for (const std::size_t at : {std::size_t{0}, call.bytes / 2, call.bytes - 1}) {
        ends.emplace_back();
        check(cudaMemcpyAsync(&ends.back(), call.address + at, 1, cudaMemcpyDeviceToHost, stream()));
        check(cudaStreamSynchronize(stream()));
      }
    }
    return std::all_of(ends.begin(), ends.end(), [](unsigned char byte) { return byte == 0; });
  }
};

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Two events, and the time between them.
class stopwatch {
public:
  stopwatch() {
    check(cudaEventCreate(&begin_));
    check(cudaEventCreate(&end_));
  }
  ~stopwatch() {
    static_cast<void>(cudaEventDestroy(begin_));
    static_cast<void>(cudaEventDestroy(end_));
  }
  stopwatch(const stopwatch&) = delete;
  stopwatch& operator=(const stopwatch&) = delete;

  /// Microseconds that the work takes on the stream.
  template <class Work> double microseconds(const Work& work) {
    check(cudaEventRecord(begin_, stream()));
    work();
    check(cudaEventRecord(end_, stream()));
    check(cudaEventSynchronize(end_));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return static_cast<double>(milliseconds) * 1e3;
  }

private:
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

/// A contender's passes, one behind the other, as a graph.
class chain {
public:
  chain(const contest& work, std::size_t contender, std::size_t length) {
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal));
    for (std::size_t pass = 0; pass < length; ++pass) work.enqueue(contender);
    check(cudaStreamEndCapture(stream(), &graph));
    check(cudaGraphInstantiate(&executable_, graph, 0));
    check(cudaGraphDestroy(graph));
    check(cudaGraphUpload(executable_, stream()));
  }
  ~chain() { static_cast<void>(cudaGraphExecDestroy(executable_)); }
  chain(const chain&) = delete;
  chain& operator=(const chain&) = delete;
  void launch() const { check(cudaGraphLaunch(executable_, stream())); }

private:
  cudaGraphExec_t executable_ = nullptr;
};

// What is written down.

struct row {
  const char* model;
  std::size_t capacity;
  const char* mode;
  const char* set;
  std::size_t calls;
  std::size_t count;
  std::size_t bytes;
  std::array<double, contenders> microseconds;
};
std::vector<row> rows;
std::vector<std::string> notes;

template <class... Values> void note(const char* format, Values... values) {
  std::array<char, 256> line;
  std::snprintf(line.data(), line.size(), format, values...);
  notes.emplace_back(line.data());
}

// The benchmarks.

/// A chain of passes: as many as make a launch small beside them.
std::size_t chain_length(std::size_t bytes) { return bytes < (std::size_t{256} << 20) ? 16 : 4; }

void passes(benchmark::State& state, const model& which, std::size_t capacity, mode how, set buffers,
            std::size_t count) {
  const contest work(arena_of(which, capacity), buffers, count);
  if (!work.same_bytes()) {
    state.SkipWithError("the pass and the code written by hand clear different bytes");
    return;
  }
  const std::size_t length = chain_length(work.bytes);
  std::vector<std::unique_ptr<chain>> graphs;
  if (how == mode::graph) {
    for (std::size_t contender = 0; contender < contenders; ++contender)
      graphs.push_back(std::make_unique<chain>(work, contender, length));
  }
  stopwatch watch;
  const auto time = [&](std::size_t contender) {
    const double taken = watch.microseconds([&] {
      if (how == mode::graph) {
        graphs[contender]->launch();
      } else {
        for (std::size_t pass = 0; pass < length; ++pass) work.enqueue(contender);
      }
    });
    return taken / static_cast<double>(length);
  };
  for (std::size_t contender = 0; contender < contenders; ++contender) time(contender); // warm
  std::array<std::vector<double>, contenders> samples;
  std::size_t round = 0;
  for ([[maybe_unused]] auto iteration : state) {
    for (std::size_t turn = 0; turn < contenders; ++turn) {
      const std::size_t contender = (turn + round) % contenders;
      samples[contender].push_back(time(contender));
    }
    ++round;
    state.SetIterationTime(samples[1].back() * 1e-6);
  }
  row result{which.name,
             capacity,
             how == mode::graph ? "graph" : "stream",
             buffers == set::rows ? "rows" : "all",
             work.calls.size(),
             count,
             work.bytes,
             {}};
  for (std::size_t contender = 0; contender < contenders; ++contender)
    result.microseconds[contender] = median(samples[contender]);
  rows.push_back(result);
  const auto& [hand, ours, memset] = result.microseconds;
  state.counters["calls"] = static_cast<double>(result.calls);
  state.counters["MB"] = static_cast<double>(result.bytes) / 1e6;
  state.counters["hand_us"] = hand;
  state.counters["ours_us"] = ours;
  state.counters["memset_us"] = memset;
  state.counters["hand/ours"] = hand / ours;
  state.counters["ours/memset"] = ours / memset;
}

double microseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

/// CPU time of enqueueing one pass, into a queue that is far from full.
void enqueue(benchmark::State& state, std::size_t count) {
  constexpr std::size_t repeats = 16; // in one timing
  const contest work(arena_of(models[0], capacities[0]), set::rows_and_whole, count);
  std::array<std::vector<double>, contenders> samples;
  for ([[maybe_unused]] auto iteration : state) {
    for (std::size_t contender = 0; contender < contenders; ++contender) {
      check(cudaStreamSynchronize(stream()));
      const auto begin = std::chrono::steady_clock::now();
      for (std::size_t repeat = 0; repeat < repeats; ++repeat) work.enqueue(contender);
      samples[contender].push_back(microseconds_since(begin) / repeats);
    }
    state.SetIterationTime(samples[1].back() * 1e-6);
  }
  check(cudaStreamSynchronize(stream()));
  std::array<double, contenders> taken{};
  for (std::size_t contender = 0; contender < contenders; ++contender)
    taken[contender] = median(samples[contender]);
  state.counters["hand_us"] = taken[0];
  state.counters["ours_us"] = taken[1];
  state.counters["memset_us"] = taken[2];
  note("enqueue, CPU time for %zu tokens: %zu memsets %.2f us, ours %.2f us, one memset %.2f us", count,
       work.calls.size(), taken[0], taken[1], taken[2]);
}

/// The buffers of an arena, made and given back: a call each, and in one.
void allocation(benchmark::State& state, const model& which) {
  const stowage::llm::forward_plan plan(which.params(capacities[0]));
  std::vector<std::size_t> sizes;
  for (std::size_t field = 0; field < plan.field_count; ++field) {
    if (plan.layout(field).allocated() != 0) sizes.push_back(plan.layout(field).allocated());
  }
  std::vector<void*> addresses(sizes.size());
  stowage::cuda::backend backend; // an engine has it already
  constexpr std::size_t ways = 4;
  constexpr std::array<const char*, ways> names{"cudaMalloc each", "cudaMallocAsync each", "ours",
                                                "one cudaMalloc"};
  std::array<std::vector<double>, ways> made;
  std::array<std::vector<double>, ways> released;
  const auto time = [&](std::size_t way, const auto& make, const auto& release) {
    check(cudaDeviceSynchronize());
    const auto before_make = std::chrono::steady_clock::now();
    make();
    check(cudaStreamSynchronize(stream()));
    made[way].push_back(microseconds_since(before_make));
    const auto before_release = std::chrono::steady_clock::now();
    release();
    check(cudaStreamSynchronize(stream()));
    released[way].push_back(microseconds_since(before_release));
  };
  bool ours_first = true;
  const auto round = [&] {
    time(
        0,
        [&] {
          for (std::size_t index = 0; index < sizes.size(); ++index)
            check(cudaMalloc(&addresses[index], sizes[index]));
        },
        [&] {
          for (void* const address : addresses) check(cudaFree(address));
        });
    time(
        1,
        [&] {
          for (std::size_t index = 0; index < sizes.size(); ++index)
            check(cudaMallocAsync(&addresses[index], sizes[index], stream()));
        },
        [&] {
          for (void* const address : addresses) check(cudaFreeAsync(address, stream()));
        });
    // By turns, since each way finds the driver as the one before left it.
    std::unique_ptr<arena_type> arena;
    void* slab = nullptr;
    const auto ours = [&] {
      time(
          2,
          [&] {
            arena = std::make_unique<arena_type>(
                plan, backend,
                arena_type::options_type{.where = stowage::placement::slab, .stream = stream()});
          },
          [&] { arena.reset(); });
    };
    const auto one = [&] {
      time(3, [&] { check(cudaMalloc(&slab, plan.slab_bytes())); }, [&] { check(cudaFree(slab)); });
    };
    if (ours_first) ours();
    one();
    if (!ours_first) ours();
    ours_first = !ours_first;
  };
  round(); // warm
  for (std::size_t way = 0; way < ways; ++way) {
    made[way].clear();
    released[way].clear();
  }
  for ([[maybe_unused]] auto iteration : state) {
    round();
    state.SetIterationTime((made[2].back() + released[2].back()) * 1e-6);
  }
  for (std::size_t way = 0; way < ways; ++way) {
    const double make = median(made[way]);
    const double release = median(released[way]);
    note("allocation, %s, %zu buffers, %.2f GB: %-20s %9.1f us made, %9.1f us released", which.name,
         sizes.size(), static_cast<double>(plan.slab_bytes()) / 1e9, names[way], make, release);
    state.counters[std::string(names[way]) + " us"] = make + release;
  }
  const double ratio = median(made[2]) / median(made[3]);
  note("allocation, %s: ours made in %.3f of one cudaMalloc of the slab", which.name, ratio);
}

void register_benchmarks() {
  for (const model& which : models) {
    benchmark::RegisterBenchmark((std::string("allocation/") + which.name).c_str(),
                                 [&which](benchmark::State& state) { allocation(state, which); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond)
        ->Iterations(41);
  }
  for (const model& which : models) {
    for (const std::size_t capacity : capacities) {
      std::vector<std::size_t> counts(token_counts.begin(), token_counts.end());
      counts.push_back(capacity);
      for (const mode how : {mode::stream, mode::graph}) {
        for (const set buffers : {set::rows, set::rows_and_whole}) {
          for (const std::size_t count : counts) {
            const std::string name = std::string(how == mode::graph ? "graph/" : "stream/") + which.name +
                                     "/M" + std::to_string(capacity) +
                                     (buffers == set::rows ? "/rows" : "/all") + "/T" + std::to_string(count);
            benchmark::RegisterBenchmark(
                name.c_str(),
                [=, &which](benchmark::State& state) { passes(state, which, capacity, how, buffers, count); })
                ->UseManualTime()
                ->Unit(benchmark::kMicrosecond)
                ->Iterations(count < capacity ? 31 : 11);
          }
        }
      }
    }
  }
  for (const std::size_t count : {std::size_t{1}, std::size_t{8}}) {
    benchmark::RegisterBenchmark(("enqueue/T" + std::to_string(count)).c_str(),
                                 [count](benchmark::State& state) { enqueue(state, count); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond)
        ->Iterations(101);
  }
}

void print_table() {
  std::printf("\n%-15s %5s %-6s %-4s %5s %6s %9s %10s %10s %10s %10s %12s %6s\n", "model", "M", "mode", "set",
              "calls", "tokens", "MB", "hand us", "ours us", "memset us", "hand/ours", "ours/memset", "TB/s");
  for (const row& result : rows) {
    const auto& [hand, ours, memset] = result.microseconds;
    std::printf("%-15s %5zu %-6s %-4s %5zu %6zu %9.2f %10.2f %10.2f %10.2f %10.2f %12.3f %6.2f\n",
                result.model, result.capacity, result.mode, result.set, result.calls, result.count,
                static_cast<double>(result.bytes) / 1e6, hand, ours, memset, hand / ours, ours / memset,
                static_cast<double>(result.bytes) / ours / 1e6);
  }
  for (const std::string& line : notes) std::puts(line.c_str());
}

bool write_csv(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return false;
  std::fputs("model,capacity,mode,set,calls,tokens,bytes,hand_us,ours_us,memset_us\n", file);
  for (const row& result : rows) {
    const auto& [hand, ours, memset] = result.microseconds;
    std::fprintf(file, "%s,%zu,%s,%s,%zu,%zu,%zu,%.3f,%.3f,%.3f\n", result.model, result.capacity,
                 result.mode, result.set, result.calls, result.count, result.bytes, hand, ours, memset);
  }
  const bool rows_written = std::fclose(file) == 0;
  const std::size_t extension = path.rfind(".csv");
  std::FILE* const text = std::fopen((path.substr(0, extension) + ".notes").c_str(), "w");
  if (text == nullptr) return false;
  for (const std::string& line : notes) std::fprintf(text, "%s\n", line.c_str());
  return std::fclose(text) == 0 && rows_written;
}

} // namespace

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("SKIPPED: no GPU");
    return skipped;
  }
  std::string csv;
  std::vector<char*> arguments;
  for (int index = 0; index < argc; ++index) {
    constexpr std::string_view option = "--csv=";
    const std::string_view argument = argv[index];
    if (argument.substr(0, option.size()) == option) {
      csv = argument.substr(option.size());
    } else {
      arguments.push_back(argv[index]);
    }
  }
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  try {
    register_benchmarks();
    benchmark::RunSpecifiedBenchmarks();
  } catch (const std::exception& error) {
    std::printf("WRONG: %s\n", error.what());
    return 1;
  }
  print_table();
  if (!csv.empty() && !write_csv(csv)) {
    std::printf("WRONG: %s cannot be written\n", csv.c_str());
    return 1;
  }
  return 0;
}
