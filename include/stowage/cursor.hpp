#pragma once

#include <stowage/detail/cold.hpp>
#include <stowage/error.hpp>
#include <stowage/handle.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stowage::inline v0_1 {

namespace detail {

[[noreturn]] STOWAGE_COLD inline void throw_no_slab(std::string_view slab, std::size_t wanted) {
  message text;
  text << "stowage: " << wanted << " bytes wanted from slab '" << slab << "', which is absent";
  throw usage_error(text.c_str());
}
[[noreturn]] STOWAGE_COLD inline void throw_slab_exhausted(std::string_view slab, std::size_t wanted,
                                                           std::size_t alignment, std::size_t at,
                                                           std::size_t size) {
  message text;
  text << "stowage: " << wanted << " bytes (aligned to " << alignment << ") wanted from slab '" << slab
       << "' at " << at << ", its size is " << size;
  throw bounds_error(text.c_str());
}

} // namespace detail

/// Hands out the bytes of a slab one after the other, never overlapping, from any number of threads without a
/// lock. A failed take leaves the cursor as it was; no request can wrap around. Nothing is given back but all
/// at once. Not part of stowage.hpp: `<atomic>` costs more to compile than the rest.
class cursor {
public:
  /// A slab of `bytes` at `address`; null for an absent one. The name is for messages and must outlive the
  /// cursor.
  cursor(std::byte* address, std::size_t bytes, std::string_view name)
      : address_(address), size_(bytes), name_(name) {}
  /// The memory of a field, under its name.
  template <class Inner>
  explicit cursor(const handle_base<Inner>& field)
      : cursor(field.memory().data(), field.bytes(), field.name()) {}
  cursor(const cursor&) = delete;
  cursor& operator=(const cursor&) = delete;
  ~cursor() = default;

  /// The next `bytes`, their address a multiple of `alignment`, a power of two. Empty for 0 bytes, which are
  /// never handed out. Throws usage_error where the slab is absent, bounds_error where it is exhausted.
  [[nodiscard]] std::span<std::byte> take(std::size_t bytes, std::size_t alignment = 1) {
    if (address_ == nullptr) detail::throw_no_slab(name_, bytes);
    const std::span<std::byte> taken = try_take(bytes, alignment);
    if (taken.data() == nullptr && bytes != 0)
      detail::throw_slab_exhausted(name_, bytes, alignment, used(), size_);
    return taken;
  }

  /// The same without exceptions: empty with a null address where the slab is absent or exhausted.
  [[nodiscard]] std::span<std::byte> try_take(std::size_t bytes, std::size_t alignment = 1) noexcept {
    if (address_ == nullptr || bytes == 0 || alignment == 0) return {};
    std::size_t used = used_.load(std::memory_order_relaxed);
    for (;;) {
      const std::size_t address = reinterpret_cast<std::uintptr_t>(address_) + used;
      const std::size_t padding = (alignment - address % alignment) % alignment;
      if (padding > size_ - used || bytes > size_ - used - padding) return {};
      if (used_.compare_exchange_weak(used, used + padding + bytes, std::memory_order_relaxed)) {
        raise_high_water(used + padding + bytes);
        return {address_ + used + padding, bytes};
      }
    }
  }

  /// Makes the whole slab available again. What was taken must not be used any more; not together with take.
  void reset() noexcept { used_.store(0, std::memory_order_relaxed); }

  /// Bytes handed out, padding included.
  [[nodiscard]] std::size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  /// Bytes that are left.
  [[nodiscard]] std::size_t remaining() const noexcept { return size_ - used(); }
  /// The most bytes that were ever handed out between resets.
  [[nodiscard]] std::size_t high_water() const noexcept {
    return high_water_.load(std::memory_order_relaxed);
  }
  /// Bytes of the whole slab.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
  void raise_high_water(std::size_t bytes) noexcept {
    std::size_t highest = high_water_.load(std::memory_order_relaxed);
    while (highest < bytes && !high_water_.compare_exchange_weak(highest, bytes, std::memory_order_relaxed)) {
    }
  }

  std::byte* address_;
  std::size_t size_;
  std::string_view name_;
  std::atomic<std::size_t> used_{0};
  std::atomic<std::size_t> high_water_{0};
};

} // namespace stowage::inline v0_1
