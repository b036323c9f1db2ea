#pragma once

#include <stowage/detail/cold.hpp>

#include <cstddef>

namespace stowage::inline v0_1::detail {

/// A range of bytes of one field.
struct byte_range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Byte ranges of one field: sorted, overlaps and neighbours merged.
template <std::size_t Capacity> class byte_range_list {
public:
  STOWAGE_NOINLINE constexpr void add(std::size_t begin, std::size_t end) {
    if (begin >= end) return;
    std::size_t first = 0;
    while (first < count_ && ranges_[first].end < begin) ++first;
    std::size_t last = first;
    while (last < count_ && ranges_[last].begin <= end) {
      if (ranges_[last].begin < begin) begin = ranges_[last].begin;
      if (ranges_[last].end > end) end = ranges_[last].end;
      ++last;
    }
    if (last == first) { // nothing to merge with: make room
      for (std::size_t from = count_; from > first; --from) ranges_[from] = ranges_[from - 1];
      ++count_;
    } else { // [first, last) becomes one
      std::size_t to = first + 1;
      for (std::size_t from = last; from < count_; ++from) ranges_[to++] = ranges_[from];
      count_ -= last - first - 1;
    }
    ranges_[first] = {begin, end};
  }

  /// Takes a range out again.
  constexpr void remove(std::size_t begin, std::size_t end) {
    const byte_range_list before = *this;
    count_ = 0;
    for (const byte_range& kept : before) {
      add(kept.begin, kept.end < begin ? kept.end : begin);
      add(kept.begin > end ? kept.begin : end, kept.end);
    }
  }

  [[nodiscard]] constexpr const byte_range* begin() const { return ranges_; }
  [[nodiscard]] constexpr const byte_range* end() const { return ranges_ + count_; }

private:
  byte_range ranges_[Capacity > 0 ? Capacity : 1]{};
  std::size_t count_ = 0;
};

} // namespace stowage::inline v0_1::detail
