// An element type of one's own: a struct that can be copied byte by byte. Two static members make it a block of
// several elements with a name of its own; the library needs to know nothing else.

#include <stowage/report.hpp>
#include <stowage/stowage.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>

// [element]
/// 32 numbers of 4 bits that share a scale: 18 bytes.
struct q4_block {
  static constexpr std::string_view element_name = "q4"; // what reports print; else the name of the type
  static constexpr std::size_t elements_per_block = 32;  // else 1
  stowage::f16 scale;
  std::uint8_t pairs[16]; // two numbers a byte, the first in the low half
};
static_assert(stowage::element<q4_block>);
static_assert(sizeof(q4_block) == 18 && alignof(q4_block) == 2);
// [element]

// [buffers]
struct params {
  stowage::tokens max_tokens;
  std::size_t hidden;
};
inline constexpr stowage::dim<&params::max_tokens> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};

struct buffers {
  stowage::buffer<q4_block, stowage::shape<M, hidden>, stowage::zero::rows> activations;
};

// Extents count elements, bytes count blocks: 100 rows of 256 elements are 8 blocks each.
constexpr auto plan = stowage::make_plan<buffers>(params{stowage::tokens{100}, 256});
static_assert(plan.bytes<&buffers::activations>() == sizeof(q4_block) * 100 * 8);
static_assert(plan.zero_bytes<&buffers::activations>(stowage::tokens{7}) == sizeof(q4_block) * 7 * 8);
// [buffers]

namespace {

bool check(bool right, std::string_view what) {
  if (!right) std::printf("WRONG: %.*s\n", static_cast<int>(what.size()), what.data());
  return right;
}

} // namespace

int main() {
  stowage::arena arena(plan, stowage::host_backend{});
  arena.zero_all();

  // [use]
  q4_block* blocks = arena->activations.data(); // row 1 begins 256 / 32 = 8 blocks behind row 0
  blocks[8] = {stowage::f16{0x3c00}, {0x21}};   // scale 1, numbers 1, 2, 0, 0, ...
  auto row = arena->activations.rows(1, 2);     // a std::span of 8 blocks
  // [use]
  bool right = check(row.size() == 8 && row[0].pairs[0] == 0x21, "row 1 begins at block 8");
  arena.zero_rows({}, stowage::tokens{2});
  right &= check(row[0].pairs[0] == 0, "a row pass clears it");

  // A row must be whole blocks, so that it begins at a byte: 100 elements are 3 blocks and an eighth.
  try {
    static_cast<void>(stowage::make_plan<buffers>(params{stowage::tokens{100}, 100}));
    right &= check(false, "a row of 100 elements is refused");
  } catch (const stowage::size_error& error) {
    std::puts(error.what());
  }

  const stowage::field_report report = stowage::report_field(plan, 0);
  std::printf("%s %s: %zu bytes\n", report.element.c_str(), report.shape.c_str(), report.layout.bytes);
  right &= check(report.element == "q4", "reports print the element's own name");
  std::puts(right ? "right" : "wrong");
  return right ? 0 : 1;
}
