// The layout of odd field lists, checked from the numbers alone.

#include "layout_checker.hpp"

#include <stowage/plan.hpp>
#include <stowage/regions.hpp>
#include <stowage/traits/align.hpp>
#include <stowage/traits/at_least.hpp>
#include <stowage/traits/placeholder.hpp>
#include <stowage/traits/when.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

namespace {

using stowage::buffer;
using stowage::part;
using stowage::shape;
using stowage::tokens;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  std::size_t width = 0;
  bool on = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::width> width{};

struct alignas(512) page {
  std::byte bytes[512];
};
struct parts {
  part<std::uint8_t, shape<M>> bytes;
  part<double, shape<width>, stowage::align<1024>> doubles;
};
struct inner {
  buffer<std::uint8_t, shape<1>, zero::never, stowage::align<1>> a;
  buffer<std::uint8_t, shape<M>, zero::rows, stowage::align<1>> b;
  buffer<std::uint8_t, shape<width>, zero::full, stowage::align<1>> c;
};
struct fields {
  buffer<std::uint8_t, shape<3>, zero::never, stowage::align<1>> first;
  buffer<page, shape<M>, zero::never> pages;
  buffer<float, shape<width>, zero::full, stowage::align<4>> floats;
  inner group;
  buffer<stowage::regions<parts>, zero::full, stowage::when<&params::on>, stowage::placeholder<17>> carved;
  buffer<std::uint16_t, shape<M, width>, zero::rows, stowage::align<65536>> strict;
  buffer<std::uint8_t, shape<M, 0>, zero::rows> nothing;
  buffer<std::uint8_t, shape<M>, zero::rows, stowage::at_least<1001>, stowage::align<8>> floored;
  buffer<double, shape<1>, zero::never, stowage::when<&params::on>> last;
};
constexpr std::size_t policies[] = {2, 2, 1, 2, 0, 1, 1, 0, 0, 0, 2};

TEST_CASE("layout: no overlap, aligned, in order, no gaps, absent fields nowhere") {
  for (const bool on : {false, true}) {
    for (const std::size_t batch : {0u, 1u, 7u, 64u, 1000u}) {
      for (const std::size_t wide : {0u, 1u, 3u, 255u}) {
        CAPTURE(on);
        CAPTURE(batch);
        CAPTURE(wide);
        const auto plan = stowage::make_plan<fields>(params{tokens{batch}, wide, on});
        const auto policy = [](std::size_t field) { return policies[field]; };
        test::check_layout_of(plan, policy);
        test::check_layout_of(plan.with_bytes<&fields::last>(5), policy);
        test::check_layout_of(plan.with_bytes<&fields::floored>(0), policy);
        test::check_layout_of(plan.with<&fields::carved>(), policy);
      }
    }
  }
}

} // namespace
