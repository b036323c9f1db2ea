// What finds mistakes before they are numbers: checksums, passes that forget no field, plans and addresses
// that must be those of the arena, and traits for padding, overreads, double buffers and floors.

#include <stowage/checksum.hpp>
#include <stowage/exhaustive.hpp>
#include <stowage/stowage.hpp>
#include <stowage/traits/copies.hpp>
#include <stowage/traits/min_bytes.hpp>
#include <stowage/traits/pad_fill.hpp>
#include <stowage/traits/tail.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

struct params {
  stowage::tokens max_tokens;
  std::size_t hidden, workspace;
  bool trace;
};
inline constexpr stowage::dim<&params::max_tokens> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};
inline constexpr stowage::dim<&params::workspace> workspace{};

struct checksummed;

// [pad_fill]
/// Scales of blocks of 128 columns. Kernels read whole tiles of 16 rows: the rows that no batch has written
/// hold 1, not 0 and not what the memory held.
using scale_buffer = stowage::buffer<float, stowage::shape<stowage::pad<16>(M), stowage::cdiv(hidden, 128)>,
                                     stowage::zero::never, stowage::pad_fill<1>>;
// [pad_fill]
// [tail]
/// Token ids. The copy engine reads in lines of 128 bytes and beyond the last id.
using id_buffer = stowage::buffer<std::uint32_t, stowage::shape<M>, stowage::zero::never, stowage::tail<128>>;
// [tail]
// [copies]
/// Hidden states, double-buffered.
using state_buffer = stowage::buffer<stowage::bf16, stowage::shape<M, hidden>, stowage::zero::rows,
                                     stowage::copies<2>, stowage::tag<checksummed>>;
// [copies]
// [min_bytes]
/// Partial sums of a GEMM library that says at start-up how much workspace it wants at least.
using workspace_buffer = stowage::buffer<float, stowage::shape<M, 4>, stowage::zero::full,
                                         stowage::min_bytes<workspace>, stowage::tag<checksummed>>;
// [min_bytes]

struct buffers {
  scale_buffer scales;
  id_buffer token_ids;
  state_buffer states;
  workspace_buffer partial_sums;
  stowage::buffer<float, stowage::shape<M>, stowage::zero::never, stowage::when<&params::trace>> timeline;
};

constexpr params limits{.max_tokens = stowage::tokens{20}, .hidden = 256, .workspace = 4096, .trace = false};
constexpr auto plan = stowage::make_plan<buffers>(limits);

// [sizes]
static_assert(plan.bytes<&buffers::scales>() == 256);                 // 32 * 2 * 4
static_assert(plan.bytes<&buffers::token_ids>() == 80);               // 20 * 4: the tail is not counted,
static_assert(plan.layout<&buffers::token_ids>().allocated() == 208); // but it is there
static_assert(plan.bytes<&buffers::states>() == 10240);               // 20 * 256 * 2: of one
static_assert(plan.layout<&buffers::states>().allocated() == 20480);  // of both
static_assert(plan.bytes<&buffers::partial_sums>() == 4096);          // the floor, not 20 * 4 * 4
// [sizes]

namespace {

int failures = 0;

void check(bool right, const char* what) {
  if (right) return;
  std::printf("WRONG: %s\n", what);
  ++failures;
}

using arena_type = stowage::arena<buffers, params, stowage::host_backend>;

void use_traits(arena_type& arena) {
  // [use_traits]
  float pad = arena->scales.span().back();                // 1, in a row that no batch of 20 reaches
  stowage::bf16* previous = arena->states.copy(0).data(); // as arena->states itself
  stowage::bf16* current = arena->states.copy(1).data();  // at the alignment of the field
  std::size_t usable = arena->partial_sums.bytes();       // what the library may use
  // [use_traits]
  check(pad == 1.0F, "the pad of a scale is 1");
  check(current != previous && usable == 4096, "copies and floors");
  arena.zero_all();
  check(arena->scales.span().back() == 1.0F, "no zero pass undoes it");
  arena->token_ids.data()[20 + 31] = 0; // in the tail
}

void use_checksum(arena_type& arena) {
  std::string log;
  // [checksum]
  arena->states.span()[0] = {0x0000}; // two bf16 are one f32 lane
  arena->states.span()[1] = {0x4000};
  stowage::checksum<checksummed>(
      arena, {}, [&](const stowage::field_checksum& each) { log += stowage::format("step 7", each) + '\n'; });
  // [checksum]
  check(log == "[step 7] states: 10240 bytes, sum 2, squares 4, magnitudes 2\n"
               "[step 7] partial_sums: 4096 bytes, sum 0, squares 0, magnitudes 0\n",
        "a line a buffer");
  // [staging]
  std::array<std::byte, 1024> staging; // of the engine's own: pinned, say
  stowage::checksum<checksummed>(arena, {}, staging, [&](const stowage::field_checksum& each) {
    if (each.copied && each.skipped_lanes != 0) std::printf("%zu lanes are not finite\n", each.skipped_lanes);
  });
  // [staging]
  std::printf("%s", log.c_str());
}

// [exhaustive]
/// Bytes that a snapshot of the arena has. Whoever adds a buffer has to say here whether it is saved: until
/// then this does not compile, and the message names the buffer.
std::size_t snapshot_bytes(const buffers& fields) {
  std::size_t bytes = 0;
  const auto save = [&](const auto& field) { bytes += field.bytes(); };
  const auto leave = [](const auto&) {};
  stowage::visit_exhaustive(fields, stowage::on<&buffers::states>(save),
                            stowage::on<&buffers::token_ids>(save), stowage::on<&buffers::scales>(save),
                            stowage::on<&buffers::partial_sums>(leave),
                            stowage::on<&buffers::timeline>(leave));
  return bytes;
}
// [exhaustive]

void use_generation(arena_type& arena) {
  // [require]
  params now = limits;
  now.trace = true; // a switch that was flipped between the estimate and here
  try {
    arena.require(stowage::make_plan<buffers>(now));
  } catch (const stowage::usage_error& error) {
    std::puts(error.what());
  }
  // [require]
  arena.require(plan);
  check(arena.plan().hash() == plan.hash(), "the arena knows the hash of its plan");

  // [generation]
  const std::uint64_t captured = arena.generation(); // kept with the graph that was captured
  arena.zero_rows({}, stowage::tokens{3});
  arena.require_generation(captured); // before each replay: the addresses are the same
  arena_type elsewhere = std::move(arena);
  elsewhere.require_generation(captured); // moved with the memory
  // [generation]
  check(elsewhere.release().ok() && elsewhere.generation() != captured, "what is released has another");
}

} // namespace

int main() {
  arena_type arena(plan, stowage::host_backend{});
  use_traits(arena);
  use_checksum(arena);
  check(snapshot_bytes(arena.fields()) == 256 + 80 + 10240, "a snapshot");
  use_generation(arena);
  std::puts(failures == 0 ? "right" : "wrong");
  return failures == 0 ? 0 : 1;
}
