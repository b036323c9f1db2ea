#include <stowage/element.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using stowage::element;
using stowage::element_name;
using stowage::elements_per_block;
using namespace std::string_view_literals;

enum class kind : std::uint16_t { a, b };

struct slot {
  std::uint32_t block;
  std::uint32_t offset;
};

/// A block type of the user's: 16 elements and a scale.
struct nvfp4_block {
  static constexpr std::string_view element_name = "nvfp4";
  static constexpr std::size_t elements_per_block = 16;
  std::uint8_t pairs[8];
  std::uint8_t scale;
};

struct outer {
  struct nested {
    float value;
  };
};

} // namespace

namespace engine::quantised {
struct row_scale {
  float value;
};
} // namespace engine::quantised

namespace {

// What a buffer can hold.
static_assert(element<float>);
static_assert(element<double>);
static_assert(element<bool>);
static_assert(element<char>);
static_assert(element<std::byte>);
static_assert(element<std::int8_t>);
static_assert(element<std::uint64_t>);
static_assert(element<stowage::bf16>);
static_assert(element<stowage::f16>);
static_assert(element<stowage::fp8_e4m3>);
static_assert(element<stowage::fp8_e5m2>);
static_assert(element<stowage::u4>);
static_assert(element<stowage::i4>);
static_assert(element<stowage::fp4_e2m1>);
static_assert(element<stowage::q8_1>);
static_assert(element<kind>);
static_assert(element<slot>);
static_assert(element<std::array<float, 4>>);
static_assert(element<nvfp4_block>);

// And what it cannot.
static_assert(!element<void>);
static_assert(!element<float&>);
static_assert(!element<float*>);
static_assert(!element<float[4]>);
static_assert(!element<const float>);
static_assert(!element<volatile float>);
static_assert(!element<void()>);
static_assert(!element<std::string>);
static_assert(!element<std::vector<int>>);

// Sizes and alignments in memory.
static_assert(sizeof(stowage::bf16) == 2 && alignof(stowage::bf16) == 2);
static_assert(sizeof(stowage::f16) == 2 && alignof(stowage::f16) == 2);
static_assert(sizeof(stowage::f32) == 4 && sizeof(stowage::f64) == 8);
static_assert(sizeof(stowage::fp8_e4m3) == 1 && sizeof(stowage::fp8_e5m2) == 1);
static_assert(sizeof(stowage::u4) == 1 && sizeof(stowage::i4) == 1 && sizeof(stowage::fp4_e2m1) == 1);
static_assert(sizeof(stowage::q8_1) == 2 + 2 + 32 && alignof(stowage::q8_1) == 4);

static_assert(elements_per_block<float>() == 1);
static_assert(elements_per_block<stowage::bf16>() == 1);
static_assert(elements_per_block<slot>() == 1);
static_assert(elements_per_block<stowage::u4>() == 2);
static_assert(elements_per_block<stowage::i4>() == 2);
static_assert(elements_per_block<stowage::fp4_e2m1>() == 2);
static_assert(elements_per_block<stowage::q8_1>() == 32);
static_assert(elements_per_block<nvfp4_block>() == 16);

static_assert(element_name<float>() == "f32"sv);
static_assert(element_name<double>() == "f64"sv);
static_assert(element_name<bool>() == "bool"sv);
static_assert(element_name<std::int8_t>() == "i8"sv);
static_assert(element_name<std::uint8_t>() == "u8"sv);
static_assert(element_name<std::int16_t>() == "i16"sv);
static_assert(element_name<std::uint16_t>() == "u16"sv);
static_assert(element_name<std::int32_t>() == "i32"sv);
static_assert(element_name<std::uint32_t>() == "u32"sv);
static_assert(element_name<std::int64_t>() == "i64"sv);
static_assert(element_name<std::uint64_t>() == "u64"sv);
static_assert(element_name<unsigned long long>() == "u64"sv);
static_assert(element_name<stowage::bf16>() == "bf16"sv);
static_assert(element_name<stowage::f16>() == "f16"sv);
static_assert(element_name<stowage::fp8_e4m3>() == "fp8_e4m3"sv);
static_assert(element_name<stowage::fp8_e5m2>() == "fp8_e5m2"sv);
static_assert(element_name<stowage::u4>() == "u4"sv);
static_assert(element_name<stowage::i4>() == "i4"sv);
static_assert(element_name<stowage::fp4_e2m1>() == "fp4_e2m1"sv);
static_assert(element_name<stowage::q8_1>() == "q8_1"sv);
static_assert(element_name<nvfp4_block>() == "nvfp4"sv);
#if !defined(__CUDACC__)
static_assert(element_name<slot>() == "slot"sv);
static_assert(element_name<kind>() == "kind"sv);
static_assert(element_name<outer::nested>() == "nested"sv);
static_assert(element_name<engine::quantised::row_scale>() == "row_scale"sv);
static_assert(element_name<std::byte>() == "byte"sv);
#endif

// The CUDA number types go by the names of their formats.
static_assert(stowage::detail::known_element_name("__nv_bfloat16") == "bf16"sv);
static_assert(stowage::detail::known_element_name("__half") == "f16"sv);
static_assert(stowage::detail::known_element_name("__nv_fp8_e4m3") == "fp8_e4m3"sv);
static_assert(stowage::detail::known_element_name("__nv_fp8_e5m2") == "fp8_e5m2"sv);
static_assert(stowage::detail::known_element_name("slot") == "slot"sv);

} // namespace
