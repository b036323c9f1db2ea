#pragma once

#include <stowage/element.hpp>
#include <stowage/error.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace stowage::detail {

/// The bytes of one element, repeated over a buffer; `size` 0 for none.
struct fill_pattern {
  std::array<unsigned char, 8> bytes{};
  std::size_t size = 0;
};

/// The bits of a small float for `numerator / denominator`. No constant expression where the format has no
/// such number: a value that is filled in is exact or it does not compile.
constexpr std::uint32_t encode_small_float(std::int64_t numerator, std::int64_t denominator,
                                           int exponent_bits, int fraction_bits) {
  if (numerator == 0) return 0;
  const std::uint32_t sign =
      (numerator < 0) != (denominator < 0) ? 1U << (exponent_bits + fraction_bits) : 0U;
  double magnitude = static_cast<double>(numerator) / static_cast<double>(denominator);
  if (magnitude < 0) magnitude = -magnitude;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  int exponent = bias;
  while (magnitude >= 2.0) {
    magnitude /= 2.0;
    ++exponent;
  }
  while (magnitude < 1.0) {
    magnitude *= 2.0;
    --exponent;
  }
  const double fraction = (magnitude - 1.0) * static_cast<double>(1 << fraction_bits);
  const auto bits = static_cast<std::uint32_t>(fraction);
  if (static_cast<double>(bits) != fraction || exponent <= 0 || exponent >= (1 << exponent_bits) - 1) {
    throw size_error("stowage: the fill value is no number of the element type");
  }
  return sign | (static_cast<std::uint32_t>(exponent) << fraction_bits) | bits;
}

template <class Bits> constexpr fill_pattern pattern_of_bits(Bits bits) {
  fill_pattern pattern;
  pattern.size = sizeof(Bits);
  const auto bytes = std::bit_cast<std::array<unsigned char, sizeof(Bits)>>(bits);
  for (std::size_t index = 0; index < sizeof(Bits); ++index) pattern.bytes[index] = bytes[index];
  return pattern;
}

/// The pattern of an element type for `numerator / denominator`. Small floats are known by their printed
/// names, so the CUDA types count as what they are.
template <element Element>
constexpr fill_pattern pattern_of(std::int64_t numerator, std::int64_t denominator) {
  if constexpr (std::is_floating_point_v<Element>) {
    return pattern_of_bits(static_cast<Element>(numerator) / static_cast<Element>(denominator));
  } else if constexpr (std::is_integral_v<Element>) {
    if (numerator % denominator != 0 ||
        static_cast<std::int64_t>(static_cast<Element>(numerator / denominator)) != numerator / denominator) {
      throw size_error("stowage: the fill value is no number of the element type");
    }
    return pattern_of_bits(static_cast<Element>(numerator / denominator));
  } else {
    constexpr std::string_view name = element_name<Element>();
    static_assert(
        name == "bf16" || name == "f16" || name == "fp8_e4m3" || name == "fp8_e5m2",
        "stowage: pad_fill knows integers, floats, bf16, f16 and fp8; fill other elements yourself");
    if constexpr (name == "bf16") {
      return pattern_of_bits(static_cast<std::uint16_t>(encode_small_float(numerator, denominator, 8, 7)));
    } else if constexpr (name == "f16") {
      return pattern_of_bits(static_cast<std::uint16_t>(encode_small_float(numerator, denominator, 5, 10)));
    } else if constexpr (name == "fp8_e4m3") {
      return pattern_of_bits(static_cast<std::uint8_t>(encode_small_float(numerator, denominator, 4, 3)));
    } else {
      return pattern_of_bits(static_cast<std::uint8_t>(encode_small_float(numerator, denominator, 5, 2)));
    }
  }
}

} // namespace stowage::detail
