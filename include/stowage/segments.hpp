#pragma once

#include <stowage/detail/cold.hpp>
#include <stowage/error.hpp>

#include <cstddef>
#include <new>
#include <span>

namespace stowage::inline v0_1 {

/// One contiguous range of memory. Backends get passes as lists of these and never see an empty or null one.
struct segment {
  /// Its first byte.
  std::byte* address = nullptr;
  /// Its length.
  std::size_t bytes = 0;

  friend constexpr bool operator==(const segment&, const segment&) = default;
};

namespace detail {

/// The capacity of a list is worked out from the field list; were that wrong, nothing may be overwritten.
[[noreturn]] STOWAGE_COLD inline void throw_too_many_segments() {
  throw usage_error(
      "stowage: a pass has more segments than its field list allows; this is a fault of the library");
}

/// The segments of one pass, merged as they come: a segment that begins where its predecessor ends, or behind
/// nothing but alignment padding, extends it. On the stack; a pass uses no heap.
template <std::size_t Capacity> class segment_list {
public:
  /// `begin_of_field` and `end_of_field` say that the range touches the start and the end of its field;
  /// `position` is the place of the field among those that take memory, and only neighbours in one slab are
  /// bridged.
  void add(std::byte* address, std::size_t bytes, std::size_t position, bool begin_of_field,
           bool end_of_field, bool one_slab) {
    if (bytes == 0) return;
    if (count_ != 0) {
      segment& last = *at(count_ - 1);
      const bool adjacent = (one_slab || position == last_position_) && last.address + last.bytes == address;
      const bool behind_padding =
          one_slab && begin_of_field && last_ends_its_field_ && position == last_position_ + 1;
      if (adjacent || behind_padding) {
        last.bytes = static_cast<std::size_t>(address - last.address) + bytes;
        last_position_ = position;
        last_ends_its_field_ = end_of_field;
        return;
      }
    }
    if (count_ == Capacity) throw_too_many_segments();
    ::new (static_cast<void*>(storage_ + count_++ * sizeof(segment))) segment{address, bytes};
    last_position_ = position;
    last_ends_its_field_ = end_of_field;
  }

  [[nodiscard]] std::span<const segment> view() const {
    return {std::launder(reinterpret_cast<const segment*>(storage_)), count_};
  }

private:
  [[nodiscard]] segment* at(std::size_t index) {
    return std::launder(reinterpret_cast<segment*>(storage_)) + index;
  }

  // Raw storage: a pass of three segments does not pay for clearing room for fifty.
  alignas(segment) std::byte storage_[(Capacity > 0 ? Capacity : 1) * sizeof(segment)];
  std::size_t count_ = 0;
  std::size_t last_position_ = 0;
  bool last_ends_its_field_ = false;
};

} // namespace detail
} // namespace stowage::inline v0_1
