// Zeroing the forward arena in host memory: the generated passes beside code written by hand that clears the
// same bytes, and beside one memset of as many bytes. What is compared runs in turns within one benchmark;
// the counters are medians and their ratios.

#include "../tests/support/model_params.hpp"

#include <stowage/llm/forward_arena.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace {

using stowage::segment;
using stowage::tokens;

constexpr std::size_t capacity = 512; // M

const stowage::llm::forward_plan& plan() {
  static const stowage::llm::forward_plan result(test::qwen3_next(capacity));
  return result;
}

/// One arena for all benchmarks, so that its pages are there.
stowage::llm::forward_arena<stowage::host_backend>& host_arena() {
  static auto result = stowage::llm::make_forward_arena(test::qwen3_next(capacity), stowage::host_backend{});
  return result;
}

/// Makes the compiler write out the list of a pass, and does nothing else.
void keep(const segment* list) {
  benchmark::DoNotOptimize(list);
  benchmark::ClobberMemory();
}
class keeping_backend : public stowage::host_backend {
public:
  void zero(stowage::host_stream, std::span<const segment> segments) {
    keep(segments.data());
    count_ = segments.size();
  }
  [[nodiscard]] std::size_t count() const { return count_; }

private:
  std::size_t count_ = 0;
};

/// The addresses that code written by hand has.
struct by_hand {
  std::byte *hidden_states, *residual, *norm_output, *qkv_output, *attn_output, *gate_logits, *moe_output,
      *ssm_qkvz, *ssm_ba, *ssm_deinterleaved, *ssm_gates, *ssm_conv_out_f32, *expert_gate_out, *expert_up_out,
      *expert_down_out, *logits, *scratch, *splitk_workspace;

  template <class Arena>
  explicit by_hand(const Arena& arena)
      : hidden_states(start(arena->hidden_states)), residual(start(arena->residual)),
        norm_output(start(arena->norm_output)), qkv_output(start(arena->qkv_output)),
        attn_output(start(arena->attn_output)), gate_logits(start(arena->gate_logits)),
        moe_output(start(arena->moe_output)), ssm_qkvz(start(arena->ssm_qkvz)), ssm_ba(start(arena->ssm_ba)),
        ssm_deinterleaved(start(arena->ssm_deinterleaved)), ssm_gates(start(arena->ssm_gates)),
        ssm_conv_out_f32(start(arena->ssm_conv_out_f32)), expert_gate_out(start(arena->expert_gate_out)),
        expert_up_out(start(arena->expert_up_out)), expert_down_out(start(arena->expert_down_out)),
        logits(start(arena->logits)), scratch(start(arena->scratch)),
        splitk_workspace(start(arena->splitk_workspace)) {}

  /// Calls clear(address, bytes) for the rows that `count` tokens reach: 15 buffers, one of them with values
  /// at row `capacity`. Every number is worked out by hand for this model.
  template <class Clear> void rows(std::size_t count, const Clear& clear) const {
    const std::size_t padded = (count + 15) / 16 * 16;
    const std::size_t expert_rows = (std::max<std::size_t>(count, 3) + 15) / 16 * 16;
    clear(hidden_states, count * 2048 * 2);
    clear(residual, count * 2048 * 2);
    clear(norm_output, count * 2048 * 2);
    clear(qkv_output, padded * 9216 * 2);
    clear(attn_output, count * 4096 * 2);
    clear(gate_logits, count * 512 * 2);
    clear(moe_output, padded * 2048 * 2);
    const std::size_t qkvz_end = padded * 12288 * 2;
    clear(ssm_qkvz, qkvz_end);
    const std::size_t values = capacity * 512 * 2;
    const std::size_t values_end = values + padded * 512 * 2;
    if (qkvz_end < values_end)
      clear(ssm_qkvz + std::max(values, qkvz_end), values_end - std::max(values, qkvz_end));
    clear(ssm_ba, std::max<std::size_t>(256, count * 64 * 2));
    clear(ssm_deinterleaved, padded * 12288 * 2);
    clear(ssm_gates, count * 2 * 32 * 4);
    clear(ssm_conv_out_f32, count * 12288 * 4);
    clear(expert_gate_out, expert_rows * 5632 * 2);
    clear(expert_up_out, expert_rows * 5632 * 2);
    clear(expert_down_out, expert_rows * 10 * 2048 * 2);
  }

  /// The three buffers that every step clears whole.
  template <class Clear> void whole(const Clear& clear) const {
    clear(logits, std::size_t{160} * 151936 * 2);
    clear(scratch, std::size_t{201088});
    clear(splitk_workspace, std::size_t{132} * 258 * 4);
  }

private:
  template <class Handle> static std::byte* start(const Handle& handle) {
    return reinterpret_cast<std::byte*>(handle.data());
  }
};

void clear_memory(std::byte* address, std::size_t bytes) { std::memset(address, 0, bytes); }

/// What one pass takes, in turns with what it is compared to.
struct samples {
  std::vector<double> nanoseconds;

  template <class Work> void time(const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
    nanoseconds.push_back(taken.count());
  }
  double median() {
    const auto middle = nanoseconds.begin() + static_cast<std::ptrdiff_t>(nanoseconds.size() / 2);
    std::nth_element(nanoseconds.begin(), middle, nanoseconds.end());
    return *middle;
  }
};

/// Whether two passes clear the same bytes of every field, and leave the same alone.
template <class Arena, class One, class Other>
bool same_bytes(Arena& arena, const One& one, const Other& other) {
  const std::size_t slab_bytes = plan().slab_bytes();
  std::memset(arena.slab(), 1, slab_bytes);
  one();
  const std::vector<std::byte> after_one(arena.slab(), arena.slab() + slab_bytes);
  std::memset(arena.slab(), 1, slab_bytes);
  other();
  for (std::size_t field = 0; field < plan().field_count; ++field) {
    const std::size_t offset = plan().offset(field);
    if (std::memcmp(arena.slab() + offset, after_one.data() + offset, plan().bytes(field)) != 0) return false;
  }
  return true;
}

