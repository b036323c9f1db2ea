// An engine that writes behind one of its buffers, and its twin that does not. AddressSanitizer stops the
// first with a report, although all buffers lie in one allocation.

#include <stowage/stowage.hpp>
#include <stowage/traits/copies.hpp>

#include <cstddef>
#include <cstdio>
#include <string_view>

struct params {
  stowage::tokens max_tokens;
};
inline constexpr stowage::dim<&params::max_tokens> M{"M"};

struct buffers {
  stowage::buffer<float, stowage::shape<M, 3>, stowage::zero::rows> queries; // 84 bytes, 172 of padding
  stowage::buffer<float, stowage::shape<64>, stowage::zero::full> sums;      // 256 bytes, no padding behind
  stowage::buffer<float, stowage::shape<M>, stowage::zero::never, stowage::copies<2>> states;
};

namespace {

void fill(float* values, std::size_t elements) {
  for (std::size_t index = 0; index < elements; ++index) values[index] = 1.0F;
}

} // namespace

int main(int count, char** arguments) {
  const std::string_view what = count > 1 ? arguments[1] : "nothing";
  const std::size_t too_many = what == "nothing" ? 0 : 1;
  auto plan = stowage::make_plan<buffers>(params{stowage::tokens{7}});
  if (what == "guard") plan = plan.with_guards();
  stowage::arena arena(plan, stowage::host_backend{});
  arena.zero_all();
  arena.zero_rows({}, stowage::tokens{7}, stowage::tokens{7});
  fill(arena->queries.data(), 21 + (what == "padding" ? too_many : 0));
  fill(arena->sums.data(), 64 + (what == "guard" ? too_many : 0));
  fill(arena->states.data(), 7 + (what == "copies" ? too_many : 0));
  std::puts("nothing was overrun");
  return arena.release().ok() ? 0 : 1;
}
