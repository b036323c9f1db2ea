#include <stowage/plan.hpp>
#include <stowage/regions.hpp>
#include <stowage/report.hpp>
#include <stowage/traits/when.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

namespace {

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

TEST_CASE("report: name, element, shape, policy, condition and place of a field") {
  const auto plan = stowage::make_plan<fields>(params{tokens{3}, 5, true});
  const stowage::field_report states = report_field(plan, 0);
  CHECK(states.name == "states");
  CHECK(states.element == "bf16");
  CHECK(states.shape == "[ceil16(M), 2*hidden]");
  CHECK(states.policy == "rows");
  CHECK(states.condition.empty());
  CHECK(states.layout.bytes == 16 * 10 * 2);
  CHECK(states.layout.offset == 0);

  const stowage::field_report carved = report_field(plan, 1);
  CHECK(carved.name == "carved");
  CHECK(carved.element == "regions");
  CHECK(carved.shape == "{keys bf16 [M, hidden], either (f32 [M] | bf16 [2*M])}");
  CHECK(carved.policy == "full");
  CHECK(carved.condition == "hidden > 4 && mamba");
  // keys 3 * 5 * 2 = 30, either from 32 for 12.
  CHECK(carved.layout.bytes == 44);
  CHECK(carved.layout.offset == 512);

  const stowage::field_report one = report_field(plan, 2);
  CHECK(one.name == "inner.one");
  CHECK(one.element == "i32");
  CHECK(one.shape == "[]");
  CHECK(one.policy == "never");
  CHECK(one.condition == "mamba");
  CHECK(one.layout.bytes == 4);

  CHECK_THROWS_AS(static_cast<void>(report_field(plan, 4)), stowage::bounds_error);
}

TEST_CASE("report: several conditions keep their meaning") {
  const auto plan = stowage::make_plan<fields>(params{tokens{3}, 5, true});
  CHECK(report_field(plan, 3).condition == "(mamba || mla) && hidden > 3");
}

} // namespace
