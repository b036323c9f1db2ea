// Random formulas against integers of any size: the value is exact, or the fault is the first there is, with the operands
// that a person would find. Nothing ever wraps, and nothing is refused that has a value.

#include "data.hpp"

#include <stowage/condition.hpp>
#include <stowage/formula.hpp>
#include <stowage/program.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace {

using property::next;
using property::next_size;
using property::outcome;
using stowage::fault;
using stowage::fault_kind;
using stowage::opcode;
namespace detail = stowage::detail;

const std::map<std::string, fault_kind> fault_kinds{{"overflow", fault_kind::overflow},
                                                    {"below_zero", fault_kind::below_zero},
                                                    {"division_by_zero", fault_kind::division_by_zero},
                                                    {"negative_input", fault_kind::negative_input},
                                                    {"above_limit", fault_kind::above_limit}};

// Formulas as data: the instructions are put together here, not by the operators.

struct inputs {
  std::array<property::signed_number, 5> values{};
};
using instruction = detail::instruction<inputs>;
constexpr std::array<std::string_view, 5> input_names{"batch", "hidden", "vocab", "heads", "wide"};

template <std::size_t Index> detail::reading read_input(const inputs& from) {
  return {from.values[Index].magnitude, from.values[Index].negative};
}
constexpr std::array<detail::reading (*)(const inputs&), 5> readers{
    &read_input<0>, &read_input<1>, &read_input<2>, &read_input<3>, &read_input<4>};

struct operation {
  opcode code;
  std::size_t operands;
};
const std::map<std::string, operation> operations{{"+", {opcode::add, 2}},
                                                  {"-", {opcode::subtract, 2}},
                                                  {"*", {opcode::multiply, 2}},
                                                  {"/", {opcode::divide, 2}},
                                                  {"cdiv", {opcode::ceil_divide, 2}},
                                                  {"min", {opcode::minimum, 2}},
                                                  {"max", {opcode::maximum, 2}},
                                                  {"pad", {opcode::round_up, 1}},
                                                  {"at_most", {opcode::at_most, 1}},
                                                  {"choose", {opcode::choose, 3}},
                                                  {"==", {opcode::equal, 2}},
                                                  {"!=", {opcode::not_equal, 2}},
                                                  {"<", {opcode::less, 2}},
                                                  {"<=", {opcode::less_equal, 2}},
                                                  {">", {opcode::greater, 2}},
                                                  {">=", {opcode::greater_equal, 2}},
                                                  {"&&", {opcode::conjunction, 2}},
                                                  {"||", {opcode::disjunction, 2}},
                                                  {"!", {opcode::negation, 1}}};

/// Reads one node with its operands and appends it to a program.
void read_node(std::istream& input, std::vector<instruction>& program) {
  const auto word = next<std::string>(input);
  const std::size_t at = program.size();
  program.emplace_back();
  if (word == "c") {
    program[at].value = next_size(input);
    return;
  }
  if (word == "in") {
    const std::size_t index = next_size(input);
    program[at].code = opcode::input;
    program[at].read = readers[index];
    program[at].name = input_names[index];
    program[at].uses_tokens = index == 0;
    return;
  }
  const operation& found = operations.at(word);
  program[at].code = found.code;
  if (word == "pad" || word == "at_most") program[at].value = next_size(input);
  for (std::size_t operand = 0; operand < found.operands; ++operand) {
    const std::size_t start = program.size();
    read_node(input, program);
    if (program[start].uses_tokens) program[at].uses_tokens = true;
  }
  program[at].length = static_cast<std::uint32_t>(program.size() - at);
}

