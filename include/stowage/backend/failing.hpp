#pragma once

#include <stowage/backend/concept.hpp>
#include <stowage/backend/host.hpp>
#include <stowage/backend/recording.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace stowage::inline v0_1 {

/// For tests: passes calls on to another backend, but the k-th call of a kind fails, with the error that a
/// real backend would give. A failing deallocate still gives the memory back, so that tests leak nothing.
template <backend Inner = host_backend> class failing_backend {
public:
  using stream_type = typename Inner::stream_type;
  /// Native code of the failures that are made up.
  static constexpr int failure_code = 719;

  failing_backend() = default;
  explicit failing_backend(Inner inner) : inner_(std::move(inner)) {}

  /// The `number`-th call of this kind from now on fails, counted from 1; 0 takes that back.
  void fail(operation what, std::size_t number) {
    wanted_[static_cast<std::size_t>(what)] = number;
    seen_[static_cast<std::size_t>(what)] = 0;
  }
  /// Calls of this kind since the last fail() for it.
  [[nodiscard]] std::size_t count(operation what) const { return seen_[static_cast<std::size_t>(what)]; }
  /// Allocations that were not given back.
  [[nodiscard]] std::size_t outstanding() const { return outstanding_; }

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    if (fails(operation::allocate)) throw out_of_memory(bytes, "made to fail by failing_backend");
    void* address = inner_.allocate(bytes, alignment);
    ++outstanding_;
    return address;
  }
  status deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
    --outstanding_;
    const status given_back = inner_.deallocate(address, bytes, alignment);
    if (fails(operation::deallocate)) return failure{"deallocate", "", failure_code, "made to fail", bytes};
    return given_back;
  }
  void zero(stream_type stream, std::span<const segment> segments) {
    if (fails(operation::zero)) throw_failure("zero");
    inner_.zero(stream, segments);
  }
  void copy_to_host(stream_type stream, void* destination, const void* source, std::size_t bytes) {
    if (fails(operation::copy_to_host)) throw_failure("copy_to_host");
    inner_.copy_to_host(stream, destination, source, bytes);
  }
  void copy_from_host(stream_type stream, void* destination, const void* source, std::size_t bytes) {
    if (fails(operation::copy_from_host)) throw_failure("copy_from_host");
    inner_.copy_from_host(stream, destination, source, bytes);
  }
  void synchronize(stream_type stream) {
    if (fails(operation::synchronize)) throw_failure("synchronize");
    inner_.synchronize(stream);
  }

private:
  [[nodiscard]] bool fails(operation what) noexcept {
    const auto kind = static_cast<std::size_t>(what);
    return ++seen_[kind] == wanted_[kind];
  }
  [[noreturn]] static void throw_failure(const char* call) {
    throw backend_error("stowage: " + std::string(call) + " was made to fail by failing_backend",
                        failure_code);
  }

  Inner inner_{};
  std::array<std::size_t, 6> wanted_{};
  std::array<std::size_t, 6> seen_{};
  std::size_t outstanding_ = 0;
};
/// Without an argument it is over host memory.
failing_backend() -> failing_backend<>;
/// With one it is over that backend.
template <backend Inner> failing_backend(Inner) -> failing_backend<Inner>;
static_assert(backend<failing_backend<>>);

} // namespace stowage::inline v0_1
