#include <stowage/condition.hpp>
#include <stowage/formula.hpp>
#include <stowage/plan.hpp>
#include <stowage/regions.hpp>
#include <stowage/traits/when.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace {

using stowage::evaluate;
using stowage::shape;
using stowage::size_error;
using stowage::text;

struct params {
  stowage::tokens batch{};
  std::size_t hidden = 0;
  std::size_t vocab = 0;
  std::int64_t heads = 0;
  bool wide = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};
inline constexpr stowage::dim<&params::vocab> vocab{};
inline constexpr stowage::dim<&params::heads> heads{};
inline constexpr stowage::dim<&params::wide> wide{};

constexpr std::size_t largest = std::numeric_limits<std::size_t>::max();

/// The message of a size_error; empty where none is thrown.
template <class Call> std::string message_of(const Call& call) {
  try {
    call();
  } catch (const size_error& error) {
    return error.what();
  }
  return "";
}
template <class Formula> std::string fault_of(const Formula& formula, const params& values) {
  return message_of([&] { static_cast<void>(evaluate(formula, values)); });
}

TEST_CASE("formula: text names members, and puts parentheses where the meaning needs them") {
  CHECK(text(hidden * 2 + 1).view() == "hidden*2 + 1");
  CHECK(text((hidden + 1) * vocab).view() == "(hidden + 1)*vocab");
  CHECK(text(hidden - (vocab - 1)).view() == "hidden - (vocab - 1)");
  CHECK(text(stowage::pad<16>(M)).view() == "ceil16(M)");
  CHECK(text(cdiv(M, 64)).view() == "cdiv(M, 64)");
  CHECK(text(choose(wide && hidden > 3, 2 * M, M)).view() == "(wide && hidden > 3 ? 2*M : M)");
}

TEST_CASE("formula: a result that does not fit names the operands") {
  params values{.batch = stowage::tokens{8}, .hidden = largest, .vocab = 2, .heads = 3};
  CHECK(fault_of(hidden * vocab, values) == "stowage: 18446744073709551615 * 2 does not fit in 64 bits, in "
                                            "hidden*vocab; check the values in the params "
                                            "struct");
  CHECK(
      fault_of(hidden + 1, values).find("18446744073709551615 + 1 does not fit in 64 bits, in hidden + 1") !=
      std::string::npos);
  CHECK(fault_of(stowage::pad<16>(hidden), values).find("18446744073709551615 + 1 does not fit") !=
        std::string::npos);
  values.hidden = 6148914691236517206; // (2^64 - 1) / 3 + 1
  CHECK(fault_of(hidden * heads, values).find("6148914691236517206 * 3 does not fit") != std::string::npos);
  values.hidden = 6148914691236517205;
  CHECK(evaluate(hidden * heads, values) == largest);
}

TEST_CASE("formula: below zero, division by zero, a negative input, a limit") {
  params values{.batch = stowage::tokens{8}, .hidden = 4, .vocab = 0, .heads = -7};
  CHECK(fault_of(hidden - 5, values).find("stowage: 4 - 5 is below zero, in hidden - 5") == 0);
  CHECK(fault_of(hidden / vocab, values).find("stowage: 4 / 0 divides by zero, in hidden/vocab") == 0);
  CHECK(
      fault_of(cdiv(hidden, vocab), values).find("stowage: 4 / 0 divides by zero, in cdiv(hidden, vocab)") ==
      0);
  CHECK(fault_of(heads * 2, values).find("stowage: input heads = -7 is negative, in heads*2") == 0);
  values.heads = std::numeric_limits<std::int64_t>::min();
  CHECK(fault_of(heads, values).find("input heads = -9223372036854775808 is negative") != std::string::npos);
  CHECK(fault_of(stowage::at_most<7>(M) + 1, values)
            .find("stowage: input batch (M) = 8 is above its limit of 7, in M + 1") == 0);
  CHECK(fault_of(stowage::at_most<8>(M) + 1, values).empty());
}

TEST_CASE("formula: the first fault is the one that is told") {
  const params values{.batch = stowage::tokens{8}, .hidden = 4, .vocab = 0};
  CHECK(fault_of((hidden - 5) * (hidden / vocab), values).find("4 - 5 is below zero") != std::string::npos);
  CHECK(fault_of((hidden / vocab) * (hidden - 5), values).find("4 / 0 divides by zero") != std::string::npos);
}