/// Times `ours`, `hand` and one memset of as many bytes in turns; the order changes from round to round.
/// `checked`: both are known to clear the same bytes, because Google Benchmark calls a benchmark several
/// times.
template <class Arena, class Ours, class Hand>
void compare(benchmark::State& state, Arena& arena, std::size_t bytes, bool& checked, const Ours& ours,
             const Hand& hand) {
  std::size_t bytes_by_hand = 0;
  hand([&](const std::byte*, std::size_t cleared) { bytes_by_hand += cleared; });
  const auto hand_work = [&] { hand(clear_memory); };
  checked = checked || (bytes_by_hand == bytes && same_bytes(arena, ours, hand_work));
  if (!checked) {
    state.SkipWithError("the pass and the code written by hand clear different bytes");
    return;
  }
  const auto one_memset = [&] { std::memset(arena.slab(), 0, bytes); };
  samples of_ours;
  samples of_hand;
  samples of_memset;
  std::size_t round = 0;
  for ([[maybe_unused]] auto iteration : state) {
    for (std::size_t turn = 0; turn < 3; ++turn) {
      switch ((turn + round) % 3) {
        case 0: of_ours.time(ours); break;
        case 1: of_hand.time(hand_work); break;
        default: of_memset.time(one_memset); break;
      }
      benchmark::ClobberMemory();
    }
    ++round;
    state.SetIterationTime(of_ours.nanoseconds.back() * 1e-9);
  }
  state.counters["MB"] = static_cast<double>(bytes) / 1e6;
  state.counters["ours_us"] = of_ours.median() / 1e3;
  state.counters["hand_us"] = of_hand.median() / 1e3;
  state.counters["memset_us"] = of_memset.median() / 1e3;
  state.counters["ours/hand"] = of_ours.median() / of_hand.median();
  state.counters["ours/memset"] = of_ours.median() / of_memset.median();
}

/// zero_rows(T): the rows of 15 buffers, and three buffers whole.
void step(benchmark::State& state) {
  static std::array<bool, capacity + 1> checked{};
  auto& arena = host_arena();
  const by_hand buffers(arena);
  const auto count = static_cast<std::size_t>(state.range(0));
  compare(
      state, arena, plan().zero_rows_bytes(tokens{count}), checked[count],
      [&] { arena.zero_rows({}, tokens{count}); },
      [&](const auto& clear) {
        buffers.rows(count, clear);
        buffers.whole(clear);
      });
}
BENCHMARK(step)->Unit(benchmark::kMicrosecond)->Arg(1)->Arg(8)->Arg(32)->Arg(128)->Arg(512)->UseManualTime();

/// zero_rows(0, T): the rows of 15 buffers alone.
void rows_alone(benchmark::State& state) {
  static std::array<bool, capacity + 1> checked{};
  auto& arena = host_arena();
  const by_hand buffers(arena);
  const auto count = static_cast<std::size_t>(state.range(0));
  const std::size_t bytes = plan().zero_rows_bytes(tokens{count}) - plan().zero_rows_bytes(tokens{0});
  compare(
      state, arena, bytes, checked[count], [&] { arena.zero_rows({}, tokens{0}, tokens{count}); },
      [&](const auto& clear) { buffers.rows(count, clear); });
}
BENCHMARK(rows_alone)
    ->Unit(benchmark::kMicrosecond)
    ->Arg(1)
    ->Arg(8)
    ->Arg(32)
    ->Arg(128)
    ->Arg(512)
    ->UseManualTime();

/// The list of segments of zero_rows(T) alone: what a backend is given, without the clearing. One iteration
/// makes it 1000 times; the counters are for one.
void segment_list(benchmark::State& state) {
  constexpr std::size_t repeats = 1000; // in one timing
  keeping_backend backend;
  stowage::arena arena(plan(), backend);
  const by_hand buffers(arena);
  auto count = static_cast<std::size_t>(state.range(0));
  samples of_ours;
  samples of_hand;
  std::size_t round = 0;
  std::size_t hand_segments = 0;
  const auto ours = [&] {
    for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
      benchmark::DoNotOptimize(count);
      arena.zero_rows({}, tokens{count});
    }
  };
  const auto hand = [&] {
    for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
      benchmark::DoNotOptimize(count);
      std::array<segment, 19> list;
      hand_segments = 0;
      const auto add = [&](std::byte* address, std::size_t bytes) {
        list[hand_segments++] = {address, bytes};
      };
      buffers.rows(count, add);
      buffers.whole(add);
      keep(list.data());
    }
  };
  for ([[maybe_unused]] auto iteration : state) {
    if (round++ % 2 == 0) {
      of_ours.time(ours);
      of_hand.time(hand);
    } else {
      of_hand.time(hand);
      of_ours.time(ours);
    }
    state.SetIterationTime(of_ours.nanoseconds.back() * 1e-9);
  }
  state.counters["ours_ns"] = of_ours.median() / repeats;
  state.counters["hand_ns"] = of_hand.median() / repeats;
  state.counters["ours/hand"] = of_ours.median() / of_hand.median();
  state.counters["segments"] = static_cast<double>(backend.count());
  state.counters["hand_segments"] = static_cast<double>(hand_segments);
}
BENCHMARK(segment_list)
    ->Unit(benchmark::kMicrosecond)
    ->Arg(1)
    ->Arg(8)
    ->Arg(32)
    ->Arg(128)
    ->Arg(512)
    ->UseManualTime();

} // namespace
