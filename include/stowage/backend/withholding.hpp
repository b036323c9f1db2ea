#pragma once

#include <stowage/backend/concept.hpp>
#include <stowage/backend/host.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace stowage::inline v0_1 {

/// For the zeroing experiment and for tests: passes calls on to another backend, but leaves given memory out
/// of the zero passes, as if no pass cleared it, and remembers what the passes asked to clear. Not for
/// several threads. Uses the heap.
template <backend Inner = host_backend> class withholding_backend {
public:
  using stream_type = typename Inner::stream_type;

  withholding_backend() = default;
  explicit withholding_backend(Inner inner) : inner_(std::move(inner)) {}

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return inner_.allocate(bytes, alignment);
  }
  status deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
    return inner_.deallocate(address, bytes, alignment);
  }
  void zero(stream_type stream, std::span<const segment> segments) {
    asked_.insert(asked_.end(), segments.begin(), segments.end());
    if (withheld_.empty()) {
      inner_.zero(stream, segments);
      return;
    }
    passed_on_.clear();
    for (const segment& range : segments) pass_on(range);
    if (!passed_on_.empty()) inner_.zero(stream, std::span<const segment>(passed_on_));
  }
  void copy_to_host(stream_type stream, void* destination, const void* source, std::size_t bytes) {
    inner_.copy_to_host(stream, destination, source, bytes);
  }
  void copy_from_host(stream_type stream, void* destination, const void* source, std::size_t bytes) {
    inner_.copy_from_host(stream, destination, source, bytes);
  }
  void synchronize(stream_type stream) { inner_.synchronize(stream); }
  [[nodiscard]] bool is_capturing(stream_type stream)
    requires capturing_backend<Inner>
  {
    return inner_.is_capturing(stream);
  }

  /// From now on no zero pass clears any of this memory; nothing is withheld where the list is empty. Ranges
  /// may touch, but not overlap. Takes the place of the list before.
  void withhold(std::span<const segment> ranges) {
    withheld_.assign(ranges.begin(), ranges.end());
    // By address, so that what is left of a segment is found from left to right.
    std::sort(withheld_.begin(), withheld_.end(), [](const segment& one, const segment& other) {
      return number(one.address) < number(other.address);
    });
  }

  /// Every segment that zero passes asked to clear since construction or forget(), withheld or not, in order.
  [[nodiscard]] const std::vector<segment>& asked() const { return asked_; }
  /// Empties the list that asked() gives.
  void forget() { asked_.clear(); }

  /// The backend that does the work.
  [[nodiscard]] Inner& inner() { return inner_; }

private:
  // Addresses as numbers: those of different allocations have no order otherwise.
  static std::uintptr_t number(const std::byte* address) { return reinterpret_cast<std::uintptr_t>(address); }

  /// Passes on what is left of a segment.
  void pass_on(segment range) {
    for (const segment& hole : withheld_) {
      const std::uintptr_t begin = number(range.address);
      const std::uintptr_t end = begin + range.bytes;
      const std::uintptr_t hole_begin = number(hole.address);
      const std::uintptr_t hole_end = hole_begin + hole.bytes;
      if (hole_end <= begin) continue;
      if (end <= hole_begin) break;
      if (begin < hole_begin) passed_on_.push_back({range.address, hole_begin - begin});
      if (end <= hole_end) return;
      range = {range.address + (hole_end - begin), end - hole_end};
    }
    passed_on_.push_back(range);
  }

  Inner inner_{};
  std::vector<segment> withheld_;
  std::vector<segment> passed_on_;
  std::vector<segment> asked_;
};
/// Without an argument it is over host memory.
withholding_backend() -> withholding_backend<>;
/// With one it is over that backend.
template <backend Inner> withholding_backend(Inner) -> withholding_backend<Inner>;
static_assert(backend<withholding_backend<>>);

} // namespace stowage::inline v0_1
