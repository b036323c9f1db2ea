#include <stowage/ladder.hpp>
#include <stowage/shape.hpp>

#include <cstddef>

namespace {

using stowage::evaluate;
using stowage::next_rung;

struct params {
  std::size_t batch = 0;
  stowage::tokens tokens{};
};
inline constexpr stowage::dim<&params::batch> N{"N"};
inline constexpr stowage::dim<&params::tokens> M{"M"};

constexpr auto rung = next_rung<2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128>(N);
constexpr std::size_t rung_of(std::size_t batch) { return evaluate(rung, params{batch}); }

/// Every batch in (below, rung] runs on that rung.
constexpr bool all_are(std::size_t first, std::size_t last, std::size_t expected) {
  for (std::size_t batch = first; batch <= last; ++batch) {
    if (rung_of(batch) != expected) return false;
  }
  return true;
}
static_assert(all_are(0, 2, 2));
static_assert(all_are(3, 4, 4));
static_assert(all_are(5, 8, 8));
static_assert(all_are(9, 12, 12));
static_assert(all_are(13, 16, 16));
static_assert(all_are(17, 24, 24));
static_assert(all_are(25, 32, 32));
static_assert(all_are(33, 36, 48)); // the batches that 36 rows did not hold
static_assert(all_are(37, 48, 48));
static_assert(all_are(49, 64, 64));
static_assert(all_are(65, 96, 96));
static_assert(all_are(97, 128, 128));
// Above the last rung a batch runs as it is.
static_assert(rung_of(129) == 129 && rung_of(1000) == 1000);

// One rung; a formula as operand.
static_assert(evaluate(next_rung<16>(N + 1), params{15}) == 16);
static_assert(evaluate(next_rung<16>(N + 1), params{16}) == 17);

// A rung is a formula like others: an extent can be one.
static_assert(evaluate(3 * next_rung<4, 8>(N), params{5}) == 24);
static_assert(evaluate(next_rung<4, 8>(M), params{0, stowage::tokens{5}}) == 8);
static_assert(stowage::shape<next_rung<4, 8>(M), 2>::uses_tokens);
static_assert(!stowage::shape<rung, 2>::uses_tokens);

} // namespace