TEST_CASE("property: random programs give exact values, or the first fault") {
  auto input = property::open("programs.txt");
  const std::size_t count = next_size(input);
  std::size_t values = 0;
  std::size_t overflows = 0;
  std::size_t wrong = 0;
  for (std::size_t number = 0; number < count; ++number) {
    std::vector<instruction> program;
    read_node(input, program);
    REQUIRE(next<std::string>(input) == "end");
    const std::size_t cases = next_size(input);
    for (std::size_t each = 0; each < cases; ++each) {
      const std::size_t limit = next_size(input);
      inputs given;
      for (auto& value : given.values) value = property::next_signed(input);
      const outcome expected = property::next_outcome(input);
      fault found;
      const instruction* at = program.data();
      const std::size_t value = detail::evaluator<inputs>{given, found, limit}.take(at);
      const bool all_read = at == program.data() + program.size();
      bool right = all_read;
      if (expected.has_value) {
        right = right && found.kind == fault_kind::none && value == expected.value;
        ++values;
      } else {
        right = right && found.kind == fault_kinds.at(expected.kind) &&
                found.operation == expected.operation && found.left == expected.left &&
                found.right == expected.right && found.input == expected.input;
        overflows += found.kind == fault_kind::overflow ? 1 : 0;
      }
      if (right) continue;
      ++wrong;
      CAPTURE(number);
      CAPTURE(each);
      CAPTURE(expected.kind);
      CAPTURE(expected.value);
      CAPTURE(value);
      CHECK(right);
    }
  }
  CHECK(wrong == 0);
  // Neither side is empty.
  CHECK(values > count);
  CHECK(overflows > count / 10);
}

// Formulas as types: the operators make the program, and the text and the message are what a person reads.

struct params {
  stowage::tokens batch{};
  std::size_t hidden = 0;
  std::uint32_t vocab = 0;
  std::int64_t heads = 0;
  bool wide = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};
inline constexpr stowage::dim<&params::vocab> vocab{};
inline constexpr stowage::dim<&params::heads> heads{};
inline constexpr stowage::dim<&params::wide> wide{};

/// How a fault is told.
std::string message_of(const outcome& expected, const std::string& formula) {
  const std::string left = std::to_string(expected.left);
  const std::string right = std::to_string(expected.right);
  const std::string input = expected.input == "batch" ? "batch (M)" : expected.input;
  std::string what;
  if (expected.kind == "negative_input") {
    what = "input " + input + " = -" + left + " is negative";
  } else if (expected.kind == "above_limit") {
    what = "input " + input + " = " + left + " is above its limit of " + right;
  } else {
    what = left + ' ' + expected.operation + ' ' + right;
    if (expected.kind == "overflow") what += " does not fit in 64 bits";
    if (expected.kind == "below_zero") what += " is below zero";
    if (expected.kind == "division_by_zero") what += " divides by zero";
  }
  return "stowage: " + what + ", in " + formula + "; check the values in the params struct";
}

struct result {
  bool has_value = false;
  std::size_t value = 0;
  std::string message;
};

/// What the data has for the next formula. `text` is how it is printed, `call` evaluates it.
template <class Call> void check_cases(std::istream& cases, std::string_view text, const Call& call) {
  std::string formula;
  std::getline(cases >> std::ws, formula);
  CHECK(text == formula);
  const std::size_t count = next_size(cases);
  for (std::size_t each = 0; each < count; ++each) {
    CAPTURE(formula);
    CAPTURE(each);
    static_cast<void>(next_size(cases)); // no limit
    std::array<property::signed_number, 5> values{};
    for (auto& value : values) value = property::next_signed(cases);
    params given;
    given.batch = stowage::tokens{values[0].magnitude};
    given.hidden = values[1].magnitude;
    given.vocab = static_cast<std::uint32_t>(values[2].magnitude);
    given.heads =
        static_cast<std::int64_t>(values[3].negative ? 0 - values[3].magnitude : values[3].magnitude);
    given.wide = values[4].magnitude != 0;
    const outcome expected = property::next_outcome(cases);
    const result wanted{expected.has_value, expected.value,
                        expected.has_value ? std::string() : message_of(expected, formula)};
    result found;
    try {
      found = {true, call(given), {}};
    } catch (const stowage::size_error& error) {
      found.message = error.what();
    }
    CHECK(found.has_value == wanted.has_value);
    CHECK(found.value == wanted.value);
    CHECK(found.message == wanted.message);
  }
}
template <class Formula> void check_formula(std::istream& cases, const Formula& formula) {
  check_cases(cases, stowage::text(formula).view(),
              [&](const params& given) { return stowage::evaluate(formula, given); });
}

TEST_CASE(
    "property: random typed formulas give exact values, or a message with the operands and their own text") {
  auto cases = property::open("formulas.txt");
  static_cast<void>(next_size(cases));
#include "formulas.inc"
}

} // namespace
