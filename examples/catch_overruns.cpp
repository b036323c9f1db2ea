// A kernel that writes behind its buffer, and the guard zones that say so. In one slab nothing else does: what
// lies behind a buffer is the next buffer, not the end of an allocation.

#include <stowage/guards.hpp>
#include <stowage/stowage.hpp>

#include <cstddef>
#include <cstdio>
#include <string>

struct params {
  stowage::tokens max_tokens;
  std::size_t width;
};
inline constexpr stowage::dim<&params::max_tokens> M{"M"};
inline constexpr stowage::dim<&params::width> width{};

struct buffers {
  stowage::buffer<float, stowage::shape<M, width>, stowage::zero::rows> keys;
  stowage::buffer<float, stowage::shape<M, width>, stowage::zero::rows> values;
  stowage::buffer<float, stowage::shape<M>, stowage::zero::never> scales;
};

namespace {

/// Writes whole tiles of 16 rows, as a matrix multiplication does.
void write_tiles(float* to, std::size_t rows, std::size_t row_elements) {
  const std::size_t elements = (rows + 15) / 16 * 16 * row_elements;
  for (std::size_t index = 0; index < elements; ++index) to[index] = 1.0F;
}

} // namespace

int main() {
#if STOWAGE_ADDRESS_SANITIZER
  std::puts("SKIPPED: AddressSanitizer would stop at the overrun itself");
  return 0;
#endif
  bool right = true;
  {
    // [guards]
    const params limits{.max_tokens = stowage::tokens{24}, .width = 16};
    const auto plan = stowage::make_plan<buffers>(limits).with_guards(1024);
    stowage::arena arena(plan, stowage::host_backend{});
    arena.zero_rows({}, stowage::tokens{20});
    write_tiles(arena->keys.data(), 20, 16);   // 32 rows, 24 are there
    write_tiles(arena->values.data(), 16, 16); // 16 rows

    std::string log;
    const std::size_t damaged = stowage::scan_guards(
        arena, {}, [&](const stowage::guard_damage& each) { log += stowage::format(each) + '\n'; });
    // [guards]
    std::printf("%s", log.c_str());
    // 8 rows of 16 floats too many.
    right = damaged == 1 &&
            log == "guard zone behind 'keys' (before 'values'): bytes 0 to 511 of 1024 overwritten\n";
  }
  std::puts(right ? "right" : "wrong");
  return right ? 0 : 1;
}
