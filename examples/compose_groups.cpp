// One arena from parts that do not know each other: each module of an engine brings its sizes and its
// buffers, and the engine puts them together.

#include <stowage/backend/recording.hpp>
#include <stowage/stowage.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>

// [modules]
// What every module knows.
struct batch_params {
  stowage::tokens max_batch_tokens;
  std::size_t hidden;
};
inline constexpr stowage::dim<&batch_params::max_batch_tokens> M{"M"};
inline constexpr stowage::dim<&batch_params::hidden> hidden{};

// Attention.
struct attention_params {
  std::size_t heads, kv_heads, head_dim;
};
inline constexpr stowage::dim<&attention_params::heads> heads{};
inline constexpr stowage::dim<&attention_params::kv_heads> kv_heads{};
inline constexpr stowage::dim<&attention_params::head_dim> head_dim{};

struct attention_buffers {
  stowage::buffer<stowage::bf16, stowage::shape<M, heads, head_dim>, stowage::zero::rows> queries;
  stowage::buffer<stowage::bf16, stowage::shape<M, kv_heads, head_dim>, stowage::zero::rows> keys;
  stowage::buffer<stowage::bf16, stowage::shape<M, kv_heads, head_dim>, stowage::zero::rows> values;
};
// [modules]

// Experts. Two of these, of different widths, make a group template.
struct expert_params {
  std::size_t num_experts, top_k, routed_width, shared_width;
};
inline constexpr stowage::dim<&expert_params::num_experts> num_experts{};
inline constexpr stowage::dim<&expert_params::top_k> top_k{};
inline constexpr stowage::dim<&expert_params::routed_width> routed_width{};
inline constexpr stowage::dim<&expert_params::shared_width> shared_width{};
inline constexpr auto has_experts = num_experts > 0;

// [template]
template <auto Width> struct gated_mlp_buffers {
  stowage::buffer<stowage::bf16, stowage::shape<stowage::pad<16>(M), Width>, stowage::zero::rows,
                  stowage::when<has_experts>>
      gate;
  stowage::buffer<stowage::bf16, stowage::shape<stowage::pad<16>(M), Width>, stowage::zero::rows,
                  stowage::when<has_experts>>
      up;
};

using routed_mlp = gated_mlp_buffers<top_k * routed_width>;
using shared_mlp = gated_mlp_buffers<shared_width>;

struct expert_buffers {
  stowage::buffer<float, stowage::shape<M, num_experts>, stowage::zero::rows, stowage::when<has_experts>>
      router_logits;
  routed_mlp routed;
  shared_mlp shared;
};
// [template]

// LoRA.
struct lora_params {
  std::size_t max_rank;
};
inline constexpr stowage::dim<&lora_params::max_rank> max_rank{};

struct lora_buffers {
  stowage::buffer<stowage::bf16, stowage::shape<M, max_rank>, stowage::zero::never,
                  stowage::when<(max_rank > 0)>>
      xa;
  stowage::buffer<std::int32_t, stowage::shape<M>, stowage::zero::never, stowage::when<(max_rank > 0)>>
      slot_of_token;
};

// [engine]
struct engine_params : batch_params, attention_params, expert_params, lora_params {};

struct engine_buffers {
  stowage::buffer<stowage::bf16, stowage::shape<M, hidden>, stowage::zero::rows> hidden_states;
  attention_buffers attention;
  expert_buffers experts;
  lora_buffers lora;
  stowage::not_owned<const char*> label; // the library leaves it alone
};

constexpr engine_params params{
    batch_params{stowage::tokens{64}, 2048},
    attention_params{.heads = 16, .kv_heads = 2, .head_dim = 128},
    expert_params{.num_experts = 8, .top_k = 2, .routed_width = 768, .shared_width = 512},
    lora_params{.max_rank = 0},
};
constexpr auto plan = stowage::make_plan<engine_buffers>(params);

// The way to a buffer in a group is its path of members.
static_assert(plan.bytes<&engine_buffers::attention, &attention_buffers::keys>() ==
              sizeof(stowage::bf16) * 64 * 2 * 128);
static_assert(plan.bytes<&engine_buffers::experts, &expert_buffers::routed, &routed_mlp::gate>() ==
              sizeof(stowage::bf16) * 64 * 2 * 768);
static_assert(!plan.present<&engine_buffers::lora, &lora_buffers::xa>());
// At run time it is a dotted name, or a number in declaration order.
static_assert(plan.bytes("experts.shared.up") == sizeof(stowage::bf16) * 64 * 512);
static_assert(plan.name(1) == "attention.queries");
static_assert(plan.field_count == 11);
// [engine]

namespace {

// [module_code]
/// A module's code sees its own group and nothing of the engine.
std::size_t bytes_of_attention(const attention_buffers& attention) {
  return attention.queries.bytes() + attention.keys.bytes() + attention.values.bytes();
}
// [module_code]

bool check(bool right, std::string_view what) {
  if (!right) std::printf("WRONG: %.*s\n", static_cast<int>(what.size()), what.data());
  return right;
}

} // namespace

int main() {
  stowage::recording_backend<> backend;
  stowage::arena arena(plan, backend);
  arena->label.value = "decode engine";

  for (std::size_t field = 0; field < plan.field_count; ++field) {
    const std::string_view name = plan.name(field);
    std::printf("%-24.*s %8zu bytes\n", static_cast<int>(name.size()), name.data(), plan.bytes(field));
  }

  bool right = check(backend.count(stowage::operation::allocate) == 1, "all modules share one allocation");
  right &= check(arena->experts.routed.up.name() == "experts.routed.up", "a handle knows its dotted name");
  right &= check(bytes_of_attention(arena->attention) == sizeof(stowage::bf16) * 64 * (16 + 2 + 2) * 128,
                 "a group is a plain struct");
  right &= check(arena->lora.xa.data() == nullptr, "the group of a module that is off is null");

  // One pass clears the rows of every module.
  arena.zero_rows({}, stowage::tokens{64});
  right &= check(backend.count(stowage::operation::zero) == 1, "one call for all modules");
  right &= check(backend.calls().back().segments.size() == 1, "of one range, because everything is full");

  right &= check(arena.release().ok(), "release");
  std::printf("%s: %s\n", *arena->label, right ? "right" : "wrong");
  return right ? 0 : 1;
}
