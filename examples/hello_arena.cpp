// A first arena: declare the buffers, plan them, allocate them, clear what a batch reaches, give them back.

// [include]
#include <stowage/report.hpp>
#include <stowage/stowage.hpp>
// [include]

#include <algorithm>
#include <cstddef>
#include <cstdio>

// [params]
struct decode_params {
  stowage::tokens max_batch_tokens;
  std::size_t hidden;
  std::size_t qkv_width;
  bool has_mamba;
};
inline constexpr stowage::dim<&decode_params::max_batch_tokens> M{"M"};
inline constexpr stowage::dim<&decode_params::hidden> hidden{};
inline constexpr stowage::dim<&decode_params::qkv_width> qkv_width{};
// [params]

// [buffers]
struct decode_buffers {
  /// Hidden states between layers.
  stowage::buffer<stowage::bf16, stowage::shape<M, hidden>, stowage::zero::rows> hidden_states;
  /// Queries, keys and values; the matrix multiplication writes ceil16(M) rows.
  stowage::buffer<stowage::bf16, stowage::shape<stowage::pad<16>(M), qkv_width>, stowage::zero::rows>
      qkv_output;
  /// Chunk sums of the Mamba-2 scan.
  stowage::buffer<float, stowage::shape<stowage::cdiv(M, 64), hidden>, stowage::zero::never,
                  stowage::when<&decode_params::has_mamba>>
      ssd_scratch;
};
// [buffers]

namespace {

int failures = 0;

void check(bool right, const char* what) {
  if (!right) {
    std::printf("WRONG: %s\n", what);
    ++failures;
  }
}

bool all_zero(const std::byte* begin, std::size_t bytes) {
  return std::all_of(begin, begin + bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

// [print]
template <class Plan> void print(const Plan& plan) {
  for (std::size_t field = 0; field < Plan::field_count; ++field) {
    const stowage::field_report report = stowage::report_field(plan, field);
    std::printf("%-14.*s %-5s %-22s %8zu bytes at %zu\n", static_cast<int>(report.name.size()),
                report.name.data(), report.element.c_str(), report.shape.c_str(), report.layout.bytes,
                report.layout.offset);
  }
  std::printf("slab: %zu bytes\n", plan.slab_bytes());
}
// [print]

} // namespace

int main() {
  // [plan]
  constexpr decode_params params{
      .max_batch_tokens = stowage::tokens{200}, .hidden = 1024, .qkv_width = 3072, .has_mamba = false};
  constexpr auto plan = stowage::make_plan<decode_buffers>(params);

  static_assert(plan.bytes<&decode_buffers::hidden_states>() == sizeof(stowage::bf16) * 200 * 1024);
  static_assert(plan.bytes<&decode_buffers::qkv_output>() ==
                sizeof(stowage::bf16) * 208 * 3072); // 200, rounded up to 16
  static_assert(!plan.present<&decode_buffers::ssd_scratch>());
  // [plan]
  print(plan);

  // [arena]
  stowage::host_backend backend;
  stowage::arena arena(plan, backend);
  // [arena]

  // [use]
  stowage::bf16* states = arena->hidden_states.data(); // typed; null where the field is absent
  std::size_t bytes = arena->hidden_states.bytes();    // 409600
  auto last_row = arena->hidden_states.rows(199, 200); // a std::span of 1024 elements
  if (arena->ssd_scratch) std::puts("This model has a Mamba-2 scan.");
  // [use]
  check(states != nullptr && bytes == 409600, "the handle of a present field");
  check(last_row.size() == 1024 && last_row.data() == states + std::size_t{199} * 1024, "one row");
  check(arena->ssd_scratch.data() == nullptr, "an absent field is null");

  const auto fill = [&] {
    for (stowage::bf16& element : arena->hidden_states.span()) element.bits = 0x3f80; // 1.0
    for (stowage::bf16& element : arena->qkv_output.span()) element.bits = 0x3f80;
  };
  const auto* qkv = reinterpret_cast<const std::byte*>(arena->qkv_output.data());
  const std::size_t qkv_row = sizeof(stowage::bf16) * 3072;

  fill();
  // [zero]
  // 7 rows of hidden_states, ceil16(7) = 16 rows of qkv_output.
  arena.zero_rows({}, stowage::tokens{7});
  // [zero]
  check(arena->hidden_states.rows(6, 7)[0].bits == 0, "row 6 is cleared");
  check(arena->hidden_states.rows(7, 8)[0].bits != 0, "row 7 stays");
  check(all_zero(qkv, 16 * qkv_row), "ceil16(7) = 16 rows of qkv_output are cleared");
  check(!all_zero(qkv + 16 * qkv_row, qkv_row), "row 16 of qkv_output stays");

  fill();
  // [tail]
  // What lies behind 7 live rows, up to a bucket of 32.
  arena.zero_rows({}, stowage::tokens{7}, stowage::tokens{32});
  // [tail]
  check(arena->hidden_states.rows(6, 7)[0].bits != 0, "a live row stays");
  check(arena->hidden_states.rows(7, 8)[0].bits == 0, "the first row of the tail is cleared");
  check(arena->hidden_states.rows(31, 32)[0].bits == 0, "the last row of the tail is cleared");
  check(arena->hidden_states.rows(32, 33)[0].bits != 0, "what is behind the bucket stays");

  fill();
  // [all]
  arena.zero_all(); // one contiguous range: every field with a row or full policy
  // [all]
  check(arena->qkv_output.rows(207, 208)[0].bits == 0, "zero_all clears the padded rows too");

  // [release]
  const stowage::status released = arena.release(); // the destructor does it too, but cannot report
  if (!released) std::puts(released.message().c_str());
  // [release]
  check(released.ok() && arena->hidden_states.data() == nullptr, "after release every handle is null");
  check(arena.release().ok(), "a second release does nothing");

  std::puts(failures == 0 ? "right" : "wrong");
  return failures == 0 ? 0 : 1;
}
