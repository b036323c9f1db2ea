#pragma once

#include <stowage/backend/host.hpp>
#include <stowage/backend/virtual.hpp>
#include <stowage/detail/checked.hpp>
#include <stowage/detail/cold.hpp>
#include <stowage/error.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace stowage::inline v0_1 {

/// The system's calls that host memory is mapped with; a test puts others in their place.
struct host_calls {
  /// mmap
  void* (*map)(void*, std::size_t, int, int, int, off_t) = ::mmap;
  /// munmap
  int (*unmap)(void*, std::size_t) = ::munmap;
  /// mprotect
  int (*protect)(void*, std::size_t, int) = ::mprotect;
};

/// How a virtual_host_backend is made.
struct virtual_host_options {
  /// Bytes that memory comes in: a multiple of the system's page, which 0 stands for.
  std::size_t granularity = 0;
  /// What memory is mapped with.
  host_calls calls{};
};

/// Host addresses and memory from the system's virtual memory. Memory is taken when it is first touched, and
/// given back at once.
class host_pages {
public:
  /// Throws usage_error for a granularity that is no power of two or smaller than a page.
  explicit host_pages(const virtual_host_options& options = {})
      : calls_(options.calls), page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
        granularity_(options.granularity == 0 ? page_ : options.granularity) {
    if (granularity_ % page_ == 0 && detail::is_power_of_two(granularity_)) return;
    detail::message text;
    text << "stowage: a granularity of " << granularity_
         << " bytes wanted; it is a power of two and a multiple of the page, " << page_;
    throw usage_error(text.c_str());
  }

  [[nodiscard]] std::size_t granularity() const { return granularity_; }
  [[nodiscard]] std::size_t largest_piece() const {
    return detail::largest_size / granularity_ * granularity_;
  }

  [[nodiscard]] std::byte* reserve(std::size_t bytes, std::size_t alignment) {
    const std::size_t slack = alignment > page_ ? alignment - page_ : 0;
    std::size_t with_slack = 0;
    if (!detail::checked_add(bytes, slack, with_slack))
      throw out_of_memory(bytes, "no address range is so long");
    std::byte* const start = map_anew(nullptr, with_slack, PROT_NONE, 0);
    if (start == nullptr) throw_out_of_memory("mmap", bytes);
    const auto number = reinterpret_cast<std::uintptr_t>(start);
    const std::size_t before = detail::round_up(number, alignment) - number;
    // Addresses in front and behind go back; where that fails they are only lost, and hold no memory.
    if (before != 0) static_cast<void>(calls_.unmap(start, before));
    if (before != slack) static_cast<void>(calls_.unmap(start + before + bytes, slack - before));
    return start + before;
  }
  status unreserve(std::byte* address, std::size_t bytes) noexcept { return give_back(address, bytes); }

  void map(std::byte* address, std::size_t bytes) const {
    if (calls_.protect(address, bytes, PROT_READ | PROT_WRITE) != 0) throw_out_of_memory("mprotect", bytes);
  }
  /// One call takes the memory away and forbids the addresses.
  status unmap(std::byte* address, std::size_t bytes) noexcept {
    if (map_anew(address, bytes, PROT_NONE, MAP_FIXED) != nullptr) return {};
    return failure{"mmap without access", {}, errno, "the memory cannot be given back", bytes};
  }
  status keep(host_stream, std::byte* address, mapped_range piece, std::span<const mapped_range> kept,
              std::vector<mapped_range>& result) noexcept {
    status first_failure;
    std::size_t begin = piece.offset;
    const auto give_back_until = [&](std::size_t end) {
      if (begin == end) return;
      const status given_back = unmap(address + begin, end - begin);
      if (!given_back) result.push_back({begin, end - begin});
      first_failure.merge(given_back, {});
    };
    for (const mapped_range& part : kept) {
      give_back_until(part.offset);
      result.push_back(part);
      begin = part.end();
    }
    give_back_until(piece.end());
    return first_failure;
  }

  [[nodiscard]] std::byte* allocate_host(std::size_t bytes) {
    std::byte* const address = map_anew(nullptr, bytes, PROT_READ | PROT_WRITE, 0);
    if (address == nullptr) throw_out_of_memory("mmap", bytes);
    return address;
  }
  status deallocate_host(std::byte* address, std::size_t bytes) noexcept { return give_back(address, bytes); }

private:
  [[nodiscard]] std::byte* map_anew(std::byte* where, std::size_t bytes, int access,
                                    int flags) const noexcept {
    void* const address =
        calls_.map(where, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
    return address == MAP_FAILED ? nullptr : static_cast<std::byte*>(address);
  }
  [[nodiscard]] status give_back(std::byte* address, std::size_t bytes) const noexcept {
    if (calls_.unmap(address, bytes) == 0) return {};
    return failure{"munmap", {}, errno, "the addresses cannot be given back", bytes};
  }
  [[noreturn]] STOWAGE_COLD static void throw_out_of_memory(std::string_view call, std::size_t bytes) {
    const int code = errno;
    detail::message text;
    text << call << " failed with errno " << static_cast<std::size_t>(code);
    throw out_of_memory(bytes, text.c_str());
  }

  host_calls calls_;
  std::size_t page_;
  std::size_t granularity_;
};

/// Elastic host memory: the counterpart of cuda::virtual_backend, for tests and for work on the CPU.
class virtual_host_backend : public virtual_backend_over<host_backend, host_pages> {
public:
  /// Throws usage_error for a granularity that is no power of two or smaller than a page.
  explicit virtual_host_backend(const virtual_host_options& options = {})
      : virtual_backend_over(host_backend{}, host_pages(options)) {}
};
static_assert(elastic_backend<virtual_host_backend>);

} // namespace stowage::inline v0_1
