// Runs both functions of each pair, and says where they do not do the same.

#include "pairs.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace {

int failures = 0;
std::array<stowage::segment, 16> last_pass;
std::size_t last_count = 0;
std::size_t given_back = 0;

void check(bool right, const char* what) {
  if (right) return;
  std::printf("WRONG: %s\n", what);
  ++failures;
}

by_hand::arena make_by_hand(const engine_params& params, const declared::arena& other) {
  // At the addresses of the generated arena, so that lists of segments can be compared.
  by_hand::arena arena;
  arena.params = params;
  arena.slab = other.slab();
  const auto at = [&](std::size_t field) { return reinterpret_cast<stowage::bf16*>(other.address(field)); };
  arena.hidden_states = at(0);
  arena.residual = at(1);
  arena.qkv_output = at(2);
  arena.gate_logits = at(3);
  arena.expert_out = at(4);
  arena.logits = at(5);
  arena.splitk_workspace = reinterpret_cast<float*>(other.address(6));
  arena.keys = at(7);
  arena.values = arena.keys + std::size_t{500} * 4096;
  arena.token_ids = reinterpret_cast<std::uint32_t*>(other.address(9));
  arena.hidden_bytes = std::size_t{500} * 2048 * 2;
  arena.qkv_bytes = std::size_t{512} * 9216 * 2;
  const std::size_t splitk_bytes = std::size_t{32} * 16 * 258 * 4;
  const std::byte* const end = other.address(6) + splitk_bytes;
  arena.zeroed_bytes = static_cast<std::size_t>(end - other.slab());
  arena.full_bytes = static_cast<std::size_t>(end - other.address(5));
  return arena;
}

} // namespace

void* take_memory(std::size_t bytes, std::size_t alignment) {
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void give_back(void* address) noexcept {
  ++given_back;
  static_cast<void>(address); // both arenas have the same memory; it lives as long as the program
}
void take_segments(const stowage::segment* segments, std::size_t count) {
  for (last_count = 0; last_count < count; ++last_count) last_pass[last_count] = segments[last_count];
}

int main() {
  counting_backend backend;
  declared::arena ours(stowage::make_plan<declared::buffers>(fixed_params), backend);
  by_hand::arena hand = make_by_hand(fixed_params, ours);

  check(generated_accessor(ours) == by_hand_accessor(hand), "accessor");
  check(generated_accessor(ours) != nullptr, "the field has memory");
  check(generated_accessor_of_part(ours) == by_hand_accessor_of_part(hand), "accessor of a part");
  check(generated_bytes(ours) == by_hand_bytes(hand), "bytes");
  check(generated_row(ours, 7) == by_hand_row(hand, 7), "row");
  check(generated_constant_bytes() == by_hand_constant_bytes(), "constant bytes");
  check(generated_constant_offset() == by_hand_constant_offset(), "constant offset");

  generated_zero_all(ours);
  const auto all = last_pass;
  check(last_count == 1, "one segment");
  last_pass = {};
  by_hand_zero_all(hand);
  check(last_count == 1 && last_pass == all, "zero_all");

  last_pass = {};
  generated_zero_rows(ours, 7);
  const auto rows = last_pass;
  check(last_count == 6, "five row fields, and the full ones in one");
  last_pass = {};
  by_hand_zero_rows(hand, 7);
  check(last_count == 6 && last_pass == rows, "zero_rows");

  given_back = 0;
  check(generated_release(ours), "generated release succeeds");
  check(by_hand_release(hand), "release by hand succeeds");
  check(given_back == 2, "both give their memory back");
  check(generated_accessor(ours) == nullptr && by_hand_accessor(hand) == nullptr,
        "after release all is null");
  std::puts(failures == 0 ? "the pairs do the same" : "wrong");
  return failures == 0 ? 0 : 1;
}
