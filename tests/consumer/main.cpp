// A user's program, the same for every way to get the library: tests/consumer/run.sh.

#if defined(SINGLE_HEADER)
#include "stowage.hpp"
#else
#include <stowage/stowage.hpp>
#endif

#include <cstddef>
#include <cstdio>

struct params {
  stowage::tokens max_tokens;
  std::size_t hidden;
  bool has_scratch;
};
inline constexpr stowage::dim<&params::max_tokens> M{};
inline constexpr stowage::dim<&params::hidden> hidden{};

struct buffers {
  stowage::buffer<float, stowage::shape<stowage::pad<16>(M), hidden>, stowage::zero::rows> states;
  stowage::buffer<std::byte, stowage::shape<M>, stowage::zero::never, stowage::when<&params::has_scratch>>
      scratch;
};

constexpr auto plan = stowage::make_plan<buffers>(params{stowage::tokens{17}, 64, false});
static_assert(plan.bytes<&buffers::states>() == sizeof(float) * 32 * 64);
static_assert(!plan.present<&buffers::scratch>());

int main() {
  stowage::host_backend backend;
  stowage::arena arena(plan, backend);
  arena->states.data()[0] = 1.0f;
  arena.zero_rows(stowage::host_stream{}, stowage::tokens{1});

  const bool works = arena->states.data()[0] == 0.0f &&
                     arena->states.bytes() == plan.bytes<&buffers::states>() &&
                     arena->scratch.data() == nullptr;
  std::puts(works ? "works" : "does not work");
  return works ? 0 : 1;
}
