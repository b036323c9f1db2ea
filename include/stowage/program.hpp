#pragma once

#include <stowage/count.hpp>
#include <stowage/detail/checked.hpp>
#include <stowage/detail/cold.hpp>
#include <stowage/fault.hpp>
#include <stowage/text.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

// Formulas and conditions as data. A formula's type turns itself into a program at compile time, and the one
// evaluator and the one writer below do the rest: a large field list is a few tables, not thousands of
// functions to compile.

namespace stowage::inline v0_1 {

/// One instruction of a formula or condition written as a program.
enum class opcode : unsigned char {
  constant,
  input, ///< a member of the params struct
  call,  ///< a named formula
  add,
  subtract,
  multiply,
  divide,
  ceil_divide,
  minimum,
  maximum,
  round_up, ///< to a multiple of `value`
  at_most,  ///< the operand, which must not be above `value`
  choose,   ///< a condition, then two formulas
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  conjunction,
  disjunction,
  negation
};

namespace detail {

/// A member as it was read: signed members can be negative.
struct reading {
  std::size_t magnitude = 0;
  bool negative = false;
};

template <class Value> constexpr reading make_reading(const Value& value) {
  if constexpr (is_count<Value>) {
    return {value.value, false};
  } else if constexpr (std::is_enum_v<Value>) {
    return make_reading(static_cast<std::underlying_type_t<Value>>(value));
  } else if constexpr (std::signed_integral<Value>) {
    return {value < 0 ? std::size_t{0} - static_cast<std::size_t>(value) : static_cast<std::size_t>(value),
            value < 0};
  } else {
    return {static_cast<std::size_t>(value), false};
  }
}

/// An alias, because nvcc writes a declarator of this type out in parentheses, which g++ warns of.
template <class Class, class Value> using pointer_to_member = Value Class::*;

/// How a formula reads a member of the params struct: through a pointer to it where its type is a usual one, else through
/// a function of its own, which costs a function to compile for each member.
template <class Params> class member_reader {
public:
  constexpr member_reader() = default;
  constexpr member_reader(pointer_to_member<Params, std::size_t> member) : kind_(kind::size), size_(member) {}
  constexpr member_reader(pointer_to_member<Params, std::int64_t> member)
      : kind_(kind::integer), integer_(member) {}
  constexpr member_reader(pointer_to_member<Params, bool> member) : kind_(kind::flag), flag_(member) {}
  constexpr member_reader(pointer_to_member<Params, tokens> member) : kind_(kind::tokens), tokens_(member) {}
  constexpr member_reader(reading (*function)(const Params&)) : kind_(kind::function), function_(function) {}

  constexpr reading operator()(const Params& params) const {
    switch (kind_) {
      case kind::size: return make_reading(params.*size_);
      case kind::integer: return make_reading(params.*integer_);
      case kind::flag: return make_reading(params.*flag_);
      case kind::tokens: return make_reading(params.*tokens_);
      case kind::function: return function_(params);
    }
    return {};
  }

private:
  enum class kind : unsigned char { size, integer, flag, tokens, function };
  kind kind_ = kind::function;
  union {
    pointer_to_member<Params, std::size_t> size_;
    pointer_to_member<Params, std::int64_t> integer_;
    pointer_to_member<Params, bool> flag_;
    pointer_to_member<Params, tokens> tokens_;
    reading (*function_)(const Params&) = nullptr;
  };
};

/// One node of a formula; its operands follow it (prefix order).
template <class Params> struct instruction {
  opcode code = opcode::constant;
  /// A token count takes part in this node.
  bool uses_tokens = false;
  /// Instructions of this node with its operands.
  std::uint32_t length = 1;
  std::size_t value = 0;
  member_reader<Params> read{};
  const instruction* target = nullptr;
  /// Name of the member or of the named formula; `symbol` stands in its place where it is not empty.
  std::string_view name;
  char symbol[24]{};

  [[nodiscard]] constexpr std::string_view given_symbol() const { return symbol; }
  [[nodiscard]] constexpr std::string_view printed_name() const {
    return symbol[0] != '\0' ? std::string_view{symbol} : name;
  }
};

/// Evaluates programs. Without `token_limit`, at the capacity: every token count as it is.
template <class Params> struct evaluator {
  const Params& params;
  /// The first fault is recorded here; results mean nothing after it.
  fault& first_fault;
  /// How far T tokens reach: every token count is at most this.
  std::size_t token_limit = largest_size;
  /// How many rows the first T tokens own: without what padding and floors add to a token count, so that
  /// stale rows between T and its padding are not taken for live ones. A row that tokens share is live with
  /// the first of them, so every division of a token count rounds up.
  bool live = false;

  /// The value of the node at `at`, which is then moved behind it.
  constexpr std::size_t take(const instruction<Params>*& at) const {
    const instruction<Params>& node = *at++;
    switch (node.code) {
      case opcode::constant: return node.value;
      case opcode::input: return input(node);
      case opcode::call: {
        const instruction<Params>* target = node.target;
        return take(target);
      }
      case opcode::choose: {
        if (take(at) != 0) {
          const std::size_t result = take(at);
          at += at->length;
          return result;
        }
        at += at->length;
        return take(at);
      }
      case opcode::conjunction:
      case opcode::disjunction: {
        const bool left = take(at) != 0;
        if (left == (node.code == opcode::disjunction)) { // decided: the right side is not evaluated
          at += at->length;
          return left ? 1 : 0;
        }
        return take(at) != 0 ? 1 : 0;
      }
      case opcode::negation: return take(at) == 0 ? 1 : 0;
      case opcode::round_up: {
        const bool keep = live && node.uses_tokens;
        const std::size_t operand = take(at);
        return keep ? operand : round_up(operand, node.value);
      }
      case opcode::at_most: {
        const instruction<Params>& member = *at;
        const std::size_t operand = take(at);
        return operand <= node.value ? operand
                                     : fail({fault_kind::above_limit, '>', operand, node.value, member.name,
                                             member.given_symbol()});
      }
      case opcode::maximum: {
        const bool left_uses_tokens = at->uses_tokens;
        const std::size_t left = take(at);
        const bool right_uses_tokens = at->uses_tokens;
        const std::size_t right = take(at);
        if (live && left_uses_tokens != right_uses_tokens) return left_uses_tokens ? left : right;
        return left < right ? right : left;
      }
      case opcode::ceil_divide: {
        const std::size_t left = take(at);
        const std::size_t right = take(at);
        if (right == 0) return fail({fault_kind::division_by_zero, '/', left, right, {}, {}});
        return detail::ceil_divide(left, right);
      }
      default: {
        const std::size_t left = take(at);
        const std::size_t right = take(at);
        return combine(node.code, left, right);
      }
    }
  }

  constexpr std::size_t value(const instruction<Params>* program) const { return take(program); }
  constexpr bool holds(const instruction<Params>* program) const { return take(program) != 0; }

  STOWAGE_NOINLINE constexpr std::size_t add(std::size_t left, std::size_t right) const {
    std::size_t result = 0;
    return checked_add(left, right, result) ? result : fail({fault_kind::overflow, '+', left, right, {}, {}});
  }
  STOWAGE_NOINLINE constexpr std::size_t multiply(std::size_t left, std::size_t right) const {
    std::size_t result = 0;
    return checked_multiply(left, right, result) ? result
                                                 : fail({fault_kind::overflow, '*', left, right, {}, {}});
  }
  STOWAGE_NOINLINE constexpr std::size_t round_up(std::size_t value, std::size_t multiple) const {
    std::size_t result = 0;
    return checked_round_up(value, multiple, result)
               ? result
               : fail({fault_kind::overflow, '+', value, multiple - value % multiple, {}, {}});
  }
  STOWAGE_NOINLINE constexpr std::size_t fail(const fault& what) const {
    if (first_fault.kind == fault_kind::none) first_fault = what;
    return 0;
  }

private:
  constexpr std::size_t input(const instruction<Params>& node) const {
    const reading member = node.read(params);
    if (member.negative)
      return fail({fault_kind::negative_input, '-', member.magnitude, 0, node.name, node.given_symbol()});
    return node.uses_tokens && member.magnitude > token_limit ? token_limit : member.magnitude;
  }

  constexpr std::size_t combine(opcode code, std::size_t left, std::size_t right) const {
    switch (code) {
      case opcode::add: return add(left, right);
      case opcode::subtract:
        return right <= left ? left - right : fail({fault_kind::below_zero, '-', left, right, {}, {}});
      case opcode::multiply: return multiply(left, right);
      case opcode::divide:
        return right != 0 ? left / right : fail({fault_kind::division_by_zero, '/', left, right, {}, {}});
      case opcode::minimum: return right < left ? right : left;
      case opcode::equal: return left == right ? 1 : 0;
      case opcode::not_equal: return left != right ? 1 : 0;
      case opcode::less: return left < right ? 1 : 0;
      case opcode::less_equal: return left <= right ? 1 : 0;
      case opcode::greater: return left > right ? 1 : 0;
      case opcode::greater_equal: return left >= right ? 1 : 0;
      default: return 0; // not binary
    }
  }
};

/// How an infix operator is written; precedence 0 for what is none.
struct infix {
  std::string_view symbol;
  int precedence;
};

constexpr infix infix_of(opcode code) {
  switch (code) {
    case opcode::disjunction: return {" || ", 1};
    case opcode::conjunction: return {" && ", 2};
    case opcode::equal: return {" == ", 3};
    case opcode::not_equal: return {" != ", 3};
    case opcode::less: return {" < ", 3};
    case opcode::less_equal: return {" <= ", 3};
    case opcode::greater: return {" > ", 3};
    case opcode::greater_equal: return {" >= ", 3};
    case opcode::add: return {" + ", 4};
    case opcode::subtract: return {" - ", 4};
    case opcode::multiply: return {"*", 5};
    case opcode::divide: return {"/", 5};
    default: return {"", 0};
  }
}

/// Writes the node at `at`, in parentheses where it binds less than `outer`, and moves `at` behind it.
template <class Params>
STOWAGE_NOINLINE constexpr void write_program(text_writer& writer, const instruction<Params>*& at,
                                              int outer = 0) {
  const instruction<Params>& node = *at++;
  switch (node.code) {
    case opcode::constant: writer << node.value; return;
    case opcode::input:
    case opcode::call: writer << node.printed_name(); return;
    case opcode::at_most: write_program(writer, at, outer); return;
    case opcode::round_up:
      writer << "ceil" << node.value << '(';
      write_program(writer, at);
      writer << ')';
      return;
    case opcode::negation:
      writer << '!';
      if (at->code == opcode::input) {
        write_program(writer, at);
      } else {
        writer << '(';
        write_program(writer, at);
        writer << ')';
      }
      return;
    case opcode::choose:
      writer << '(';
      write_program(writer, at);
      writer << " ? ";
      write_program(writer, at);
      writer << " : ";
      write_program(writer, at);
      writer << ')';
      return;
    case opcode::ceil_divide:
    case opcode::minimum:
    case opcode::maximum:
      writer << (node.code == opcode::ceil_divide ? "cdiv(" : node.code == opcode::minimum ? "min(" : "max(");
      write_program(writer, at);
      writer << ", ";
      write_program(writer, at);
      writer << ')';
      return;
    default: break;
  }
  const infix form = infix_of(node.code);
  if (outer > form.precedence) writer << '(';
  write_program(writer, at, form.precedence);
  writer << form.symbol;
  write_program(writer, at, form.precedence + 1);
  if (outer > form.precedence) writer << ')';
}

} // namespace detail
} // namespace stowage::inline v0_1
