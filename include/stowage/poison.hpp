#pragma once

#include <stowage/arena.hpp>
#include <stowage/detail/cold.hpp>
#include <stowage/detail/encode.hpp>
#include <stowage/layout.hpp>
#include <stowage/segments.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace stowage::inline v0_1 {

/// What poison() fills memory with. Elements are known by their printed names, so CUDA's number types count as
/// what they are.
struct poison_pattern {
  /// In every byte, where nothing below says otherwise. A bool becomes true for all but 0: other bytes are no
  /// bool.
  unsigned char byte = 0xff;
  /// f32, f64, bf16, f16 and fp8_e5m2 become their signalling NaN, fp8_e4m3 its only NaN.
  bool signalling_nan = false;
  /// Integers become this number instead of the byte over and over, so that what is used as an index stays in
  /// range. For i4 and u4 its low 4 bits.
  std::optional<unsigned char> integer_value{};

  friend constexpr bool operator==(const poison_pattern&, const poison_pattern&) = default;
};

namespace poisons {

/// What a pass would leave.
inline constexpr poison_pattern zeros{.byte = 0x00};
/// NaN for IEEE floats, -1 for signed integers.
inline constexpr poison_pattern ones{.byte = 0xff};
/// The NaN of each float format; -1 for integers.
inline constexpr poison_pattern signalling_nan{.byte = 0xff, .signalling_nan = true};
/// Numbers that a maximum or a comparison does not drop as it drops NaN: in every float format 0x5b over and
/// over is a large finite one (22 in fp8_e4m3, 6.2e16 in f32), and 0xdb its negative.
inline constexpr poison_pattern large_positive{.byte = 0x5b};
/// The negative of the same numbers.
inline constexpr poison_pattern large_negative{.byte = 0xdb};

} // namespace poisons

