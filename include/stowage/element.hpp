#pragma once

#include <stowage/detail/host_device.hpp>
#include <stowage/text.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace stowage::inline v0_1 {

// Storage types: the bits of a format, without arithmetic. Same size and alignment as the CUDA type of that
// format, which can stand in its place wherever it is defined.

/// bfloat16: 1 sign, 8 exponent and 7 fraction bits.
struct bf16 {
  static constexpr std::string_view element_name = "bf16";
  /// The bits of the number.
  std::uint16_t bits;
};

/// IEEE 754 binary16.
struct f16 {
  static constexpr std::string_view element_name = "f16";
  /// The bits of the number.
  std::uint16_t bits;
};

/// IEEE 754 binary32, under the name of the others.
using f32 = float;
/// IEEE 754 binary64, under the name of the others.
using f64 = double;

/// 8-bit float with 4 exponent bits (OCP FP8 E4M3).
struct fp8_e4m3 {
  static constexpr std::string_view element_name = "fp8_e4m3";
  /// The bits of the number.
  std::uint8_t bits;
};

/// 8-bit float with 5 exponent bits (OCP FP8 E5M2).
struct fp8_e5m2 {
  static constexpr std::string_view element_name = "fp8_e5m2";
  /// The bits of the number.
  std::uint8_t bits;
};

/// Two unsigned 4-bit integers in a byte, the first in the low half.
struct u4 {
  static constexpr std::string_view element_name = "u4";
  static constexpr std::size_t elements_per_block = 2;
  /// Both numbers.
  std::uint8_t pair;
};

/// Two signed 4-bit integers in a byte, the first in the low half.
struct i4 {
  static constexpr std::string_view element_name = "i4";
  static constexpr std::size_t elements_per_block = 2;
  /// Both numbers.
  std::uint8_t pair;
};

/// Two 4-bit floats (OCP FP4 E2M1) in a byte, the first in the low half.
struct fp4_e2m1 {
  static constexpr std::string_view element_name = "fp4_e2m1";
  static constexpr std::size_t elements_per_block = 2;
  /// Both numbers.
  std::uint8_t pair;
};

/// 32 signed 8-bit integers with their scale and the scaled sum of them as binary16: 36 bytes (the GGML
/// format Q8_1).
struct alignas(4) q8_1 {
  static constexpr std::string_view element_name = "q8_1";
  static constexpr std::size_t elements_per_block = 32;
  /// What the values are multiplied by.
  f16 scale;
  /// The sum of the values, times the scale.
  f16 sum;
  /// The numbers, unscaled.
  std::int8_t values[32];
};
static_assert(sizeof(q8_1) == 36);

/// What a buffer can hold: any trivially copyable object type, so the CUDA number types and an engine's own
/// structs are accepted as they are. A type with a static member `elements_per_block` is a block of that many
/// elements in sizeof(type) bytes; one with a static member `element_name` is printed under that name.
template <class Type>
concept element = __is_trivially_copyable(Type) && !std::is_pointer_v<Type> && !std::is_array_v<Type> &&
                  !std::is_const_v<Type> && !std::is_volatile_v<Type>;

namespace detail {

template <class Type> constexpr std::string_view number_name() {
  if constexpr (std::same_as<Type, float>) return "f32";
  if constexpr (std::same_as<Type, double>) return "f64";
  if constexpr (std::same_as<Type, bool>) return "bool";
  constexpr std::string_view signed_names[] = {"i8", "i16", "i32", "i64"};
  constexpr std::string_view unsigned_names[] = {"u8", "u16", "u32", "u64"};
  constexpr std::size_t index = sizeof(Type) == 1 ? 0 : sizeof(Type) == 2 ? 1 : sizeof(Type) == 4 ? 2 : 3;
  return std::is_signed_v<Type> ? signed_names[index] : unsigned_names[index];
}

/// The CUDA types by the names they have in CUDA's headers, which are not included here.
constexpr std::string_view known_element_name(std::string_view type) {
  if (type == "__nv_bfloat16") return "bf16";
  if (type == "__half") return "f16";
  if (type == "__nv_fp8_e4m3") return "fp8_e4m3";
  if (type == "__nv_fp8_e5m2") return "fp8_e5m2";
  return type;
}

} // namespace detail

/// Elements in one block: 1 for plain element types.
template <element Element> STOWAGE_HOST_DEVICE constexpr std::size_t elements_per_block() {
  if constexpr (requires { Element::elements_per_block; }) {
    static_assert(Element::elements_per_block > 0, "stowage: elements_per_block must be at least 1");
    return Element::elements_per_block;
  } else {
    return 1;
  }
}

/// Short name of an element type, such as bf16 or u32; the type's own name for an engine's structs.
template <element Element> constexpr std::string_view element_name() {
  if constexpr (requires { Element::element_name; }) {
    return Element::element_name;
  } else if constexpr (std::is_arithmetic_v<Element>) {
    return detail::number_name<Element>();
  } else {
    return detail::known_element_name(detail::last_identifier(detail::type_signature<Element>()));
  }
}

} // namespace stowage::inline v0_1
