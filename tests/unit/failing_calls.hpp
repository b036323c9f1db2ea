#pragma once

// Calls that are counted, of the host's backend too; one of them can fail.

#include <stowage/backend/host.hpp>
#include <stowage/error.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace test {

struct call_counter {
  static inline std::size_t next = 0;
  static inline std::size_t failing = 0;
  static inline bool has_failed = false;

  /// Counts a call; whether it is the one to fail.
  static bool fails() {
    if (failing == 0 || ++next != failing) return false;
    has_failed = true;
    return true;
  }
  /// The k-th call from now on fails, none for 0. Whether one has failed since the last time.
  static bool fail(std::size_t k) {
    next = 0;
    failing = k;
    return std::exchange(has_failed, false);
  }
};

class counted_backend : public stowage::host_backend {
public:
  static void zero(stream_type stream, std::span<const stowage::segment> segments) {
    count("zero");
    stowage::host_backend{}.zero(stream, segments);
  }
  static void copy_to_host(stream_type stream, void* destination, const void* source, std::size_t bytes) {
    count("copy_to_host");
    stowage::host_backend{}.copy_to_host(stream, destination, source, bytes);
  }
  static void copy_from_host(stream_type stream, void* destination, const void* source, std::size_t bytes) {
    count("copy_from_host");
    stowage::host_backend{}.copy_from_host(stream, destination, source, bytes);
  }
  static void synchronize(stream_type) { count("synchronize"); }

private:
  static void count(const char* what) {
    if (call_counter::fails()) throw stowage::backend_error("stowage: " + std::string(what) + " failed");
  }
};

} // namespace test