namespace detail {

template <class Bits> constexpr fill_pattern integer_pattern(std::size_t number) {
  return pattern_of_bits(static_cast<Bits>(number));
}

constexpr fill_pattern signalling_nan_of(std::string_view element) {
  if (element == "f64") return pattern_of_bits(std::uint64_t{0x7ff4000000000000U});
  if (element == "f32") return pattern_of_bits(std::uint32_t{0x7fa00000U});
  if (element == "bf16") return pattern_of_bits(std::uint16_t{0x7fa0U});
  if (element == "f16") return pattern_of_bits(std::uint16_t{0x7d00U});
  if (element == "fp8_e5m2") return pattern_of_bits(std::uint8_t{0x7dU});
  if (element == "fp8_e4m3") return pattern_of_bits(std::uint8_t{0x7fU});
  return {};
}

constexpr fill_pattern integer_of(std::string_view element, unsigned char value) {
  if (element == "i8" || element == "u8") return integer_pattern<std::uint8_t>(value);
  if (element == "i16" || element == "u16") return integer_pattern<std::uint16_t>(value);
  if (element == "i32" || element == "u32") return integer_pattern<std::uint32_t>(value);
  if (element == "i64" || element == "u64") return integer_pattern<std::uint64_t>(value);
  if (element == "i4" || element == "u4")
    return integer_pattern<std::uint8_t>(std::size_t{0x11} * (value & 0xfU));
  return {};
}

/// The bytes that one element becomes, over and over. Their number divides 8.
constexpr fill_pattern poison_of_element(std::string_view element, const poison_pattern& pattern) {
  fill_pattern bytes;
  if (pattern.signalling_nan) bytes = signalling_nan_of(element);
  if (pattern.integer_value.has_value() && bytes.size == 0)
    bytes = integer_of(element, *pattern.integer_value);
  if (bytes.size != 0) return bytes;
  if (element == "bool") return pattern_of_bits(static_cast<std::uint8_t>(pattern.byte != 0 ? 1 : 0));
  return pattern_of_bits(std::uint8_t{pattern.byte});
}

/// Writes what poisoned bytes [begin, begin + out.size()) of one instance of a field hold. Where alternatives
/// hold different elements, the last one that is there decides.
template <class Params>
STOWAGE_NOINLINE void write_poison(const content_node<Params>* nodes, const placed_node* placed,
                                   const poison_pattern& pattern, std::size_t begin,
                                   std::span<unsigned char> out) {
  for (unsigned char& byte : out) byte = pattern.byte; // floors, tails and padding in the field
  const std::size_t end = begin + out.size();
  for (std::uint32_t index = 0; index < nodes->length; ++index) {
    const placed_node& node = placed[index];
    if (nodes[index].kind != content_kind::tensor || !node.present || node.bytes == 0) continue;
    const fill_pattern element = poison_of_element(nodes[index].element, pattern);
    const std::size_t first = node.offset < begin ? begin : node.offset;
    const std::size_t last = node.offset + node.bytes < end ? node.offset + node.bytes : end;
    for (std::size_t at = first; at < last; ++at)
      out[at - begin] = element.bytes[(at - node.offset) & (element.size - 1)];
  }
}

/// The first byte behind `begin` at which a tensor of a field begins or ends; the largest number where none
/// does.
template <class Params>
constexpr std::size_t next_border(const content_node<Params>* nodes, const placed_node* placed,
                                  std::size_t begin) {
  std::size_t next = ~std::size_t{0};
  for (std::uint32_t index = 0; index < nodes->length; ++index) {
    for (const std::size_t border : {placed[index].offset, placed[index].offset + placed[index].bytes})
      next = border > begin && border < next ? border : next;
  }
  return next;
}

/// Poisons bytes [begin, end) of one instance of a field, its tail included; waits for the stream.
template <class Fields, class Params, class Backend>
STOWAGE_NOINLINE void poison_range(arena<Fields, Params, Backend>& arena, std::size_t field, std::size_t copy,
                                   std::size_t begin, std::size_t end, const poison_pattern& pattern,
                                   typename std::remove_reference_t<Backend>::stream_type stream) {
  using plan_type = stowage::plan<Fields, Params>;
  std::byte* const address = arena.address(field) + copy * arena.plan().layout(field).stride;
  std::array<placed_node, plan_type::most_nodes> placed;
  arena.plan().place_field(field, placed.data());
  std::array<unsigned char, 65536> chunk; // a copy to a device costs microseconds, however small
  const auto* const nodes = plan_type::table()[field].nodes;
  std::size_t same_until = 0; // every chunk up to here holds the same, since elements divide its size
  for (std::size_t done = begin; done < end; done += chunk.size()) {
    const std::size_t bytes = end - done < chunk.size() ? end - done : chunk.size();
    if (done + bytes > same_until) {
      arena.backend().synchronize(stream); // before the chunk is written again
      write_poison(nodes, placed.data(), pattern, done, std::span<unsigned char>(chunk.data(), bytes));
      const std::size_t border = next_border(nodes, placed.data(), done);
      same_until = done + bytes <= border ? border : 0;
    }
    arena.backend().copy_from_host(stream, address + done, chunk.data(), bytes);
  }
  arena.backend().synchronize(stream); // before the chunk goes
}

} // namespace detail

/// Fills every field of an arena, its copies and tails included, with a pattern: what a step reads without
/// having written it shows. Overwrites all that the fields hold, also what pad_fill and zero_at_construction
/// gave them; padding and guard zones stay. Waits for the stream. Throws usage_error after release and while
/// the stream captures, and what the backend throws. No heap.
template <class Fields, class Params, class Backend>
void poison(arena<Fields, Params, Backend>& arena, const poison_pattern& pattern,
            typename std::remove_reference_t<Backend>::stream_type stream = {}) {
  arena.require_memory("poison");
  if constexpr (capturing_backend<std::remove_reference_t<Backend>>) {
    if (arena.backend().is_capturing(stream))
      detail::refuse_during_capture("poisoning, which waits for the stream,");
  }
  for (std::size_t field = 0; field < plan<Fields, Params>::field_count; ++field) {
    if (arena.address(field) == nullptr) continue;
    const field_layout& layout = arena.plan().layout(field);
    for (std::size_t copy = 0; copy < layout.copies; ++copy)
      detail::poison_range(arena, field, copy, 0, layout.bytes + layout.tail, pattern, stream);
  }
}

} // namespace stowage::inline v0_1
