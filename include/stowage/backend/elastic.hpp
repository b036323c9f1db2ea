#pragma once

#include <stowage/backend/concept.hpp>

#include <concepts>
#include <cstddef>
#include <span>

namespace stowage::inline v0_1 {

/// A part of reserved addresses that holds memory, in bytes from the start of the reservation.
struct mapped_range {
  /// Bytes from the start of the reservation.
  std::size_t offset = 0;
  /// Bytes of the range.
  std::size_t bytes = 0;

  friend constexpr bool operator==(const mapped_range&, const mapped_range&) = default;
  /// The first byte behind it, from the start of the reservation.
  [[nodiscard]] constexpr std::size_t end() const { return offset + bytes; }
};

/// A backend that has addresses apart from memory: what an elastic arena needs beside a backend's own
/// functions. `address` is always the start of a reservation.
///
///   granularity()                bytes that memory comes in; offsets and sizes of mapped ranges are multiples
///   reserve(bytes, alignment)    addresses without memory; throws. deallocate() gives them back, with all
///                                memory that is mapped or saved there
///   map(stream, address, ranges) from now on memory is mapped at exactly these ranges, which are sorted and do
///                                not touch. What was mapped before and still is keeps its contents; new memory
///                                has none. Throws out_of_memory where there is too little, and nothing has
///                                changed; another exception where memory cannot be given back, and then maps()
///                                tells what is left. No work may be going on in memory that is given back
///   maps(address, ranges)        whether memory is mapped at all of these ranges
///   mapped_bytes(address)        bytes of memory that are mapped there
///   save(stream, address)        copies all that is mapped to host memory, which is kept until the next save;
///                                waits for the stream. Throws where there is too little host memory
///   restore(stream, address)     copies it back to where it was; all of that is mapped. Waits for the stream
///   saved_bytes(address)         bytes of host memory that save() has taken
///   forget(address) noexcept     gives that host memory back
template <class Type>
concept elastic_backend =
    backend<Type> && requires(Type& backend, typename Type::stream_type stream, void* address,
                              std::size_t number, std::span<const mapped_range> ranges) {
      { backend.granularity() } -> std::same_as<std::size_t>;
      { backend.reserve(number, number) } -> std::same_as<void*>;
      { backend.map(stream, address, ranges) } -> std::same_as<void>;
      { backend.maps(address, ranges) } -> std::same_as<bool>;
      { backend.mapped_bytes(address) } -> std::same_as<std::size_t>;
      { backend.save(stream, address) } -> std::same_as<void>;
      { backend.restore(stream, address) } -> std::same_as<void>;
      { backend.saved_bytes(address) } -> std::same_as<std::size_t>;
      { backend.forget(address) } noexcept -> std::same_as<status>;
    };

} // namespace stowage::inline v0_1
