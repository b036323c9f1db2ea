#pragma once

// The field list that the tests of reports report.

#include <stowage/plan.hpp>
#include <stowage/regions.hpp>
#include <stowage/traits/when.hpp>

#include <cstddef>
#include <cstdint>

namespace reported {

using stowage::bf16;
using stowage::buffer;
using stowage::part;
using stowage::shape;
using stowage::tokens;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  std::size_t hidden = 0;
  bool mamba = false;
  bool mla = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};
inline constexpr stowage::dim<&params::mamba> mamba{};
inline constexpr stowage::dim<&params::mla> mla{};

struct parts {
  part<bf16, shape<M, hidden>> keys;
  part<stowage::alternatives<part<float, shape<M>>, part<bf16, shape<2 * M>>>> either;
};
struct group {
  buffer<std::int32_t, shape<>, zero::never, stowage::when<&params::mamba>> one;
};
struct fields {
  buffer<bf16, shape<stowage::pad<16>(M), 2 * hidden>, zero::rows> states;
  buffer<stowage::regions<parts>, zero::full, stowage::when<(hidden > 4)>, stowage::when<&params::mamba>>
      carved;
  group inner;
  buffer<float, shape<M>, zero::never, stowage::when<(mamba || mla)>, stowage::when<(hidden > 3)>> last;
};

} // namespace reported
