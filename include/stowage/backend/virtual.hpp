#pragma once

#include <stowage/backend/concept.hpp>
#include <stowage/backend/elastic.hpp>
#include <stowage/detail/checked.hpp>
#include <stowage/detail/cold.hpp>
#include <stowage/error.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace stowage::inline v0_1 {

/// Where a virtual backend's addresses and memory come from. Addresses and bytes are multiples of the
/// granularity.
///
///   granularity(), largest_piece()      bytes; a piece of memory is no larger than this
///   reserve(bytes, alignment)           addresses without memory; throws
///   unreserve(address, bytes)           gives them back
///   map(address, bytes)                 puts one piece of memory there; throws out_of_memory or backend_error,
///                                       and then there is none
///   unmap(address, bytes)               gives one whole piece back
///   keep(stream, address, piece, kept, result)
///                                       gives a piece back but for the kept parts, which keep their contents;
///                                       appends what is mapped afterwards to the result, which has room for it.
///                                       The whole piece where there is no memory to do it with
///   allocate_host(bytes)                host memory for saved contents; throws
///   deallocate_host(address, bytes)     gives it back
template <class Type, class Stream>
concept page_source =
    requires(Type& pages, Stream stream, std::byte* address, std::size_t number, mapped_range piece,
             std::span<const mapped_range> kept, std::vector<mapped_range>& result) {
      { pages.granularity() } -> std::same_as<std::size_t>;
      { pages.largest_piece() } -> std::same_as<std::size_t>;
      { pages.reserve(number, number) } -> std::same_as<std::byte*>;
      { pages.unreserve(address, number) } noexcept -> std::same_as<status>;
      { pages.map(address, number) } -> std::same_as<void>;
      { pages.unmap(address, number) } noexcept -> std::same_as<status>;
      { pages.keep(stream, address, piece, kept, result) } noexcept -> std::same_as<status>;
      { pages.allocate_host(number) } -> std::same_as<std::byte*>;
      { pages.deallocate_host(address, number) } noexcept -> std::same_as<status>;
    };

namespace detail {

/// The addresses of one slab, and what is mapped and saved there.
struct virtual_slab {
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  /// Each was mapped by one call, and is given back by one; sorted.
  std::vector<mapped_range> pieces;
  std::byte* host = nullptr;
  std::size_t host_bytes = 0;
  /// What the host memory holds, one behind the other.
  std::vector<mapped_range> saved;
};

[[noreturn]] STOWAGE_COLD inline void refuse_copy(std::size_t bytes) {
  message text;
  text << "stowage: " << bytes
       << " bytes to copy are in a virtual slab where no memory is mapped: its arena is asleep, or smaller "
          "now";
  throw usage_error(text.c_str());
}
[[noreturn]] STOWAGE_COLD inline void refuse_unknown_slab() {
  throw usage_error("stowage: this address is not the start of a reservation of this backend");
}
[[noreturn]] STOWAGE_COLD inline void refuse_ranges(std::size_t offset, std::size_t bytes,
                                                    std::size_t reserved, std::size_t granularity) {
  message text;
  text << "stowage: " << bytes << " bytes at " << offset << " cannot be mapped: ranges are multiples of "
       << granularity << ", sorted, apart, and inside of the " << reserved << " bytes reserved";
  throw usage_error(text.c_str());
}

/// What of `whole` lies in none of the sorted ranges, in pieces of at most `largest`; appended to `result`.
inline void append_rest(mapped_range whole, std::span<const mapped_range> ranges, std::size_t largest,
                        std::vector<mapped_range>& result) {
  const auto append = [&](std::size_t begin, std::size_t end) {
    for (; begin < end; begin += std::min(largest, end - begin))
      result.push_back({begin, std::min(largest, end - begin)});
  };
  std::size_t begin = whole.offset;
  for (const mapped_range& range : ranges) {
    if (range.end() <= begin) continue;
    if (range.offset >= whole.end()) break;
    append(begin, range.offset);
    begin = range.end();
  }
  append(begin, whole.end());
}

/// What of `whole` lies in the sorted ranges.
inline void overlap(mapped_range whole, std::span<const mapped_range> ranges,
                    std::vector<mapped_range>& result) {
  result.clear();
  for (const mapped_range& range : ranges) {
    const std::size_t begin = std::max(range.offset, whole.offset);
    const std::size_t end = std::min(range.end(), whole.end());
    if (begin < end) result.push_back({begin, end - begin});
  }
}

[[noreturn]] STOWAGE_COLD inline void throw_failed_status(const status& failed) {
  throw backend_error("stowage: " + failed.message(), failed.error().code);
}

inline std::size_t bytes_of(std::span<const mapped_range> ranges) {
  std::size_t bytes = 0;
  for (const mapped_range& range : ranges) bytes += range.bytes;
  return bytes;
}

} // namespace detail

