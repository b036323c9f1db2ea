#pragma once

// In builds with AddressSanitizer, host memory of an arena that belongs to no field is forbidden: the padding
// between fields and copies, and guard zones. Who touches it is stopped there, with a report. In other builds
// nothing of this is compiled.

/// 1 in builds with AddressSanitizer, 0 in others. A program that writes to padding on purpose defines it as 0,
/// in all its files.
#if !defined(STOWAGE_ADDRESS_SANITIZER)
#if defined(__SANITIZE_ADDRESS__)
#define STOWAGE_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STOWAGE_ADDRESS_SANITIZER 1
#endif
#endif
#if !defined(STOWAGE_ADDRESS_SANITIZER)
#define STOWAGE_ADDRESS_SANITIZER 0
#endif
#endif

#if STOWAGE_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>

#include <concepts>
#include <cstddef>
#include <mutex>
#endif

namespace stowage::inline v0_1 {

struct host_stream;

namespace detail {

#if STOWAGE_ADDRESS_SANITIZER

/// Memory of which AddressSanitizer knows: that of backends with the host's stream.
template <class Arena>
inline constexpr bool in_host_memory = std::same_as<typename Arena::stream_type, host_stream>;

/// Whether code outside the library may be handed ranges that run through padding.
template <class Arena> inline constexpr bool may_touch_padding = !in_host_memory<Arena>;

/// Calls visit(address, bytes) for what lies between the fields of an arena, and between copies.
template <class Arena, class Visit> void visit_padding(const Arena& arena, const Visit& visit) {
  if (arena.slab() != nullptr) {
    arena.plan().visit_gaps([&](std::size_t, std::size_t begin, std::size_t end) {
      if (begin != end) visit(arena.slab() + begin, end - begin);
    });
    return;
  }
  for (std::size_t field = 0; field < Arena::plan_type::field_count; ++field) { // allocations of their own
    const auto& layout = arena.plan().layout(field);
    if (arena.address(field) == nullptr) continue;
    const std::size_t taken = layout.bytes + layout.tail;
    for (std::size_t copy = 0; copy + 1 < layout.copies && taken != layout.stride; ++copy)
      visit(arena.address(field) + copy * layout.stride + taken, layout.stride - taken);
  }
}

template <class Arena> void forbid_padding(const Arena& arena) {
  if constexpr (in_host_memory<Arena>) {
    visit_padding(arena, [](const std::byte* address, std::size_t bytes) {
      __asan_poison_memory_region(address, bytes);
    });
  }
}
template <class Arena> void permit_padding(const Arena& arena) {
  if constexpr (in_host_memory<Arena>) {
    visit_padding(arena, [](const std::byte* address, std::size_t bytes) {
      __asan_unpoison_memory_region(address, bytes);
    });
  }
}

#else

template <class Arena> inline constexpr bool may_touch_padding = true;
template <class Arena> constexpr void forbid_padding(const Arena&) {}
template <class Arena> constexpr void permit_padding(const Arena&) {}

#endif

#if STOWAGE_ADDRESS_SANITIZER
/// Which arenas are in use by passes: the objects themselves, on the stacks of their threads, are the list.
/// Passes over different fields may run at once, and the sink of a scan may run one: the last one forbids.
struct padding_user {
  const void* arena;
  padding_user* next = nullptr;
};
struct padding_users {
  std::mutex lock;
  padding_user* first = nullptr;
};
inline padding_users users_of_padding;
#endif

/// While it lives, the library's own passes may touch padding: a segment of several fields runs through it.
template <class Arena> class padding_access {
public:
#if STOWAGE_ADDRESS_SANITIZER
  explicit padding_access(const Arena& arena) : arena_(arena), self_{&arena} {
    const std::scoped_lock guard(users_of_padding.lock);
    self_.next = users_of_padding.first;
    users_of_padding.first = &self_;
    permit_padding(arena_);
  }
  ~padding_access() {
    const std::scoped_lock guard(users_of_padding.lock);
    bool in_use = false;
    for (padding_user** at = &users_of_padding.first; *at != nullptr;) {
      if (*at == &self_) {
        *at = self_.next;
        continue;
      }
      in_use = in_use || (*at)->arena == self_.arena;
      at = &(*at)->next;
    }
    if (!in_use) forbid_padding(arena_);
  }
  padding_access(const padding_access&) = delete;
  padding_access& operator=(const padding_access&) = delete;

private:
  const Arena& arena_;
  padding_user self_;
#else
  explicit constexpr padding_access(const Arena&) {}
#endif
};
template <class Arena> padding_access(const Arena&) -> padding_access<Arena>;

} // namespace detail
} // namespace stowage::inline v0_1
