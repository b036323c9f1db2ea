#pragma once

#include <stowage/detail/cold.hpp>
#include <stowage/program.hpp>
#include <stowage/text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Programs as a person works them out: the symbols in them with their values, and the same text with the values
// in place of the symbols.

namespace stowage::inline v0_1::detail {

/// Any text as a string: measured first, then written.
template <class Write> std::string to_string(const Write& write) {
  text_writer measure;
  write(measure);
  std::string text(measure.size(), ' ');
  text_writer writer{text.data(), text.size()};
  write(writer);
  return text;
}

/// A symbol of a formula and what it stands for.
struct symbol_value {
  std::string_view name;
  /// The member of the params struct where that has another name; empty otherwise.
  std::string_view member;
  std::size_t value = 0;
  /// Stands where a condition does: true or false.
  bool is_flag = false;
  /// A named formula, as text and with the values in it; empty for a member.
  std::string formula;
  std::string with_values;
};

inline std::string value_text(std::size_t value, bool is_flag) {
  if (is_flag) return value != 0 ? "true" : "false";
  return std::to_string(value);
}

constexpr bool compares(opcode code) { return infix_of(code).precedence == 3; }
constexpr bool joins(opcode code) {
  return code == opcode::conjunction || code == opcode::disjunction || code == opcode::negation;
}

/// Writes the node at `at` with values in place of symbols, as write_program writes it with the symbols, and moves
/// `at` behind it. `is_flag`: it stands where a condition does.
template <class Params>
STOWAGE_NOINLINE void append_values(std::string& text, const instruction<Params>*& at,
                                    const evaluator<Params>& evaluate, int outer = 0, bool is_flag = false) {
  const instruction<Params>& node = *at;
  switch (node.code) {
    case opcode::constant:
    case opcode::input:
    case opcode::call: text += value_text(evaluate.take(at), is_flag); return;
    case opcode::at_most: ++at; return append_values(text, at, evaluate, outer);
    case opcode::round_up:
      ++at;
      text += "ceil" + std::to_string(node.value) + "(";
      append_values(text, at, evaluate);
      text += ")";
      return;
    case opcode::negation: {
      ++at;
      const bool bare = at->code == opcode::input;
      text += bare ? "!" : "!(";
      append_values(text, at, evaluate, 0, true);
      if (!bare) text += ")";
      return;
    }
    case opcode::choose:
      ++at;
      text += "(";
      append_values(text, at, evaluate, 0, true);
      text += " ? ";
      append_values(text, at, evaluate);
      text += " : ";
      append_values(text, at, evaluate);
      text += ")";
      return;
    case opcode::ceil_divide:
    case opcode::minimum:
    case opcode::maximum:
      ++at;
      text += node.code == opcode::ceil_divide ? "cdiv(" : node.code == opcode::minimum ? "min(" : "max(";
      append_values(text, at, evaluate);
      text += ", ";
      append_values(text, at, evaluate);
      text += ")";
      return;
    default: break;
  }
  ++at;
  const infix form = infix_of(node.code);
  if (outer > form.precedence) text += "(";
  append_values(text, at, evaluate, form.precedence, joins(node.code));
  text += form.symbol;
  append_values(text, at, evaluate, form.precedence + 1, joins(node.code));
  if (outer > form.precedence) text += ")";
}

template <class Params> std::string program_text(const instruction<Params>* at) {
  return to_string([at](text_writer& writer) {
    const instruction<Params>* node = at;
    write_program(writer, node);
  });
}

template <class Params>
std::string program_values(const instruction<Params>* at, const evaluator<Params>& evaluate,
                           bool is_flag = false) {
  std::string text;
  append_values(text, at, evaluate, 0, is_flag);
  return text;
}

/// Adds the symbols of the node at `at` that are not in the list yet, and moves `at` behind it. A named formula comes
/// before the symbols in it, which are added where `deep` is set.
template <class Params>
STOWAGE_NOINLINE void collect_symbols(std::vector<symbol_value>& symbols, const instruction<Params>*& at,
                                      const evaluator<Params>& evaluate, bool deep, bool is_flag = false) {
  const instruction<Params>& node = *at;
  const std::uint32_t length = node.length;
  const instruction<Params>* const end = at + length;
  if (node.code == opcode::input || node.code == opcode::call) {
    const std::string_view name = node.printed_name();
    const bool known = std::any_of(symbols.begin(), symbols.end(),
                                   [name](const symbol_value& each) { return each.name == name; });
    const instruction<Params>* value_at = at;
    at = end;
    if (known) return;
    symbol_value symbol;
    symbol.name = name;
    if (node.name != name) symbol.member = node.name;
    symbol.value = evaluate.take(value_at);
    symbol.is_flag = is_flag;
    if (node.code == opcode::call) {
      symbol.formula = program_text(node.target);
      symbol.with_values = program_values(node.target, evaluate);
    }
    symbols.push_back(std::move(symbol));
    if (node.code == opcode::call && deep) {
      const instruction<Params>* inside = node.target;
      collect_symbols(symbols, inside, evaluate, deep);
    }
    return;
  }
  ++at;
  for (std::size_t operand = 0; at < end; ++operand) {
    const bool condition = joins(node.code) || (node.code == opcode::choose && operand == 0);
    collect_symbols(symbols, at, evaluate, deep, condition);
  }
}

} // namespace stowage::inline v0_1::detail