/// A backend for elastic arenas: clears and copies as `Inner` does, and has addresses and memory from
/// `Pages`. Without an elastic arena it is an ordinary backend that maps what it reserves. Copies of it share
/// their slabs. Safe from several threads, but not for two calls about one slab.
///
/// `copy_to_host` and `copy_from_host` refuse with usage_error what touches reserved addresses without memory.
template <backend Inner, class Pages>
  requires page_source<Pages, typename Inner::stream_type>
class virtual_backend_over {
public:
  using stream_type = typename Inner::stream_type;

  /// Clears and copies by the one, maps by the other.
  explicit virtual_backend_over(Inner inner, Pages pages)
      : inner_(std::move(inner)), state_(std::make_shared<state>(std::move(pages))) {}

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    void* const address = reserve(bytes, alignment);
    try {
      const mapped_range all{0, slab_at(address).bytes};
      map({}, address, {&all, 1});
    } catch (...) {
      static_cast<void>(deallocate(address, bytes, alignment));
      throw;
    }
    return address;
  }

  /// Gives everything back: memory, saved contents, addresses.
  status deallocate(void* address, std::size_t, std::size_t) noexcept {
    const std::unique_ptr<detail::virtual_slab> slab = take(address);
    if (slab == nullptr) return failure{"deallocate", {}, 0, "not an address of this backend", 0};
    status first_failure;
    bool empty = true;
    for (const mapped_range& piece : slab->pieces) {
      const status given_back = state_->pages.unmap(slab->address + piece.offset, piece.bytes);
      empty = empty && given_back.ok();
      first_failure.merge(given_back, {});
    }
    if (slab->host != nullptr)
      first_failure.merge(state_->pages.deallocate_host(slab->host, slab->host_bytes), {});
    if (empty) first_failure.merge(state_->pages.unreserve(slab->address, slab->bytes), {});
    return first_failure;
  }

  void zero(stream_type stream, std::span<const segment> segments) { inner_.zero(stream, segments); }
  void copy_to_host(stream_type stream, void* destination, const void* source, std::size_t bytes) {
    require_mapped(source, bytes);
    inner_.copy_to_host(stream, destination, source, bytes);
  }
  void copy_from_host(stream_type stream, void* destination, const void* source, std::size_t bytes) {
    require_mapped(destination, bytes);
    inner_.copy_from_host(stream, destination, source, bytes);
  }
  void synchronize(stream_type stream) { inner_.synchronize(stream); }
  [[nodiscard]] bool is_capturing(stream_type stream)
    requires capturing_backend<Inner>
  {
    return inner_.is_capturing(stream);
  }

  [[nodiscard]] std::size_t granularity() const { return state_->pages.granularity(); }

  /// Throws out_of_memory where there are not so many addresses.
  [[nodiscard]] void* reserve(std::size_t bytes, std::size_t alignment) {
    std::size_t rounded = 0;
    if (!detail::checked_round_up(bytes, granularity(), rounded))
      throw out_of_memory(bytes, "no address range is so long");
    auto slab = std::make_unique<detail::virtual_slab>();
    const std::scoped_lock guard(state_->lock);
    state_->slabs.reserve(state_->slabs.size() + 1);
    slab->bytes = rounded;
    slab->address = state_->pages.reserve(rounded, std::max(alignment, granularity()));
    state_->slabs.push_back(std::move(slab));
    return state_->slabs.back()->address;
  }

  void map(stream_type stream, void* address, std::span<const mapped_range> wanted) {
    detail::virtual_slab& slab = slab_at(address);
    check(slab, wanted);
    std::vector<mapped_range> missing;
    for (const mapped_range& range : wanted)
      detail::append_rest(range, slab.pieces, state_->pages.largest_piece(), missing);
    // Room for everything first, so that nothing is forgotten for want of host memory.
    slab.pieces.reserve(slab.pieces.size() + missing.size());
    std::vector<mapped_range> after;
    after.reserve(slab.pieces.size() + missing.size() + wanted.size());
    std::vector<mapped_range> kept;
    kept.reserve(wanted.size());

    map_missing(slab, missing);
    status first_failure;
    for (const mapped_range& piece : slab.pieces) {
      detail::overlap(piece, wanted, kept);
      if (kept.size() == 1 && kept.front() == piece) {
        after.push_back(piece);
      } else if (kept.empty()) {
        const status given_back = state_->pages.unmap(slab.address + piece.offset, piece.bytes);
        if (!given_back) after.push_back(piece);
        first_failure.merge(given_back, {});
      } else {
        first_failure.merge(state_->pages.keep(stream, slab.address, piece, kept, after), {});
      }
    }
    slab.pieces.swap(after);
    if (!first_failure) detail::throw_failed_status(first_failure);
  }

  [[nodiscard]] bool maps(const void* address, std::span<const mapped_range> ranges) const {
    const detail::virtual_slab& slab = slab_at(address);
    return std::all_of(ranges.begin(), ranges.end(),
                       [&](const mapped_range& range) { return is_mapped(slab, range); });
  }
  [[nodiscard]] std::size_t mapped_bytes(const void* address) const {
    return detail::bytes_of(slab_at(address).pieces);
  }

  void save(stream_type stream, void* address) {
    detail::virtual_slab& slab = slab_at(address);
    const std::size_t bytes = detail::bytes_of(slab.pieces);
    std::vector<mapped_range> saved = slab.pieces;
    if (bytes > slab.host_bytes) {
      if (const status given_back = forget(address); !given_back) detail::throw_failed_status(given_back);
      slab.host = state_->pages.allocate_host(bytes);
      slab.host_bytes = bytes;
    }
    slab.saved.clear();
    std::size_t done = 0;
    for (const mapped_range& piece : saved) {
      inner_.copy_to_host(stream, slab.host + done, slab.address + piece.offset, piece.bytes);
      done += piece.bytes;
    }
    inner_.synchronize(stream);
    slab.saved.swap(saved);
  }
  void restore(stream_type stream, void* address) {
    const detail::virtual_slab& slab = slab_at(address);
    std::size_t done = 0;
    for (const mapped_range& piece : slab.saved) {
      if (!is_mapped(slab, piece)) detail::refuse_copy(piece.bytes);
      inner_.copy_from_host(stream, slab.address + piece.offset, slab.host + done, piece.bytes);
      done += piece.bytes;
    }
    inner_.synchronize(stream);
  }
  [[nodiscard]] std::size_t saved_bytes(const void* address) const { return slab_at(address).host_bytes; }
  status forget(void* address) noexcept {
    detail::virtual_slab* const slab = find(address);
    if (slab == nullptr || slab->host == nullptr) return {};
    const status given_back = state_->pages.deallocate_host(slab->host, slab->host_bytes);
    if (!given_back) return given_back;
    slab->host = nullptr;
    slab->host_bytes = 0;
    slab->saved.clear();
    return {};
  }

  /// What clears and copies.
  [[nodiscard]] Inner& inner() { return inner_; }
  /// The same, unchangeable.
  [[nodiscard]] const Inner& inner() const { return inner_; }
  /// Where addresses and memory come from.
  [[nodiscard]] Pages& pages() { return state_->pages; }

