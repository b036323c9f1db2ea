#pragma once

// Pairs of functions that do the same: `generated_NAME` through Stowage, `by_hand_NAME` on an arena written by hand with
// the same buffers. run.py compares their object code, and the program made of both files what they do.

#include <stowage/stowage.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

struct engine_params {
  stowage::tokens max_tokens;
  std::size_t hidden, qkv_width, attn_width, experts, expert_width, vocab, heads, head_dim, mamba_width;
};

constexpr engine_params fixed_params{stowage::tokens{500}, 2048, 9216, 4096, 128, 5632, 32000, 16, 256, 0};

/// What both sides call instead of a device; the program that runs the pairs looks at what it is given.
void* take_memory(std::size_t bytes, std::size_t alignment);
void give_back(void* address) noexcept;
void take_segments(const stowage::segment* segments, std::size_t count);

/// Does nothing of its own, so that what remains is the library's.
class counting_backend {
public:
  using stream_type = stowage::host_stream;

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return take_memory(bytes, alignment);
  }
  stowage::status deallocate(void* address, std::size_t, std::size_t) noexcept {
    give_back(address);
    return {};
  }
  void zero(stream_type, std::span<const stowage::segment> segments) {
    take_segments(segments.data(), segments.size());
  }
  void copy_to_host(stream_type, void*, const void*, std::size_t) {}
  void copy_from_host(stream_type, void*, const void*, std::size_t) {}
  void synchronize(stream_type) {}
};

namespace declared {

using stowage::bf16, stowage::buffer, stowage::shape, stowage::pad, stowage::cdiv, stowage::when;
namespace zero = stowage::zero;

inline constexpr stowage::dim<&engine_params::max_tokens> M{};
inline constexpr stowage::dim<&engine_params::hidden> hidden{};
inline constexpr stowage::dim<&engine_params::qkv_width> qkv_width{};
inline constexpr stowage::dim<&engine_params::attn_width> attn_width{};
inline constexpr stowage::dim<&engine_params::experts> experts{};
inline constexpr stowage::dim<&engine_params::expert_width> expert_width{};
inline constexpr stowage::dim<&engine_params::vocab> vocab{};
inline constexpr stowage::dim<&engine_params::heads> heads{};
inline constexpr stowage::dim<&engine_params::head_dim> head_dim{};
inline constexpr stowage::dim<&engine_params::mamba_width> mamba_width{};

struct halves {
  stowage::part<bf16, shape<M, attn_width>> keys;
  stowage::part<bf16, shape<M, attn_width>> values;
};

struct buffers {
  buffer<bf16, shape<M, hidden>, zero::rows> hidden_states;
  buffer<bf16, shape<M, hidden>, zero::rows> residual;
  buffer<bf16, shape<pad<16>(M), qkv_width>, zero::rows> qkv_output;
  buffer<bf16, shape<M, experts>, zero::rows, when<(experts > 0)>> gate_logits;
  buffer<bf16, shape<pad<16>(M), expert_width>, zero::rows> expert_out;
  buffer<bf16, shape<stowage::min(M, 160), vocab>, zero::full> logits;
  buffer<float, shape<32 * heads, head_dim + 2>, zero::full> splitk_workspace;
  buffer<stowage::regions<halves>, zero::never> key_values;
  buffer<float, shape<cdiv(M, 64), mamba_width>, zero::never, when<(mamba_width > 0)>> ssd_scratch;
  buffer<std::uint32_t, shape<M>, zero::never, stowage::at_least<256>> token_ids;
};

using arena = stowage::arena<buffers, engine_params, counting_backend&>;

} // namespace declared

namespace by_hand {

constexpr std::size_t ceil16(std::size_t value) { return (value + 15) / 16 * 16; }

struct arena {
  stowage::bf16 *hidden_states = nullptr, *residual = nullptr, *qkv_output = nullptr, *gate_logits = nullptr,
                *expert_out = nullptr, *logits = nullptr;
  float* splitk_workspace = nullptr;
  stowage::bf16 *keys = nullptr, *values = nullptr;
  float* ssd_scratch = nullptr;
  std::uint32_t* token_ids = nullptr;
  std::size_t hidden_bytes = 0, qkv_bytes = 0;
  std::byte* slab = nullptr;
  std::size_t zeroed_bytes = 0, full_bytes = 0;
  engine_params params{};
  bool released = false;
};

} // namespace by_hand

extern "C" {

stowage::bf16* generated_accessor(const declared::arena& arena);
stowage::bf16* by_hand_accessor(const by_hand::arena& arena);
stowage::bf16* generated_accessor_of_part(const declared::arena& arena);
stowage::bf16* by_hand_accessor_of_part(const by_hand::arena& arena);
std::size_t generated_bytes(const declared::arena& arena);
std::size_t by_hand_bytes(const by_hand::arena& arena);
stowage::bf16* generated_row(const declared::arena& arena, std::size_t row);
stowage::bf16* by_hand_row(const by_hand::arena& arena, std::size_t row);

std::size_t generated_constant_bytes();
std::size_t by_hand_constant_bytes();
std::size_t generated_constant_offset();
std::size_t by_hand_constant_offset();

void generated_zero_all(declared::arena& arena);
void by_hand_zero_all(const by_hand::arena& arena);
void generated_zero_rows(declared::arena& arena, std::size_t tokens);
void by_hand_zero_rows(const by_hand::arena& arena, std::size_t tokens);
bool generated_release(declared::arena& arena);
bool by_hand_release(by_hand::arena& arena);
}
