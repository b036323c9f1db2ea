// The slab that docs/images/slab.svg shows. docs/images/make_diagrams.py reads its numbers from the assertions here.

#include <stowage/stowage.hpp>

#include <cstddef>

namespace {

struct params {
  stowage::tokens max_tokens;
};
inline constexpr stowage::dim<&params::max_tokens> M{"M"};

struct buffers {
  stowage::buffer<float, stowage::shape<300>, stowage::zero::never> scratch;
  stowage::buffer<stowage::bf16, stowage::shape<M, 300>, stowage::zero::rows> hidden_states;
  stowage::buffer<float, stowage::shape<4, 100>, stowage::zero::full> counters;
  stowage::buffer<stowage::bf16, stowage::shape<stowage::pad<16>(M), 64>, stowage::zero::rows> qkv;
};
constexpr auto plan = stowage::make_plan<buffers>(params{stowage::tokens{5}});

// 5 rows of 300 elements of 2 bytes; 16 rows of 64.
static_assert(plan.bytes<&buffers::hidden_states>() == 3000);
static_assert(plan.bytes<&buffers::qkv>() == 2048);
static_assert(plan.bytes<&buffers::counters>() == 1600);
static_assert(plan.bytes<&buffers::scratch>() == 1200);

// Rows, then full, then never; each at the next multiple of 256.
static_assert(plan.offset<&buffers::hidden_states>() == 0);
static_assert(plan.offset<&buffers::qkv>() == 3072);
static_assert(plan.offset<&buffers::counters>() == 5120);
static_assert(plan.offset<&buffers::scratch>() == 6912);
static_assert(plan.slab_bytes() == 6912 + 1200);
static_assert(plan.zeroed_slab_bytes() == 5120 + 1600);

// A pass over 2 tokens: 2 rows of 600 bytes, ceil16(2) = 16 rows of 128 bytes, and the counters whole.
static_assert(plan.zero_bytes<&buffers::hidden_states>(stowage::tokens{2}) == 1200);
static_assert(plan.zero_bytes<&buffers::qkv>(stowage::tokens{2}) == 2048);
static_assert(plan.zero_bytes<&buffers::counters>(stowage::tokens{2}) == 1600);
static_assert(plan.zero_bytes<&buffers::scratch>(stowage::tokens{2}) == 0);

} // namespace
