// Two engines that take turns with one budget of memory: the arena of the one sleeps while the other works. Addresses
// stay, and so does what the arena holds where it is wanted. On the host; examples/cuda/take_turns.cpp does it on a GPU.

#include <stowage/backend/virtual_host.hpp>
#include <stowage/elastic.hpp>
#include <stowage/pool.hpp>
#include <stowage/stowage.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

struct params {
  stowage::tokens max_tokens;
  std::size_t hidden;
};
inline constexpr stowage::dim<&params::max_tokens> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};

struct rollout_buffers {
  stowage::buffer<stowage::bf16, stowage::shape<M, hidden>, stowage::zero::rows> states;
  stowage::buffer<std::uint32_t, stowage::shape<M>, stowage::zero::never, stowage::zero_at_construction>
      counts;
};
struct training_buffers {
  stowage::buffer<float, stowage::shape<M, hidden>, stowage::zero::full> gradients;
};

namespace {

int failures = 0;

void check(bool right, const char* what) {
  if (right) return;
  std::printf("WRONG: %s\n", what);
  ++failures;
}

void run() {
  // [make]
  constexpr params now{stowage::tokens{512}, 1024};
  constexpr params most{stowage::tokens{4096}, 1024}; // more will never be wanted
  stowage::virtual_host_backend backend;
  stowage::elastic_arena rollout(stowage::make_plan<rollout_buffers>(now),
                                 stowage::make_plan<rollout_buffers>(most), backend);
  // [make]
  stowage::elastic_arena training(stowage::make_plan<training_buffers>(now),
                                  stowage::make_plan<training_buffers>(now), backend);

  // [sleep]
  const std::uint32_t* const counts = rollout->counts.data(); // as a captured graph knows it
  rollout->counts.data()[7] = 42;
  rollout.sleep(stowage::keep_contents);
  check(rollout.asleep() && rollout.mapped_bytes() == 0, "the memory is given back");
  try {
    rollout.zero_all();
  } catch (const stowage::usage_error& error) {
    std::puts(error.what()); // zero_all was called on an arena that is asleep; wake() it first
  }
  rollout.wake();
  check(rollout->counts.data() == counts && counts[7] == 42, "the same address, the same contents");
  rollout.sleep(); // and without: give everything up
  rollout.wake();
  check(counts[7] == 0, "as in a new arena");
  // [sleep]

  // [resize]
  const std::uint64_t generation = rollout.generation();
  std::fill_n(rollout->counts.data(), 512, 9U);
  rollout.resize({stowage::tokens{2048}, 1024});
  check(rollout->counts.data() == counts && rollout->counts.size() == 2048, "it grows where it is");
  check(counts[511] == 9 && counts[512] == 0, "rows keep what they hold, new ones are as in a new arena");
  rollout.require_generation(generation); // graphs of up to 512 tokens stay valid
  try {
    rollout.resize({stowage::tokens{5000}, 1024});
  } catch (const stowage::bounds_error& error) {
    std::puts(
        error.what()); // field 'states' needs 10240000 bytes, its place in the reservation has 8388608; ...
  }
  // [resize]

  // [pool]
  stowage::pool pool(5 << 20); // bytes for both: 4.2 MB and 2.1 MB do not fit together
  training.sleep();
  pool.add(rollout);                                    // keeps its contents
  pool.add(training, {}, stowage::pool_contents::lose); // gradients are computed anew
  for (int turn = 0; turn < 3; ++turn) {
    pool.wake(training); // rollout goes to sleep
    training.zero_all();
    check(rollout.asleep() && pool.mapped_bytes() <= pool.budget(), "training has its turn");
    pool.wake(rollout); // training goes to sleep
    rollout.zero_rows({}, stowage::tokens{100});
    check(training.asleep() && counts[511] == 9, "rollout has its turn, and what it held");
    std::printf("turn %d: %zu bytes mapped of %zu\n", turn, pool.mapped_bytes(), pool.budget());
  }
  // [pool]
}

} // namespace

int main() {
  try {
    run();
  } catch (const std::exception& error) {
    std::printf("WRONG: %s\n", error.what());
    ++failures;
  }
  std::puts(failures == 0 ? "right" : "wrong");
  return failures == 0 ? 0 : 1;
}