private:
  struct state {
    explicit state(Pages from) : pages(std::move(from)) {}
    Pages pages;
    std::mutex lock; // of the list; each slab has one user
    std::vector<std::unique_ptr<detail::virtual_slab>> slabs;
  };

  // Addresses as numbers: those of different reservations have no order otherwise.
  static std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

  [[nodiscard]] detail::virtual_slab* find(const void* address) const noexcept {
    const std::scoped_lock guard(state_->lock);
    for (const auto& slab : state_->slabs) {
      if (slab->address == address) return slab.get();
    }
    return nullptr;
  }
  [[nodiscard]] detail::virtual_slab& slab_at(const void* address) const {
    detail::virtual_slab* const slab = find(address);
    if (slab == nullptr) detail::refuse_unknown_slab();
    return *slab;
  }
  [[nodiscard]] std::unique_ptr<detail::virtual_slab> take(const void* address) noexcept {
    const std::scoped_lock guard(state_->lock);
    for (auto& slab : state_->slabs) {
      if (slab->address != address) continue;
      std::swap(slab, state_->slabs.back());
      std::unique_ptr<detail::virtual_slab> taken = std::move(state_->slabs.back());
      state_->slabs.pop_back();
      return taken;
    }
    return nullptr;
  }

  void check(const detail::virtual_slab& slab, std::span<const mapped_range> wanted) const {
    const std::size_t granule = granularity();
    std::size_t least = 0; // what the next range starts at, at least
    for (const mapped_range& range : wanted) {
      if (range.bytes == 0 || range.offset % granule != 0 || range.bytes % granule != 0 ||
          range.offset < least || range.offset > slab.bytes || range.bytes > slab.bytes - range.offset)
        detail::refuse_ranges(range.offset, range.bytes, slab.bytes, granule);
      least = range.end() + granule;
    }
  }

  static bool is_mapped(const detail::virtual_slab& slab, mapped_range range) {
    for (const mapped_range& piece : slab.pieces) {
      if (range.bytes == 0) break;
      if (piece.end() <= range.offset) continue;
      if (piece.offset > range.offset) return false;
      const std::size_t next = std::min(piece.end(), range.end());
      range = {next, range.end() - next};
    }
    return range.bytes == 0;
  }

  /// All or nothing.
  void map_missing(detail::virtual_slab& slab, std::span<const mapped_range> missing) {
    const std::size_t before = slab.pieces.size();
    try {
      for (const mapped_range& piece : missing) {
        state_->pages.map(slab.address + piece.offset, piece.bytes);
        slab.pieces.push_back(piece);
      }
    } catch (...) {
      for (std::size_t index = slab.pieces.size(); index-- != before;) {
        const mapped_range piece = slab.pieces[index];
        // What cannot be given back now is known, and is given back with the next call.
        if (state_->pages.unmap(slab.address + piece.offset, piece.bytes))
          slab.pieces.erase(slab.pieces.begin() + static_cast<std::ptrdiff_t>(index));
      }
      sort(slab);
      throw;
    }
    sort(slab);
  }

  static void sort(detail::virtual_slab& slab) {
    std::sort(slab.pieces.begin(), slab.pieces.end(),
              [](const mapped_range& one, const mapped_range& other) { return one.offset < other.offset; });
  }

  void require_mapped(const void* address, std::size_t bytes) const {
    const std::scoped_lock guard(state_->lock);
    for (const auto& slab : state_->slabs) {
      const std::uintptr_t begin = number(slab->address);
      if (number(address) < begin || number(address) - begin >= slab->bytes) continue;
      const std::size_t offset = number(address) - begin;
      if (bytes > slab->bytes - offset || !is_mapped(*slab, {offset, bytes})) detail::refuse_copy(bytes);
    }
  }

  Inner inner_;
  std::shared_ptr<state> state_;
};

} // namespace stowage::inline v0_1
