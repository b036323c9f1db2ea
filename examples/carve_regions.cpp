// One buffer, several uses: regions lie one after another, alternatives share the same bytes.

#include <stowage/carve.hpp>
#include <stowage/poison.hpp>
#include <stowage/stowage.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>

struct params {
  stowage::tokens max_tokens;
  std::size_t heads, kv_heads, head_dim, mamba_width, blocks;
  bool has_mamba;
};
inline constexpr stowage::dim<&params::max_tokens> M{"M"};
inline constexpr stowage::dim<&params::heads> heads{};
inline constexpr stowage::dim<&params::kv_heads> kv_heads{};
inline constexpr stowage::dim<&params::head_dim> head_dim{};
inline constexpr stowage::dim<&params::mamba_width> mamba_width{};
inline constexpr stowage::dim<&params::blocks> blocks{};
inline constexpr stowage::dim<&params::has_mamba> has_mamba{};

// [regions]
/// What a prefill needs: each part behind its predecessor, at the alignment of its element.
struct prefill_parts {
  stowage::part<std::uint32_t, stowage::shape<M>> positions;
  stowage::part<std::uint64_t, stowage::shape<M>> slots;
  stowage::part<std::int32_t, stowage::shape<blocks>> block_table;
};
// [regions]

// [starts_at]
/// Keys, and values at row M. Either may be written to ceil16(M) rows, so the two may overlap.
struct key_value_parts {
  stowage::part<stowage::bf16, stowage::shape<stowage::pad<16>(M), kv_heads * head_dim>> keys;
  stowage::part<stowage::bf16, stowage::shape<stowage::pad<16>(M), kv_heads * head_dim>,
                stowage::starts_at<M * kv_heads * head_dim>>
      values;
};
// [starts_at]

// [alternatives]
/// A layer is either attention or Mamba-2, never both: their outputs share memory.
using attention_output = stowage::part<stowage::bf16, stowage::shape<M, heads * head_dim>>;
using mamba_output = stowage::part<stowage::bf16, stowage::shape<M, mamba_width>, stowage::when<has_mamba>>;

struct buffers {
  stowage::buffer<stowage::alternatives<attention_output, mamba_output>, stowage::zero::rows> mixer_output;
  stowage::buffer<stowage::regions<key_value_parts>, stowage::zero::rows> key_values;
  stowage::buffer<stowage::regions<prefill_parts>, stowage::zero::full, stowage::at_least<4096>> scratch;
};
// [alternatives]

constexpr params small{.max_tokens = stowage::tokens{20},
                       .heads = 4,
                       .kv_heads = 2,
                       .head_dim = 64,
                       .mamba_width = 512,
                       .blocks = 9,
                       .has_mamba = true};
constexpr auto plan = stowage::make_plan<buffers>(small);

// [sizes]
static_assert(plan.bytes<&buffers::mixer_output>() ==
              sizeof(stowage::bf16) * 20 * 512); // the larger alternative
static_assert(plan.bytes<&buffers::key_values>() ==
              sizeof(stowage::bf16) * (20 + 32) * 128); // values begin at row 20
static_assert(plan.bytes<&buffers::scratch>() == 4096); // 80 + 160 + 36, with a floor
static_assert(plan.zero_bytes<&buffers::key_values>(stowage::tokens{1}) ==
              sizeof(stowage::bf16) * 2 * 16 * 128); // two ranges
// [sizes]

namespace {

bool check(bool right, std::string_view what) {
  if (!right) std::printf("WRONG: %.*s\n", static_cast<int>(what.size()), what.data());
  return right;
}

} // namespace

int main() {
  stowage::arena arena(plan, stowage::host_backend{});

  // [use]
  stowage::bf16* keys = arena->key_values.parts().keys.data();
  stowage::bf16* values = arena->key_values->values.data(); // -> is short for parts()
  std::uint64_t* slots = arena->scratch->slots.data();

  auto attention = arena->mixer_output.as<attention_output>().rows(0, 5);
  auto mamba = arena->mixer_output.as<mamba_output>().rows(0, 5);
  // [use]

  bool right = check(values == keys + std::size_t{20} * 128, "values begin at row M");
  right &=
      check(reinterpret_cast<std::byte*>(slots) - arena->scratch.data() == 80, "slots lie behind positions");
  right &= check(attention.data() == mamba.data(), "alternatives begin at the same address");
  right &= check(attention.size() / 5 == 256 && mamba.size() / 5 == 512, "and have rows of their own");

  std::printf("key_values: %zu bytes; values begin %td elements behind keys, the keys of 20 rows\n",
              arena->key_values.bytes(), values - keys);
  std::printf("mixer_output: %zu bytes; a row has %zu elements as attention's, %zu as Mamba-2's\n",
              arena->mixer_output.bytes(), attention.size() / 5, mamba.size() / 5);

  // A row pass clears the first rows of both regions, and of each alternative as far as its own rows reach.
  stowage::poison(arena, {.byte = 1});
  arena.zero_rows({}, stowage::tokens{3});
  const std::size_t padded = std::size_t{16} * 128; // elements of ceil16(3) rows
  const std::size_t three = std::size_t{3} * 512;
  const auto is_zero = [](stowage::bf16 element) { return element.bits == 0; };
  const auto clear = [&](const stowage::bf16* from, std::size_t count) {
    return std::all_of(from, from + count, is_zero);
  };
  right &= check(clear(keys, padded) && keys[padded].bits != 0, "ceil16(3) rows of the keys");
  right &= check(clear(values, padded) && values[padded].bits != 0, "ceil16(3) rows of the values");
  right &= check(clear(mamba.data(), three) && mamba[three].bits != 0, "3 rows of the wider alternative");

  // [carve]
  params batch = small;
  batch.max_tokens = stowage::tokens{5};
  auto parts = stowage::carve<prefill_parts>(arena->scratch, batch); // for 5 tokens: closer together
  std::uint64_t* slots_of_batch = parts->slots.data();
  // [carve]
  std::printf("scratch: slots at byte %td for 20 tokens, at %td for a batch of 5\n",
              reinterpret_cast<std::byte*>(slots) - arena->scratch.data(),
              reinterpret_cast<std::byte*>(slots_of_batch) - arena->scratch.data());
  right &= check(reinterpret_cast<std::byte*>(slots_of_batch) - arena->scratch.data() == 24,
                 "slots behind 5 positions");
  batch.blocks = 10000;
  right &= check(!stowage::carving_fits<prefill_parts>(arena->scratch, batch), "too many blocks do not fit");

  std::puts(right ? "right" : "wrong");
  return right ? 0 : 1;
}
