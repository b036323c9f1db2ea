#pragma once

#if !defined(__cpp_exceptions)
#error                                                                                                       \
    "stowage: arenas and backends tell errors by exceptions: compile without -fno-exceptions (plans work with it)"
#endif

#include <stowage/error.hpp>
#include <stowage/segments.hpp>

#include <concepts>
#include <cstddef>
#include <span>

namespace stowage::inline v0_1 {

/// Where memory lives. A backend is any type with
///
///   stream_type                  what its work is ordered by; default-constructible and copyable
///   allocate(bytes, alignment)   memory; throws out_of_memory (or another std::exception). Never asked for 0 bytes
///   deallocate(address, bytes, alignment) noexcept
///                                gives it back; reports failure by value
///   zero(stream, segments)       clears all segments of one pass, in order on the stream; throws on failure
///   copy_to_host(stream, destination, source, bytes)
///                                backend memory to host memory; throws on failure
///   copy_from_host(stream, destination, source, bytes)
///                                host memory to backend memory; throws on failure
///   synchronize(stream)          returns when all work on the stream, copies included, is done; throws on failure
///
/// and, where streams can be captured into graphs,
///
///   is_capturing(stream)         true while they are: then the arena neither allocates nor synchronises
///
/// No pass ever contains an empty or null segment, and a pass without segments is not passed on.
template <class Type>
concept backend = requires(Type& backend, typename Type::stream_type stream, void* address,
                           const void* source, std::size_t number, std::span<const segment> segments) {
  requires std::default_initializable<typename Type::stream_type>;
  requires std::copyable<typename Type::stream_type>;
  { backend.allocate(number, number) } -> std::same_as<void*>;
  { backend.deallocate(address, number, number) } noexcept -> std::same_as<status>;
  { backend.zero(stream, segments) } -> std::same_as<void>;
  { backend.copy_to_host(stream, address, source, number) } -> std::same_as<void>;
  { backend.copy_from_host(stream, address, source, number) } -> std::same_as<void>;
  { backend.synchronize(stream) } -> std::same_as<void>;
};

/// A backend whose streams can be captured.
template <class Type>
concept capturing_backend = backend<Type> && requires(Type& backend, typename Type::stream_type stream) {
  { backend.is_capturing(stream) } -> std::same_as<bool>;
};

} // namespace stowage::inline v0_1
