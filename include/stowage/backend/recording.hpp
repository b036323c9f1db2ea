#pragma once

#include <stowage/backend/concept.hpp>
#include <stowage/backend/host.hpp>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace stowage::inline v0_1 {

/// A call that a backend gets.
enum class operation : unsigned char {
  allocate,
  deallocate,
  zero,
  copy_to_host,
  copy_from_host,
  synchronize
};

/// One call that a recording_backend got.
struct recorded_call {
  /// Which member was called.
  operation what = operation::allocate;
  /// Allocated, freed or backend-side copied memory; null for zero and synchronize.
  void* address = nullptr;
  /// Bytes that the call was about; 0 for zero and synchronize.
  std::size_t bytes = 0;
  /// Alignment that an allocation asked for or had, in bytes; 0 for other calls.
  std::size_t alignment = 0;
  /// The segments of a zero pass.
  std::vector<segment> segments;
};

/// For tests: passes every call on to another backend and remembers what was asked, in order. Not for several
/// threads.
template <backend Inner = host_backend> class recording_backend {
public:
  using stream_type = typename Inner::stream_type;

  recording_backend() = default;
  explicit recording_backend(Inner inner) : inner_(std::move(inner)) {}

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    calls_.reserve(calls_.size() + 1); // so that nothing fails once there is memory
    void* address = inner_.allocate(bytes, alignment);
    calls_.push_back({operation::allocate, address, bytes, alignment, {}});
    return address;
  }
  status deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
    try {
      calls_.push_back({operation::deallocate, address, bytes, alignment, {}});
    } catch (...) { // no memory for the record: the memory is given back all the same
      ++lost_;
    }
    return inner_.deallocate(address, bytes, alignment);
  }
  void zero(stream_type stream, std::span<const segment> segments) {
    calls_.push_back({operation::zero, nullptr, 0, 0, {segments.begin(), segments.end()}});
    inner_.zero(stream, segments);
  }
  void copy_to_host(stream_type stream, void* destination, const void* source, std::size_t bytes) {
    calls_.push_back({operation::copy_to_host, const_cast<void*>(source), bytes, 0, {}});
    inner_.copy_to_host(stream, destination, source, bytes);
  }
  void copy_from_host(stream_type stream, void* destination, const void* source, std::size_t bytes) {
    calls_.push_back({operation::copy_from_host, destination, bytes, 0, {}});
    inner_.copy_from_host(stream, destination, source, bytes);
  }
  void synchronize(stream_type stream) {
    calls_.push_back({operation::synchronize, nullptr, 0, 0, {}});
    inner_.synchronize(stream);
  }

  /// Every call since construction or clear().
  [[nodiscard]] const std::vector<recorded_call>& calls() const { return calls_; }
  /// How many of the calls were of one kind.
  [[nodiscard]] std::size_t count(operation what) const {
    std::size_t number = 0;
    for (const recorded_call& call : calls_) number += call.what == what ? 1U : 0U;
    return number;
  }
  /// Forgets the calls; what was allocated stays so.
  void clear() { calls_.clear(); }
  /// Calls that could not be recorded for want of memory.
  [[nodiscard]] std::size_t lost() const { return lost_; }

private:
  Inner inner_{};
  std::vector<recorded_call> calls_;
  std::size_t lost_ = 0;
};
/// Without an argument it is over host memory.
recording_backend() -> recording_backend<>;
/// With one it is over that backend.
template <backend Inner> recording_backend(Inner) -> recording_backend<Inner>;
static_assert(backend<recording_backend<>>);

} // namespace stowage::inline v0_1
