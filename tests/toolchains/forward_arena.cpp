// The representative program of scripts/toolchains.sh: the forward arena, from declaring a field list of its own to
// plan, arena, passes and reports. Expected values are worked out here by hand.

#include <stowage/llm/forward_arena.hpp>
#include <stowage/report.hpp>
#include <stowage/stowage.hpp>

#include <cstddef>
#include <cstdio>
#include <string>

// A field list of its own.

struct params {
  stowage::tokens max_tokens;
  std::size_t hidden;
  bool has_scratch;
};
inline constexpr stowage::dim<&params::max_tokens> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{"hidden"};

struct buffers {
  stowage::buffer<float, stowage::shape<stowage::pad<16>(M), hidden>, stowage::zero::rows> states;
  stowage::buffer<std::byte, stowage::shape<M>, stowage::zero::never, stowage::when<&params::has_scratch>>
      scratch;
};

constexpr auto plan = stowage::make_plan<buffers>(params{stowage::tokens{17}, 64, false});
static_assert(plan.bytes<&buffers::states>() == 32 * 64 * 4); // 17 rows, padded to 32
static_assert(!plan.present<&buffers::scratch>());

namespace {

int failures = 0;

void check(bool right, const char* what) {
  if (right) return;
  std::printf("WRONG: %s\n", what);
  ++failures;
}

void own_fields() {
  stowage::arena arena(plan, stowage::host_backend{});
  float* const states = arena->states.data();
  states[16 * 64 - 1] = 1.0f;
  states[16 * 64] = 2.0f;
  arena.zero_rows({}, stowage::tokens{1}); // 16 rows
  check(states[16 * 64 - 1] == 0.0f, "the last element of the 16 rows that one token reaches is cleared");
  check(states[16 * 64] == 2.0f, "the first element of the next row is not");
  check(arena->scratch.data() == nullptr, "an absent field is null");
  check(arena.release().ok(), "an arena is released");

  try {
    arena.zero_rows({}, stowage::tokens{1});
    check(false, "a pass on a released arena throws");
  } catch (const stowage::usage_error&) {}
}

/// A small dense model.
stowage::llm::forward_params small_model() {
  stowage::llm::forward_params result{};
  result.vocab_size = 256;
  result.hidden_size = 64;
  result.intermediate_size = 128;
  result.num_hidden_layers = 2;
  result.num_attention_heads = 4;
  result.num_key_value_heads = 2;
  result.head_dim = 16;
  result.max_batch_tokens = stowage::tokens{24};
  result.max_seq_len = 128;
  result.kv_block_size = 16;
  result.max_batch_size = 4;
  result.sm_count = 8;
  return result;
}

void forward_arena() {
  using stowage::llm::forward_buffers;
  auto arena = stowage::llm::make_forward_arena(small_model(), stowage::host_backend{});
  const auto& forward_plan = arena.plan();
  check(forward_plan.bytes<&forward_buffers::hidden_states>() == 24 * 64 * 2,
        "24 tokens of 64 elements of 2 bytes");

  unsigned short* const states = &arena->hidden_states.data()->bits;
  states[0] = states[64 - 1] = states[64] = 1;
  arena.zero_rows({}, stowage::tokens{1});
  check(states[0] == 0 && states[64 - 1] == 0, "the row of one token is cleared");
  check(states[64] == 1, "the next row is not");
  arena.zero_all({});
  check(states[64] == 0, "everything is cleared");

  const stowage::plan_report report = stowage::make_report(forward_plan);
  for (const std::string& text :
       {stowage::to_table(report), stowage::to_json(report), stowage::to_csv(report), stowage::to_svg(report),
        stowage::to_html(report, stowage::make_live_rows(forward_plan))}) {
    check(text.find("hidden_states") != std::string::npos, "every report names hidden_states");
  }
  check(arena.release().ok(), "the forward arena is released");
}

} // namespace

int main() {
  own_fields();
  forward_arena();
  if (failures == 0) std::puts("works");
  return failures == 0 ? 0 : 1;
}
