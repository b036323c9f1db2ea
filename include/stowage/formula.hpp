#pragma once

#include <stowage/count.hpp>
#include <stowage/detail/raise.hpp>
#include <stowage/program.hpp>
#include <stowage/text.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

// Every formula is a pure aggregate without constructors or base classes: a structural type that nvcc can
// write out as a template argument. Each has
//   length                   instructions of its program
//   uses_tokens              a token count takes part in it
//   grows_with_tokens        it has a value for every smaller token count, and never a larger one
//   emit<Params>(out)        writes its program and moves `out` behind it

namespace stowage::inline v0_1 {

/// A symbolic size expression: what dim, c, + - * /, cdiv, pad, min, max and choose make.
template <class Type>
concept formula = requires { typename std::remove_cvref_t<Type>::stowage_formula; };

/// A symbolic yes or no: comparisons of formulas, && || !.
template <class Type>
concept condition = requires { typename std::remove_cvref_t<Type>::stowage_condition; };

namespace detail {

template <class Type> struct member_pointer {};
template <class Class, class Value> struct member_pointer<Value Class::*> {
  using class_type = Class;
  using value_type = std::remove_cv_t<Value>;
};
template <class Class, class Value> struct member_pointer<Value (Class::*)() const> {
  using class_type = Class;
  using value_type = std::remove_cvref_t<Value>;
};
template <class Class, class Value>
struct member_pointer<Value (Class::*)() const noexcept> : member_pointer<Value (Class::*)() const> {};

template <class Type>
concept readable_as_size = std::integral<Type> || std::is_enum_v<Type> || is_count<Type>;

/// Stands for the params struct of a program that is only printed.
struct no_params {};

template <class Params, auto Member> constexpr reading read_member(const Params& params) {
  using value_type = typename member_pointer<decltype(Member)>::value_type;
  if constexpr (std::is_member_function_pointer_v<decltype(Member)>) {
    return make_reading<value_type>((params.*Member)());
  } else {
    return make_reading<value_type>(params.*Member);
  }
}

/// Data members of these types are read without a function of their own (member_reader). Not under nvcc 13: its front
/// end reads the wrong member through a stored pointer to a member of a base class.
#if defined(__CUDACC__)
template <class> inline constexpr bool read_by_pointer = false;
#else
template <class Type>
inline constexpr bool read_by_pointer = std::same_as<Type, std::size_t> || std::same_as<Type, std::int64_t> ||
                                        std::same_as<Type, bool> || std::same_as<Type, tokens>;
#endif

/// The signature ends in "... Value = &params::hidden]".
template <auto Member>
inline constexpr std::string_view member_pointer_name = last_identifier(value_signature<Member>());

} // namespace detail

/// A member that a formula can read: a data member or a const member function without arguments, of an
/// integer, enumeration, bool or count type.
template <auto Member>
concept dimension_member =
    detail::readable_as_size<typename detail::member_pointer<decltype(Member)>::value_type>;

/// Reads one member of the params struct: `inline constexpr dim<&params::hidden> hidden{};`. A name in braces
/// (at most 23 characters) is printed in place of the member's: `dim<&params::max_batch_tokens> M{"M"}`. Over
/// a bool it is a condition too.
template <auto Member>
  requires dimension_member<Member>
struct dim {
  using stowage_formula = void;
  /// Type of the member, or of what the member function returns.
  using value_type = typename detail::member_pointer<decltype(Member)>::value_type;
  static constexpr std::uint32_t length = 1;
  static constexpr bool uses_tokens = std::same_as<value_type, tokens>;
  static constexpr bool grows_with_tokens = true;

  /// The name that reports print; empty for the member's own.
  char symbol[24]{};

  template <class Params> constexpr void emit(detail::instruction<Params>*& out) const {
    out->code = opcode::input;
    out->uses_tokens = uses_tokens;
    if constexpr (!std::same_as<Params, detail::no_params>) {
      static_assert(std::is_base_of_v<typename detail::member_pointer<decltype(Member)>::class_type, Params>,
                    "stowage: a formula reads another params struct than the one the plan is made for");
      if constexpr (std::is_member_object_pointer_v<decltype(Member)> &&
                    detail::read_by_pointer<value_type>) {
        out->read = {Member};
      } else {
        out->read = {&detail::read_member<Params, Member>};
      }
    }
    out->name = detail::member_pointer_name<Member>;
    for (std::size_t index = 0; symbol[index] != '\0'; ++index) out->symbol[index] = symbol[index];
    ++out;
  }
};

/// A number in a formula. Integers next to a formula become one: `2 * hidden`.
struct constant {
  using stowage_formula = void;
  static constexpr std::uint32_t length = 1;
  static constexpr bool uses_tokens = false;
  static constexpr bool grows_with_tokens = true;

  /// The number.
  std::size_t value;

