#include "report_fields.hpp"

#include <stowage/plan.hpp>
#include <stowage/regions.hpp>
#include <stowage/report.hpp>
#include <stowage/traits/when.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

namespace {

using namespace reported;

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
