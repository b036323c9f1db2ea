#pragma once

#include <stowage/detail/cold.hpp>
#include <stowage/detail/raise.hpp>
#include <stowage/element.hpp>
#include <stowage/error.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace stowage::inline v0_1::detail {

/// The bytes of one element, repeated over a buffer; `size` 0 for none.
struct fill_pattern {
  std::array<unsigned char, 8> bytes{};
  std::size_t size = 0;
};

[[noreturn]] STOWAGE_COLD inline void the_element_type_has_no_such_number() {
  detail::raise<size_error>("stowage: the fill value is no number of the element type");
}

/// The bits of a small float for `numerator / denominator`. No constant expression where the format has no
/// such number: a value that is filled in is exact or it does not compile. `all_finite` formats use the
/// largest exponent for numbers, all but the largest fraction.
constexpr std::uint32_t encode_small_float(std::int64_t numerator, std::int64_t denominator,
                                           int exponent_bits, int fraction_bits, bool all_finite) {
  if (numerator == 0) return 0;
  const std::uint32_t sign =
      (numerator < 0) != (denominator < 0) ? 1U << (exponent_bits + fraction_bits) : 0U;
  double magnitude = static_cast<double>(numerator) / static_cast<double>(denominator);
  if (magnitude < 0) magnitude = -magnitude;
  const int largest_exponent = (1 << exponent_bits) - 1;
  int exponent = (1 << (exponent_bits - 1)) - 1; // the bias: of numbers from 1 to 2
  while (magnitude >= 2.0) {
    magnitude /= 2.0;
    ++exponent;
  }
  while (magnitude < 1.0 && exponent > 1) {
    magnitude *= 2.0;
    --exponent;
  }
  const bool subnormal = magnitude < 1.0;
  const double fraction = (subnormal ? magnitude : magnitude - 1.0) * static_cast<double>(1 << fraction_bits);
  const auto bits = static_cast<std::uint32_t>(fraction);
  const bool no_number = exponent > largest_exponent ||
                         (exponent == largest_exponent && (!all_finite || bits == (1U << fraction_bits) - 1));
  if (static_cast<double>(bits) < fraction || no_number) the_element_type_has_no_such_number();
  return sign | (static_cast<std::uint32_t>(subnormal ? 0 : exponent) << fraction_bits) | bits;
}

template <class Bits> constexpr fill_pattern pattern_of_bits(Bits bits) {
  fill_pattern pattern;
  pattern.size = sizeof(Bits);
  const auto bytes = std::bit_cast<std::array<unsigned char, sizeof(Bits)>>(bits);
  for (std::size_t index = 0; index < sizeof(Bits); ++index) pattern.bytes[index] = bytes[index];
  return pattern;
}

/// Whether a quotient is a whole number over a power of two, which is what binary floats hold.
constexpr bool halves_give(std::int64_t numerator, std::int64_t denominator) {
  while (denominator % 2 == 0) denominator /= 2;
  return numerator % denominator == 0;
}

/// The pattern of an element type for `numerator / denominator`. Small floats are known by their printed
/// names, so the CUDA types count as what they are.
template <element Element>
constexpr fill_pattern pattern_of(std::int64_t numerator, std::int64_t denominator) {
  if constexpr (std::is_floating_point_v<Element>) {
    const auto value = static_cast<Element>(numerator) / static_cast<Element>(denominator);
    if (!halves_give(numerator, denominator) ||
        static_cast<std::int64_t>(static_cast<Element>(numerator)) != numerator) {
      the_element_type_has_no_such_number();
    }
    return pattern_of_bits(value);
  } else if constexpr (std::is_integral_v<Element>) {
    const std::int64_t value = numerator / denominator;
    if (numerator % denominator != 0 || static_cast<std::int64_t>(static_cast<Element>(value)) != value ||
        (value < 0 && std::is_unsigned_v<Element>)) {
      the_element_type_has_no_such_number();
    }
    return pattern_of_bits(static_cast<Element>(value));
  } else {
    constexpr std::string_view name = element_name<Element>();
    static_assert(
        name == "bf16" || name == "f16" || name == "fp8_e4m3" || name == "fp8_e5m2",
        "stowage: pad_fill knows integers, floats, bf16, f16 and fp8; fill other elements yourself");
    if constexpr (name == "bf16") {
      return pattern_of_bits(
          static_cast<std::uint16_t>(encode_small_float(numerator, denominator, 8, 7, false)));
    } else if constexpr (name == "f16") {
      return pattern_of_bits(
          static_cast<std::uint16_t>(encode_small_float(numerator, denominator, 5, 10, false)));
    } else if constexpr (name == "fp8_e4m3") {
      return pattern_of_bits(
          static_cast<std::uint8_t>(encode_small_float(numerator, denominator, 4, 3, true)));
    } else {
      return pattern_of_bits(
          static_cast<std::uint8_t>(encode_small_float(numerator, denominator, 5, 2, false)));
    }
  }
}

} // namespace stowage::inline v0_1::detail