  template <class Params> constexpr void emit(detail::instruction<Params>*& out) const {
    (out++)->value = value;
  }
};

/// A constant where the language would read a plain number as something else: `cdiv(c<64>, c<16>)`.
template <std::size_t Value> inline constexpr constant c{Value};

namespace detail {

template <class Params, class Formula> constexpr auto compile(const Formula& formula) {
  std::array<instruction<Params>, Formula::length> program{};
  instruction<Params>* out = program.data();
  formula.emit(out);
  return program;
}

template <class Params, class Definition>
inline constexpr auto program_of_definition = compile<Params>(Definition::formula);

} // namespace detail

/// Gives a formula a name of its own: `Definition::formula` is what it is, `Definition::name` how it is
/// printed. Keeps the text of shapes and the names of types short: `inline constexpr
/// derived<qkv_width_definition> qkv_width{};`.
template <class Definition>
  requires formula<decltype(Definition::formula)>
struct derived {
  using stowage_formula = void;
  /// The formula behind the name.
  using formula_type = std::remove_cvref_t<decltype(Definition::formula)>;
  static constexpr std::uint32_t length = 1;
  static constexpr bool uses_tokens = formula_type::uses_tokens;
  static constexpr bool grows_with_tokens = formula_type::grows_with_tokens;

