// A plan at compile time: sizes, offsets, budgets and what a pass clears are constants, and a mistake in them
// does not compile.

#include <stowage/stowage.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

struct params {
  stowage::tokens max_tokens;
  std::size_t hidden, vocab, max_rank;
  [[nodiscard]] constexpr std::size_t sampled_rows() const { return 160; } // a formula can read this too
};
inline constexpr stowage::dim<&params::max_tokens> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};
inline constexpr stowage::dim<&params::vocab> vocab{};
inline constexpr stowage::dim<&params::max_rank> max_rank{};
inline constexpr stowage::dim<&params::sampled_rows> sampled_rows{};

struct buffers {
  stowage::buffer<stowage::bf16, stowage::shape<M, hidden>, stowage::zero::rows> states;
  stowage::buffer<stowage::bf16, stowage::shape<stowage::pad<16>(M), 3 * hidden>, stowage::zero::rows> qkv;
  stowage::buffer<stowage::bf16, stowage::shape<stowage::min(M, sampled_rows), vocab>, stowage::zero::full>
      logits;
  stowage::buffer<std::byte, stowage::shape<65536>, stowage::zero::never> workspace;
  stowage::buffer<stowage::bf16, stowage::shape<M, max_rank>, stowage::zero::never,
                  stowage::when<(max_rank > 0)>>
      adapter;
};

// [plan]
constexpr params decode{.max_tokens = stowage::tokens{100}, .hidden = 4096, .vocab = 128256, .max_rank = 0};
constexpr auto plan = stowage::make_plan<buffers>(decode);

// Sizes and offsets.
static_assert(plan.bytes<&buffers::states>() == sizeof(stowage::bf16) * 100 * 4096);
static_assert(plan.bytes<&buffers::qkv>() == sizeof(stowage::bf16) * 112 * 3 * 4096);
static_assert(plan.offset<&buffers::states>() == 0);
static_assert(plan.offset<&buffers::qkv>() % stowage::default_alignment == 0);

// A budget.
static_assert(plan.slab_bytes() <= std::size_t{32} << 20U, "the decode arena must stay below 32 MiB");

// What a pass over 7 tokens clears: 7 rows, ceil16(7) = 16 rows, and the logits whole.
static_assert(plan.zero_bytes<&buffers::states>(stowage::tokens{7}) == sizeof(stowage::bf16) * 7 * 4096);
static_assert(plan.zero_bytes<&buffers::qkv>(stowage::tokens{7}) == sizeof(stowage::bf16) * 16 * 3 * 4096);
static_assert(plan.zero_rows_bytes(stowage::tokens{7}) ==
              sizeof(stowage::bf16) * (7 * 4096 + 16 * 3 * 4096) + plan.bytes<&buffers::logits>());
// [plan]

// [formula]
// A formula by itself.
static_assert(stowage::evaluate(stowage::pad<16>(M) * 3 * hidden, decode) == std::size_t{112} * 3 * 4096);
static_assert(!stowage::holds(max_rank > 0, decode));
static_assert(stowage::text(stowage::pad<16>(M) * 3 * hidden).view() == "ceil16(M)*3*hidden");
// [formula]

// [arm]
// No adapters in `decode`, so the field is absent. With one call it is there, at the size that is passed in.
static_assert(!plan.present<&buffers::adapter>());
constexpr auto armed = plan.with_bytes<&buffers::adapter>(sizeof(stowage::bf16) * 100 * 16);
static_assert(armed.bytes<&buffers::adapter>() == sizeof(stowage::bf16) * 100 * 16);
static_assert(armed.layout<&buffers::adapter>().overridden);
static_assert(armed.slab_bytes() > plan.slab_bytes());
static_assert(!plan.present<&buffers::adapter>()); // a new plan: the old one stays as it is

// 0 bytes: the field is null, and everything behind it moves up.
constexpr auto without_workspace = plan.with_bytes<&buffers::workspace>(0);
static_assert(without_workspace.slab_bytes() + 65536 <= plan.slab_bytes());
// [arm]

// [hash]
// Two ranks of a job can compare their layouts by one number.
static_assert(plan.hash() == stowage::make_plan<buffers>(decode).hash());
static_assert(plan.hash() != armed.hash());
// [hash]

// [overlap]
/// Every field that takes memory ends before the next one in the slab begins.
template <class Plan> consteval bool no_overlap(const Plan& fields) {
  for (std::size_t one = 0; one < Plan::field_count; ++one) {
    for (std::size_t other = 0; other < Plan::field_count; ++other) {
      if (one == other || !fields.present(one) || !fields.present(other)) continue;
      const bool in_front = fields.offset(one) <= fields.offset(other);
      if (in_front && fields.offset(one) + fields.bytes(one) > fields.offset(other)) return false;
    }
  }
  return true;
}
static_assert(no_overlap(plan) && no_overlap(armed));
// [overlap]

int main() {
  // The numbers are constants of the program: here one is the size of an array.
  static std::array<std::byte, plan.bytes<&buffers::states>()> on_the_side{};
  std::printf("slab %zu bytes, %zu of them cleared by a pass over 7 tokens\n", plan.slab_bytes(),
              plan.zero_rows_bytes(stowage::tokens{7}));
  return on_the_side.size() == 819200 ? 0 : 1;
}
