// The same twelve buffers twice: written by hand, each in five places, and declared once. Both give the same
// sizes and clear the same bytes.

#include <stowage/stowage.hpp>
#include <stowage/traits/pad_fill.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

struct engine_params {
  stowage::tokens max_tokens;
  std::size_t hidden, qkv_width, attn_width, experts, expert_width, vocab, heads, head_dim, mamba_width;
};

namespace by_hand {

// [before_struct]
// Place 1: a pointer and a size for each.
struct arena {
  void* hidden_states = nullptr;
  void* residual = nullptr;
  void* norm_output = nullptr;
  void* qkv_output = nullptr;
  void* attn_output = nullptr;
  void* gate_logits = nullptr;
  void* expert_out = nullptr;
  void* logits = nullptr;
  void* splitk_workspace = nullptr;
  void* ssd_scratch = nullptr;
  void* token_ids = nullptr;
  void* act_scales = nullptr;
  std::size_t hidden_bytes = 0, norm_bytes = 0, qkv_bytes = 0, attn_bytes = 0, gate_bytes = 0;
  std::size_t expert_bytes = 0, logits_bytes = 0, splitk_bytes = 0, ssd_bytes = 0, ids_bytes = 0;
  std::size_t scales_bytes = 0, max_tokens = 0;

  void measure(const engine_params& params);
  void allocate(const engine_params& params);
  void zero_all() const;
  void zero_rows(std::size_t tokens) const;
  void release();
};
// [before_struct]

namespace {

std::size_t ceil16(std::size_t value) { return (value + 15) / 16 * 16; }
void* get(std::size_t bytes) {
  void* const memory = std::malloc(bytes); // NOLINT(cppcoreguidelines-no-malloc): as a device API would
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

} // namespace

// [before_sizes]
// Place 2: the sizes.
void arena::measure(const engine_params& params) {
  const std::size_t M = max_tokens = params.max_tokens.value;
  hidden_bytes = M * params.hidden * 2;
  norm_bytes = M * params.hidden * 2;
  qkv_bytes = ceil16(M) * params.qkv_width * 2;
  attn_bytes = std::max(M * params.attn_width * 2, M * params.mamba_width * 2);
  gate_bytes = params.experts > 0 ? M * params.experts * 2 : 0;
  expert_bytes = ceil16(M) * params.expert_width * 2;
  logits_bytes = std::min<std::size_t>(M, 160) * params.vocab * 2;
  splitk_bytes = 32 * params.heads * (params.head_dim + 2) * 4;
  ssd_bytes = params.mamba_width > 0 ? (M + 63) / 64 * params.mamba_width * 4 : 0;
  ids_bytes = std::max<std::size_t>(M * 4, 256);
  scales_bytes = ceil16(M) * ((params.hidden + 127) / 128) * 4;
}
// [before_sizes]

// [before_allocate]
// Place 3: the allocations. One that fails leaks those above it.
void arena::allocate(const engine_params& params) {
  hidden_states = get(hidden_bytes);
  residual = get(hidden_bytes);
  norm_output = get(norm_bytes);
  qkv_output = get(qkv_bytes);
  attn_output = get(attn_bytes);
  if (params.experts > 0) gate_logits = get(gate_bytes); // the condition, a second time
  expert_out = get(expert_bytes);
  logits = get(logits_bytes);
  splitk_workspace = get(splitk_bytes);
  if (params.mamba_width > 0) ssd_scratch = get(ssd_bytes);
  token_ids = get(ids_bytes);
  act_scales = get(scales_bytes);
  std::fill_n(static_cast<float*>(act_scales), scales_bytes / 4, 1.0F);
}
// [before_allocate]

// [before_zero]
// Place 4: the passes. The row pass has each shape a second time.
void arena::zero_all() const {
  std::memset(hidden_states, 0, hidden_bytes);
  std::memset(residual, 0, hidden_bytes);
  std::memset(norm_output, 0, norm_bytes);
  std::memset(qkv_output, 0, qkv_bytes);
  std::memset(attn_output, 0, attn_bytes);
  if (gate_logits != nullptr) std::memset(gate_logits, 0, gate_bytes);
  std::memset(expert_out, 0, expert_bytes);
  std::memset(logits, 0, logits_bytes);
  std::memset(splitk_workspace, 0, splitk_bytes);
}
void arena::zero_rows(std::size_t tokens) const {
  const std::size_t rows = std::min(tokens, max_tokens);
  std::memset(hidden_states, 0, hidden_bytes / max_tokens * rows);
  std::memset(residual, 0, hidden_bytes / max_tokens * rows);
  std::memset(norm_output, 0, norm_bytes / max_tokens * rows);
  std::memset(qkv_output, 0, qkv_bytes / ceil16(max_tokens) * ceil16(rows)); // not / max_tokens
  std::memset(attn_output, 0, attn_bytes / max_tokens * rows);
  if (gate_logits != nullptr) std::memset(gate_logits, 0, gate_bytes / max_tokens * rows);
  std::memset(expert_out, 0, expert_bytes / ceil16(max_tokens) * ceil16(rows));
  std::memset(logits, 0, logits_bytes);
  std::memset(splitk_workspace, 0, splitk_bytes);
}
// [before_zero]

// [before_release]
// Place 5: the release.
void arena::release() {
  for (void** buffer : {&hidden_states, &residual, &norm_output, &qkv_output, &attn_output, &gate_logits,
                        &expert_out, &logits, &splitk_workspace, &ssd_scratch, &token_ids, &act_scales}) {
    std::free(*buffer); // NOLINT(cppcoreguidelines-no-malloc)
    *buffer = nullptr;
  }
}
// [before_release]

} // namespace by_hand

namespace declared {

// [after_symbols]
inline constexpr stowage::dim<&engine_params::max_tokens> M{"M"};
inline constexpr stowage::dim<&engine_params::hidden> hidden{};
inline constexpr stowage::dim<&engine_params::qkv_width> qkv_width{};
inline constexpr stowage::dim<&engine_params::attn_width> attn_width{};
inline constexpr stowage::dim<&engine_params::experts> experts{};
inline constexpr stowage::dim<&engine_params::expert_width> expert_width{};
inline constexpr stowage::dim<&engine_params::vocab> vocab{};
inline constexpr stowage::dim<&engine_params::heads> heads{};
inline constexpr stowage::dim<&engine_params::head_dim> head_dim{};
inline constexpr stowage::dim<&engine_params::mamba_width> mamba_width{};
// [after_symbols]

// [after_buffers]
using stowage::bf16, stowage::buffer, stowage::shape, stowage::pad, stowage::cdiv, stowage::when;
namespace zero = stowage::zero;

using attention_output = stowage::part<bf16, shape<M, attn_width>>;
using mamba_output = stowage::part<bf16, shape<M, mamba_width>>;

struct buffers {
  buffer<bf16, shape<M, hidden>, zero::rows> hidden_states;
  buffer<bf16, shape<M, hidden>, zero::rows> residual;
  buffer<bf16, shape<M, hidden>, zero::rows> norm_output;
  buffer<bf16, shape<pad<16>(M), qkv_width>, zero::rows> qkv_output;
  buffer<stowage::alternatives<attention_output, mamba_output>, zero::rows> attn_output;
  buffer<bf16, shape<M, experts>, zero::rows, when<(experts > 0)>> gate_logits;
  buffer<bf16, shape<pad<16>(M), expert_width>, zero::rows> expert_out;
  buffer<bf16, shape<stowage::min(M, 160), vocab>, zero::full> logits;
  buffer<float, shape<32 * heads, head_dim + 2>, zero::full> splitk_workspace;
  buffer<float, shape<cdiv(M, 64), mamba_width>, zero::never, when<(mamba_width > 0)>> ssd_scratch;
  buffer<std::uint32_t, shape<M>, zero::never, stowage::at_least<256>> token_ids;
  buffer<float, shape<pad<16>(M), cdiv(hidden, 128)>, zero::never, stowage::pad_fill<1>> act_scales;
};
// [after_buffers]

} // namespace declared

namespace {

int failures = 0;

void check(bool right, const char* what) {
  if (right) return;
  std::printf("WRONG: %s\n", what);
  ++failures;
}

struct memory {
  void* address;
  std::size_t bytes;
};

void compare(const engine_params& params) {
  by_hand::arena before;
  before.measure(params);
  before.allocate(params);
  // [after_use]
  stowage::arena after(stowage::make_plan<declared::buffers>(params), stowage::host_backend{});
  // [after_use]

  const std::array<memory, 12> all = {{{before.hidden_states, before.hidden_bytes},
                                       {before.residual, before.hidden_bytes},
                                       {before.norm_output, before.norm_bytes},
                                       {before.qkv_output, before.qkv_bytes},
                                       {before.attn_output, before.attn_bytes},
                                       {before.gate_logits, before.gate_bytes},
                                       {before.expert_out, before.expert_bytes},
                                       {before.logits, before.logits_bytes},
                                       {before.splitk_workspace, before.splitk_bytes},
                                       {before.ssd_scratch, before.ssd_bytes},
                                       {before.token_ids, before.ids_bytes},
                                       {before.act_scales, before.scales_bytes}}};
  static_assert(all.size() == decltype(after)::plan_type::field_count);
  const auto& plan = after.plan();
  for (std::size_t field = 0; field < all.size(); ++field) {
    check(all[field].bytes == plan.bytes(field), "the sizes are equal");
    check((all[field].address == nullptr) == (after.address(field) == nullptr), "the same are null");
  }
  check(std::memcmp(before.act_scales, after->act_scales.data(), before.scales_bytes) == 0, "scales are 1");

  const auto cleared_alike = [&](const auto& clear_before, const auto& clear_after) {
    for (std::size_t field = 0; field < all.size(); ++field) {
      if (all[field].bytes == 0) continue;
      std::memset(all[field].address, 0xab, all[field].bytes);
      std::memset(after.address(field), 0xab, all[field].bytes);
    }
    clear_before();
    clear_after();
    for (std::size_t field = 0; field < all.size(); ++field) {
      if (all[field].bytes == 0) continue;
      check(std::memcmp(all[field].address, after.address(field), all[field].bytes) == 0,
            "the same bytes are cleared");
    }
  };
  cleared_alike([&] { before.zero_all(); }, [&] { after.zero_all(); });
  for (const std::size_t tokens : {1U, 7U, 16U, 17U, 40U, 1000U}) {
    cleared_alike([&] { before.zero_rows(tokens); }, [&] { after.zero_rows({}, stowage::tokens{tokens}); });
  }
  std::printf(
      "%zu tokens: %zu bytes in %zu buffers, before and after; a pass over 7 tokens clears %zu bytes\n",
      plan.params().max_tokens.value, plan.total_bytes(), all.size(),
      plan.zero_rows_bytes(stowage::tokens{7}));
  before.release();
  check(after.release().ok(), "released");
}

} // namespace

int main() {
  // An odd batch, with experts and Mamba-2; then without both.
  compare({stowage::tokens{41}, 192, 320, 128, 8, 96, 500, 4, 32, 256});
  compare({stowage::tokens{170}, 64, 96, 64, 0, 48, 100, 2, 16, 0});
  std::puts(failures == 0 ? "right" : "wrong");
  return failures == 0 ? 0 : 1;
}