TEST_CASE("condition: a formula in it without a value throws, unless the other side decides") {
  const params values{.hidden = 4, .vocab = 0};
  CHECK(message_of([&] {
          static_cast<void>(holds(hidden / vocab > 1, values));
        }).find("4 / 0 divides by zero") != std::string::npos);
  CHECK_FALSE(holds(vocab > 0 && hidden / vocab > 1, values));
}

struct parts {
  stowage::part<float, shape<M>> sums;
  stowage::part<float, shape<hidden - 5>> rest;
};
struct fields {
  stowage::buffer<stowage::bf16, shape<M, vocab>, stowage::zero::rows> logits;
  stowage::buffer<float, shape<hidden, hidden>, stowage::zero::never> square;
  stowage::buffer<stowage::regions<parts>, stowage::zero::never, stowage::when<&params::wide>> carved;
};

TEST_CASE("plan: a size without a value names the field, its formula and the operands") {
  const auto plan_of = [](const params& values) { static_cast<void>(stowage::make_plan<fields>(values)); };
  CHECK(message_of([&] { plan_of({.batch = stowage::tokens{3}, .hidden = 4, .vocab = largest}); }) ==
        "stowage: field 'logits': 3 * 18446744073709551615 does not fit in 64 bits, in bf16 [M, vocab]; "
        "check the "
        "values in the params struct");
  // The elements fit, their bytes do not: 2^63 elements of 4.
  CHECK(message_of([&] { plan_of({.hidden = 3037000500, .vocab = 1}); }) ==
        "stowage: field 'square': 9223372037000250000 * 4 does not fit in 64 bits, in f32 [hidden, hidden]; "
        "check "
        "the values in the params struct");
  CHECK(message_of([&] { plan_of({.batch = stowage::tokens{1}, .hidden = 4, .vocab = 1, .wide = true}); }) ==
        "stowage: field 'carved': 4 - 5 is below zero, in {sums f32 [M], rest f32 [hidden - 5]}; check the "
        "values in "
        "the params struct");
  // Of an absent field nothing is evaluated.
  CHECK(message_of([&] { plan_of({.batch = stowage::tokens{1}, .hidden = 4, .vocab = 1}); }).empty());
}

TEST_CASE("plan: each field fits, the slab does not") {
  // 2^31 * 2^31 * 4 = 2^64 does not fit; one less a side does, and leaves no room behind it.
  const params values{.batch = stowage::tokens{4}, .hidden = 2147483647, .vocab = 1};
  const auto plan = stowage::make_plan<fields>(values);
  CHECK(plan.bytes<&fields::square>() == 2147483647u * std::size_t{2147483647} * 4);
  const std::string message =
      message_of([&] { static_cast<void>(plan.with_bytes<&fields::logits>(largest - 1000)); });
  CHECK(message.find("stowage: field 'square': ") == 0);
  CHECK(message.find("does not fit in 64 bits") != std::string::npos);
}

TEST_CASE("plan: what it cannot find is a bounds error that names it") {
  const auto plan = stowage::make_plan<fields>(params{});
  CHECK_THROWS_WITH_AS(static_cast<void>(plan.bytes("logit")),
                       "stowage: no field is named 'logit'; see plan.name(index)", stowage::bounds_error);
  CHECK_THROWS_WITH_AS(static_cast<void>(plan.bytes(3)),
                       "stowage: field number 3 wanted, the field list has 3", stowage::bounds_error);
  CHECK_THROWS_AS(static_cast<void>(plan.name(3)), stowage::bounds_error);
  CHECK_THROWS_AS(static_cast<void>(plan.zero_bytes(3, stowage::tokens{1})), stowage::bounds_error);
  CHECK(plan.name(2) == "carved");
  CHECK(plan.index_of("square") == 1);
}

TEST_CASE("plan: a passed-in size below what the regions need is refused") {
  const auto plan = stowage::make_plan<fields>(params{.batch = stowage::tokens{2}, .hidden = 6, .vocab = 1});
  // sums 8 bytes, rest 4.
  CHECK_THROWS_WITH_AS(static_cast<void>(plan.with_bytes<&fields::carved>(11)),
                       "stowage: field 'carved': 11 bytes passed in, its regions need 12",
                       stowage::bounds_error);
  CHECK(plan.with_bytes<&fields::carved>(12).bytes("carved") == 12);
  CHECK(plan.with<&fields::carved>().bytes("carved") == 12);
  CHECK(plan.with_bytes<&fields::carved>(0).bytes("carved") == 0);
}

} // namespace
