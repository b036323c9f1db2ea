#pragma once

#include <stowage/detail/cold.hpp>
#include <stowage/detail/raise.hpp>
#include <stowage/error.hpp>
#include <stowage/text.hpp>

#include <cstddef>
#include <string_view>

namespace stowage::inline v0_1 {

/// Why a formula has no value.
enum class fault_kind : unsigned char {
  none,
  overflow,         ///< the result does not fit in std::size_t
  below_zero,       ///< a difference would be negative
  division_by_zero, ///< a divisor is zero
  negative_input,   ///< a signed member of the params struct is negative
  above_limit,      ///< a member in at_most is larger than its limit
  partial_block,    ///< a row of a block element is not a whole number of blocks
  misaligned        ///< starts_at puts a part where its alignment does not allow it
};

/// The first thing that went wrong in an evaluation, with its operands.
struct fault {
  /// What is wrong; none where nothing is.
  fault_kind kind = fault_kind::none;
  /// The operator of `left operation right`.
  char operation = ' ';
  /// The left operand.
  std::size_t left = 0;
  /// The right operand.
  std::size_t right = 0;
  /// The input for negative_input, whose magnitude is `left`, and for above_limit, where `left` is above
  /// `right`.
  std::string_view input;
  /// The name that stands for it in formulas; empty where that is the member's own.
  std::string_view symbol;
};

namespace detail {

constexpr std::string_view explanation(fault_kind kind) {
  switch (kind) {
    case fault_kind::overflow: return " does not fit in 64 bits";
    case fault_kind::below_zero: return " is below zero";
    case fault_kind::division_by_zero: return " divides by zero";
    case fault_kind::partial_block: return " leaves part of a block in each row: pad the row to whole blocks";
    case fault_kind::misaligned:
      return " is not 0: starts_at puts the part where its alignment does not allow it";
    case fault_kind::none:
    case fault_kind::negative_input:
    case fault_kind::above_limit: break;
  }
  return "";
}

/// "stowage: field 'logits': 8 * 4 does not fit in 64 bits, in bf16 [M, vocab]; what to do".
[[noreturn]] STOWAGE_COLD inline void throw_size_error(const fault& what, std::string_view field,
                                                       std::string_view formula) {
  const auto with_symbol = write_text<32>([&](text_writer& writer) {
    if (!what.symbol.empty() && what.symbol != what.input) writer << " (" << what.symbol << ')';
  });
  message text;
  text << "stowage: ";
  if (!field.empty()) text << "field '" << field << "': ";
  if (what.kind == fault_kind::negative_input) {
    text << "input " << what.input << with_symbol << " = -" << what.left << " is negative";
  } else if (what.kind == fault_kind::above_limit) {
    text << "input " << what.input << with_symbol << " = " << what.left << " is above its limit of "
         << what.right;
  } else {
    text << what.left << ' ' << what.operation << ' ' << what.right << explanation(what.kind);
  }
  if (!formula.empty()) text << ", in " << formula;
  if (what.kind != fault_kind::partial_block) text << "; check the values in the params struct";
  detail::raise<size_error>(text.c_str());
}

} // namespace detail
} // namespace stowage::inline v0_1
