#include "pairs.hpp"

#include <array>
#include <stdexcept>

namespace {

constexpr auto constant_plan = stowage::make_plan<declared::buffers>(fixed_params);

[[noreturn, gnu::cold, gnu::noinline]] void throw_no_such_row() { throw std::out_of_range("no such row"); }
[[noreturn, gnu::cold, gnu::noinline]] void throw_released() { throw std::logic_error("released"); }

} // namespace

stowage::bf16* generated_accessor(const declared::arena& arena) { return arena->qkv_output.data(); }
stowage::bf16* by_hand_accessor(const by_hand::arena& arena) { return arena.qkv_output; }

stowage::bf16* generated_accessor_of_part(const declared::arena& arena) {
  return arena->key_values->values.data();
}
stowage::bf16* by_hand_accessor_of_part(const by_hand::arena& arena) { return arena.values; }

std::size_t generated_bytes(const declared::arena& arena) { return arena->qkv_output.bytes(); }
std::size_t by_hand_bytes(const by_hand::arena& arena) { return arena.qkv_bytes; }

// With the check that rows() makes.
stowage::bf16* generated_row(const declared::arena& arena, std::size_t row) {
  return arena->hidden_states.rows(row, row + 1).data();
}
stowage::bf16* by_hand_row(const by_hand::arena& arena, std::size_t row) {
  if (row >= row + 1 || row + 1 > arena.params.max_tokens.value) throw_no_such_row();
  return arena.hidden_states + row * arena.params.hidden;
}

std::size_t generated_constant_bytes() { return constant_plan.bytes<&declared::buffers::qkv_output>(); }
std::size_t by_hand_constant_bytes() { return fixed_params.qkv_width * 512 * 2; }

std::size_t generated_constant_offset() {
  return constant_plan.layout<&declared::buffers::residual>().offset;
}
std::size_t by_hand_constant_offset() { return fixed_params.hidden * 500 * 2; }

void generated_zero_all(declared::arena& arena) { arena.zero_all(); }
void by_hand_zero_all(const by_hand::arena& arena) {
  if (arena.released) throw_released();
  if (arena.zeroed_bytes == 0) return;
  const stowage::segment all{arena.slab, arena.zeroed_bytes};
  take_segments(&all, 1);
}

void generated_zero_rows(declared::arena& arena, std::size_t tokens) {
  arena.zero_rows({}, stowage::tokens{tokens});
}
// The formulas a second time, unchecked, and the two full buffers as the one range they are in the slab.
void by_hand_zero_rows(const by_hand::arena& arena, std::size_t tokens) {
  if (arena.released) throw_released();
  std::array<stowage::segment, 6> list;
  std::size_t count = 0;
  const auto add = [&](void* address, std::size_t bytes) {
    list[count++] = {static_cast<std::byte*>(address), bytes};
  };
  const engine_params& params = arena.params;
  const std::size_t M = std::min(tokens, params.max_tokens.value);
  if (M != 0) {
    add(arena.hidden_states, 2 * M * params.hidden);
    add(arena.residual, 2 * M * params.hidden);
    add(arena.qkv_output, 2 * by_hand::ceil16(M) * params.qkv_width);
    if (arena.gate_logits != nullptr) add(arena.gate_logits, 2 * M * params.experts);
    add(arena.expert_out, 2 * by_hand::ceil16(M) * params.expert_width);
  }
  add(arena.logits, arena.full_bytes);
  take_segments(list.data(), count);
}

bool generated_release(declared::arena& arena) { return arena.release().ok(); }
bool by_hand_release(by_hand::arena& arena) {
  if (arena.released) return true;
  give_back(arena.slab);
  arena = {};
  arena.released = true;
  return true;
}