  template <class Params> constexpr void emit(detail::instruction<Params>*& out) const {
    out->code = opcode::call;
    out->uses_tokens = uses_tokens;
    out->name = Definition::name;
    if constexpr (!std::same_as<Params, detail::no_params>) {
      out->target = detail::program_of_definition<Params, Definition>.data();
    }
    ++out;
  }
};

namespace detail {

template <class Type>
concept operand = formula<Type> || (std::integral<std::remove_cvref_t<Type>> &&
                                    !std::same_as<std::remove_cvref_t<Type>, bool>);

template <class Left, class Right>
concept operands = operand<Left> && operand<Right> && (formula<Left> || formula<Right>);

[[noreturn]] STOWAGE_COLD inline void a_negative_number_stands_in_a_formula() {
  detail::raise<size_error>("stowage: a negative number stands in a formula; sizes are never negative");
}

/// A formula as it is; an integer as a constant. A negative number is no constant expression.
template <operand Type> constexpr auto lift(Type value) {
  if constexpr (formula<Type>) {
    return value;
  } else {
    if constexpr (std::signed_integral<Type>) {
      if (value < 0) a_negative_number_stands_in_a_formula();
    }
    return constant{static_cast<std::size_t>(value)};
  }
}
template <class Type> using lifted = decltype(lift(std::declval<Type>()));

/// Whether `left code right` grows with tokens, when they do. A difference has no value where it would be negative; a
/// quotient leaves the last tokens without a row of their own, where cdiv gives them one.
constexpr bool grows(opcode code, bool left_uses_tokens, bool right_uses_tokens) {
  if (code == opcode::subtract || code == opcode::divide) return !left_uses_tokens && !right_uses_tokens;
  return !right_uses_tokens || code != opcode::ceil_divide;
}

/// Writes the instruction of a node whose operands follow.
template <class Params>
constexpr void emit_node(instruction<Params>*& out, opcode code, std::uint32_t length, bool uses_tokens,
                         std::size_t value = 0) {
  out->code = code;
  out->uses_tokens = uses_tokens;
  out->length = length;
  out->value = value;
  ++out;
}

} // namespace detail

// What the operators and functions below make. A user names none of these.
namespace nodes {

/// A sum, difference, product, quotient, minimum or maximum of two formulas.
template <opcode Code, class Left, class Right> struct binary {
  using stowage_formula = void;
  static constexpr std::uint32_t length = 1 + Left::length + Right::length;
  static constexpr bool uses_tokens = Left::uses_tokens || Right::uses_tokens;
  static constexpr bool grows_with_tokens = Left::grows_with_tokens && Right::grows_with_tokens &&
                                            detail::grows(Code, Left::uses_tokens, Right::uses_tokens);
  /// The left operand.
  Left left;
  /// The right operand.
  Right right;
  template <class Params> constexpr void emit(detail::instruction<Params>*& out) const {
    detail::emit_node(out, Code, length, uses_tokens);
    left.emit(out);
    right.emit(out);
  }
};

/// Rounded up to a multiple of `Multiple`.
template <std::size_t Multiple, class Operand> struct padded {
  using stowage_formula = void;
  static constexpr std::uint32_t length = 1 + Operand::length;
  static constexpr bool uses_tokens = Operand::uses_tokens;
  static constexpr bool grows_with_tokens = Operand::grows_with_tokens;
  /// The formula that is rounded or limited.
  Operand operand;
  template <class Params> constexpr void emit(detail::instruction<Params>*& out) const {
    detail::emit_node(out, opcode::round_up, length, uses_tokens, Multiple);
    operand.emit(out);
  }
};

/// A member of the params struct that must not be larger than `Limit`.
template <std::size_t Limit, class Operand> struct limited {
  using stowage_formula = void;
  static constexpr std::uint32_t length = 1 + Operand::length;
  static constexpr bool uses_tokens = Operand::uses_tokens;
  static constexpr bool grows_with_tokens = true;
  /// The formula that is rounded or limited.
  Operand operand;
  template <class Params> constexpr void emit(detail::instruction<Params>*& out) const {
    detail::emit_node(out, opcode::at_most, length, uses_tokens, Limit);
    operand.emit(out);
  }
};

/// `yes` where the condition holds, else `no`; the other one is not evaluated.
template <class Condition, class Yes, class No> struct choice {
  using stowage_formula = void;
  static constexpr std::uint32_t length = 1 + Condition::length + Yes::length + No::length;
  static constexpr bool uses_tokens = Condition::uses_tokens || Yes::uses_tokens || No::uses_tokens;
  static constexpr bool grows_with_tokens =
      !Condition::uses_tokens && Yes::grows_with_tokens && No::grows_with_tokens;
  /// What decides.
  Condition when;
  /// The formula where it holds.
  Yes yes;
  /// The formula where it does not.
  No no;
  template <class Params> constexpr void emit(detail::instruction<Params>*& out) const {
    detail::emit_node(out, opcode::choose, length, uses_tokens);
    when.emit(out);
    yes.emit(out);
    no.emit(out);
  }
};

} // namespace nodes

namespace detail {

template <opcode Code, class Left, class Right> constexpr auto combine(Left left, Right right) {
  return nodes::binary<Code, lifted<Left>, lifted<Right>>{lift(left), lift(right)};
}

} // namespace detail

/// Has no value where the sum does not fit in 64 bits.
template <class Left, class Right>
  requires detail::operands<Left, Right>
constexpr auto operator+(Left left, Right right) {
  return detail::combine<opcode::add>(left, right);
}

/// Has no value where it would be negative.
template <class Left, class Right>
  requires detail::operands<Left, Right>
constexpr auto operator-(Left left, Right right) {
  return detail::combine<opcode::subtract>(left, right);
}

/// Has no value where the product does not fit in 64 bits.
template <class Left, class Right>
  requires detail::operands<Left, Right>
constexpr auto operator*(Left left, Right right) {
  return detail::combine<opcode::multiply>(left, right);
}

/// Rounds down.
template <class Left, class Right>
  requires detail::operands<Left, Right>
constexpr auto operator/(Left left, Right right) {
  return detail::combine<opcode::divide>(left, right);
}

/// Division that rounds up.
template <class Left, class Right>
  requires detail::operands<Left, Right>
constexpr auto cdiv(Left left, Right right) {
  return detail::combine<opcode::ceil_divide>(left, right);
}

/// Rounds a formula up to a multiple: `pad<16>(M)`, printed as ceil16(M).
template <std::size_t Multiple, formula Operand>
  requires(Multiple > 0)
constexpr auto pad(Operand operand) {
  return nodes::padded<Multiple, Operand>{operand};
}

/// The member itself, where it is at most `Limit`; above it every size that depends on it is an error that
/// names it.
template <std::size_t Limit, auto Member> constexpr auto at_most(dim<Member> operand) {
  return nodes::limited<Limit, dim<Member>>{operand};
}

/// The smallest of two or more formulas and integers.
template <class Left, class Right>
  requires detail::operands<Left, Right>
constexpr auto min(Left left, Right right) {
  return detail::combine<opcode::minimum>(left, right);
}

/// The largest of two or more formulas and integers.
template <class Left, class Right>
  requires detail::operands<Left, Right>
constexpr auto max(Left left, Right right) {
  return detail::combine<opcode::maximum>(left, right);
}

/// The same of three and more.
template <class First, class Second, class... Rest>
  requires(sizeof...(Rest) > 0 && detail::operands<First, Second>)
constexpr auto min(First first, Second second, Rest... rest) {
  return stowage::min(stowage::min(first, second), rest...);
}

/// The same of three and more.
template <class First, class Second, class... Rest>
  requires(sizeof...(Rest) > 0 && detail::operands<First, Second>)
constexpr auto max(First first, Second second, Rest... rest) {
  return stowage::max(stowage::max(first, second), rest...);
}

/// A formula or condition as text: `ceil16(M)*2`. Cut at 256 characters.
template <class Printable>
  requires(formula<Printable> || condition<Printable>)
constexpr fixed_text<256> text(const Printable& printable) {
  return write_text<256>([&](text_writer& writer) {
    const auto program = detail::compile<detail::no_params>(printable);
    const auto* at = program.data();
    detail::write_program(writer, at);
  });
}

namespace detail {

[[noreturn]] STOWAGE_COLD inline void formula_has_no_value(const fault& what, std::string_view formula) {
  throw_size_error(what, {}, formula);
}

/// The value of a formula or condition; throws, or does not compile, where it has none.
template <class Formula, class Params>
constexpr std::size_t evaluate_now(const Formula& formula, const Params& params) {
  fault first_fault;
  const auto program = compile<Params>(formula);
  const std::size_t value = evaluator<Params>{params, first_fault}.value(program.data());
  if (first_fault.kind != fault_kind::none) formula_has_no_value(first_fault, text(formula).view());
  return value;
}

} // namespace detail

/// The value of a formula for given params. Throws size_error where it has none; in a constant expression it
/// then does not compile.
template <formula Formula, class Params>
constexpr std::size_t evaluate(const Formula& formula, const Params& params) {
  return detail::evaluate_now(formula, params);
}

} // namespace stowage::inline v0_1
