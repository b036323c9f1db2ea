// The plan that an arena was made from, and the addresses that a graph captured.

#include <stowage/arena.hpp>
#include <stowage/backend/host.hpp>
#include <stowage/traits/when.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace {

using stowage::buffer;
using stowage::make_plan;
using stowage::shape;
using stowage::tokens;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  bool lever = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
struct fields {
  buffer<float, shape<M>, zero::rows> states;
  buffer<float, shape<M, 4>, zero::never, stowage::when<&params::lever>> optional;
  buffer<float, shape<M, 2>, zero::never> behind;
};
constexpr auto plan = make_plan<fields>(params{tokens{3}});
constexpr auto with_the_lever = make_plan<fields>(params{tokens{3}, true});

TEST_CASE("generation: every arena has a number of its own") {
  const stowage::arena one(plan, stowage::host_backend{});
  const stowage::arena other(plan, stowage::host_backend{});
  CHECK(one.generation() != other.generation());
  CHECK(one.generation() == one.generation());
}

TEST_CASE("generation: passes and reads leave it, release changes it") {
  stowage::arena arena(plan, stowage::host_backend{});
  const std::uint64_t captured = arena.generation();
  arena.zero_all();
  arena.zero_rows({}, tokens{1});
  arena.require(plan);
  CHECK(arena.generation() == captured);
  CHECK_NOTHROW(arena.require_generation(captured));
  CHECK(arena.release().ok());
  const std::uint64_t released = arena.generation();
  CHECK(released != captured);
  CHECK_THROWS_WITH_AS(arena.require_generation(captured),
                       ("stowage: captured for generation " + std::to_string(captured) +
                        ", the arena is at " + std::to_string(released) + "; capture again")
                           .c_str(),
                       stowage::usage_error);
  CHECK(arena.release().ok()); // does nothing
  CHECK(arena.generation() == released);
}

TEST_CASE("generation: it moves with the memory") {
  stowage::arena arena(plan, stowage::host_backend{});
  const std::uint64_t captured = arena.generation();
  const float* const address = arena->states.data();
  stowage::arena moved(std::move(arena));
  CHECK(moved->states.data() == address); // the addresses are the same, and so is the number
  CHECK(moved.generation() == captured);
  CHECK_NOTHROW(moved.require_generation(captured));
  CHECK(arena.generation() != captured);
  CHECK_THROWS_AS(arena.require_generation(captured), stowage::usage_error);

  stowage::arena other(plan, stowage::host_backend{});
  const std::uint64_t before = other.generation();
  other = std::move(moved);
  CHECK(other.generation() == captured);
  CHECK(other->states.data() == address);
  CHECK_THROWS_AS(other.require_generation(before), stowage::usage_error); // that memory is gone
  CHECK_THROWS_AS(moved.require_generation(captured), stowage::usage_error);
}

TEST_CASE("generation: an arena that is made again where the old one was is another") {
  std::uint64_t captured = 0;
  for (int turn = 0; turn < 3; ++turn) {
    const stowage::arena arena(plan, stowage::host_backend{}); // as a rule at the same address
    CHECK(arena.generation() != captured);
    captured = arena.generation();
  }
}

TEST_CASE("require: the plan that the arena was made from, and equal ones") {
  const stowage::arena arena(plan, stowage::host_backend{});
  CHECK(arena.plan().hash() == plan.hash());
  CHECK_NOTHROW(arena.require(plan));
  CHECK_NOTHROW(arena.require(make_plan<fields>(params{tokens{3}})));
}

TEST_CASE("require: refuses a plan made after a lever was flipped, and says which field differs") {
  static_assert(plan.hash() != with_the_lever.hash());
  const stowage::arena arena(plan, stowage::host_backend{});
  CHECK_THROWS_WITH_AS(arena.require(with_the_lever),
                       "stowage: the plan is another than the arena was made from: field 'optional' has 0 "
                       "bytes at 0 here, the plan wants 48 bytes at 256; make plan and arena from the same "
                       "params",
                       stowage::usage_error);
  const stowage::arena other(with_the_lever, stowage::host_backend{});
  CHECK_THROWS_WITH_AS(other.require(plan),
                       "stowage: the plan is another than the arena was made from: field 'optional' has 48 "
                       "bytes at 256 here, the plan wants 0 bytes at 0; make plan and arena from the same "
                       "params",
                       stowage::usage_error);
}

TEST_CASE("require: another batch, and a size that was passed in") {
  stowage::arena arena(plan, stowage::host_backend{});
  CHECK_THROWS_WITH_AS(arena.require(make_plan<fields>(params{tokens{4}})),
                       "stowage: the plan is another than the arena was made from: field 'states' has 12 "
                       "bytes at 0 here, the plan wants 16 bytes at 0; make plan and arena from the same "
                       "params",
                       stowage::usage_error);
  CHECK_THROWS_WITH_AS(arena.require(plan.with_bytes<&fields::behind>(8)),
                       "stowage: the plan is another than the arena was made from: field 'behind' has 24 "
                       "bytes at 256 here, the plan wants 8 bytes at 256; make plan and arena from the same "
                       "params",
                       stowage::usage_error);
  // Also after release: it is about the plan.
  CHECK(arena.release().ok());
  CHECK_NOTHROW(arena.require(plan));
}

} // namespace
