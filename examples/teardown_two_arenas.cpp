// Two arenas and a handle of another library, released in reverse order; one failure does not stop the rest.

#include <stowage/backend/failing.hpp>
#include <stowage/stowage.hpp>
#include <stowage/teardown.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>

struct params {
  stowage::tokens max_tokens;
  std::size_t hidden;
};
inline constexpr stowage::dim<&params::max_tokens> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};

struct step_buffers {
  stowage::buffer<stowage::bf16, stowage::shape<M, hidden>, stowage::zero::rows> states;
};
struct sampler_buffers {
  stowage::buffer<float, stowage::shape<M>, stowage::zero::full> scores;
  stowage::buffer<std::uint32_t, stowage::shape<M>, stowage::zero::never> ids;
};

namespace {

int failures = 0;

void check(bool right, const char* what) {
  if (right) return;
  std::printf("WRONG: %s\n", what);
  ++failures;
}

int open_handles = 1;

// [status]
/// Another library's handle, with a call that can fail.
stowage::status destroy_handle() {
  if (--open_handles < 0)
    return stowage::failure{.operation = "destroy", .subject = {}, .code = 7, .reason = "no such handle"};
  return {};
}
// [status]

} // namespace

int main() {
  constexpr params limits{stowage::tokens{64}, 256};
  // The 2nd deallocation fails: the step arena's, since the sampler's two fields are one slab, released
  // first.
  stowage::failing_backend<> backend;
  backend.fail(stowage::operation::deallocate, 2);

  // [register]
  stowage::arena step(stowage::make_plan<step_buffers>(limits), backend);
  stowage::arena sampler(stowage::make_plan<sampler_buffers>(limits), backend);

  stowage::teardown engine; // declared behind what it releases
  engine.add("GEMM handle", destroy_handle);
  engine.add("step arena", step);
  engine.add("sampler arena", sampler);
  engine.add("log", [] { std::puts("going down"); });
  // [register]

  // [release]
  const stowage::status status = engine.release(); // log, sampler, step, handle
  if (!status) std::printf("%s\n", status.message().c_str());
  // [release]

  check(!status.ok() && status.error().label == "step arena", "the first failure has its label");
  check(status.message() ==
            "step arena: deallocate of 'slab' (32768 bytes) failed with code 719: made to fail",
        "and says what happened");
  check(step.released() && sampler.released() && open_handles == 0, "the rest was released all the same");
  check(backend.outstanding() == 0, "and nothing is left");
  check(engine.release().ok(), "a second release does nothing");
  std::puts(failures == 0 ? "right" : "wrong");
  return failures == 0 ? 0 : 1;
}
