#pragma once

#include <stowage/backend/concept.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

namespace stowage::inline v0_1 {

/// Any backend's stream: a pointer-like native handle such as cudaStream_t, or nothing for the host.
struct any_stream {
  /// The native handle; null for a stream that has none.
  void* native = nullptr;

  any_stream() = default;
  /// From a native handle.
  template <class Stream>
    requires std::is_pointer_v<Stream>
  any_stream(Stream stream) : native(stream) {} // so that a cudaStream_t can be passed as it is
  /// From the stream of a backend without streams.
  template <class Stream>
    requires std::is_empty_v<Stream> && (!std::same_as<Stream, any_stream>)
  any_stream(Stream) {} // the host's stream
  /// From a stream that holds a native handle.
  template <class Stream>
    requires std::is_pointer_v<typename Stream::native_type>
  any_stream(const Stream& stream) : native(stream.get()) {} // cuda::stream and the like
};

/// A backend chosen at run time: refers to another one, which must outlive it, and calls it through function
/// pointers. Copyable; no heap.
class any_backend {
public:
  using stream_type = any_stream;

  /// Refers to the target; copies nothing.
  template <backend Backend>
    requires(!std::same_as<Backend, any_backend>)
  explicit any_backend(Backend& target) : target_(&target), functions_(&functions_of<Backend>) {}

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return functions_->allocate(target_, bytes, alignment);
  }
  status deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
    return functions_->deallocate(target_, address, bytes, alignment);
  }
  void zero(stream_type stream, std::span<const segment> segments) {
    functions_->zero(target_, stream, segments);
  }
  void copy_to_host(stream_type stream, void* destination, const void* source, std::size_t bytes) {
    functions_->copy_to_host(target_, stream, destination, source, bytes);
  }
  void copy_from_host(stream_type stream, void* destination, const void* source, std::size_t bytes) {
    functions_->copy_from_host(target_, stream, destination, source, bytes);
  }
  void synchronize(stream_type stream) { functions_->synchronize(target_, stream); }
  [[nodiscard]] bool is_capturing(stream_type stream) { return functions_->is_capturing(target_, stream); }

private:
  struct functions {
    void* (*allocate)(void*, std::size_t, std::size_t);
    status (*deallocate)(void*, void*, std::size_t, std::size_t) noexcept;
    void (*zero)(void*, any_stream, std::span<const segment>);
    void (*copy_to_host)(void*, any_stream, void*, const void*, std::size_t);
    void (*copy_from_host)(void*, any_stream, void*, const void*, std::size_t);
    void (*synchronize)(void*, any_stream);
    bool (*is_capturing)(void*, any_stream);
  };

  template <class Backend> static typename Backend::stream_type native(any_stream stream) {
    using native_type = typename Backend::stream_type;
    if constexpr (std::same_as<native_type, any_stream>) {
      return stream; // a backend that wraps another any_backend
    } else if constexpr (std::is_pointer_v<native_type>) {
      return static_cast<native_type>(stream.native);
    } else if constexpr (requires { typename native_type::native_type; }) {
      return native_type{static_cast<typename native_type::native_type>(stream.native)};
    } else {
      static_assert(std::is_empty_v<native_type>, "stowage: any_backend takes pointer-like or empty streams");
      return native_type{};
    }
  }
  template <class Backend> static Backend& as(void* target) { return *static_cast<Backend*>(target); }

  template <class Backend>
  static constexpr functions functions_of{
      [](void* target, std::size_t bytes, std::size_t alignment) {
        return as<Backend>(target).allocate(bytes, alignment);
      },
      [](void* target, void* address, std::size_t bytes, std::size_t alignment) noexcept {
        return as<Backend>(target).deallocate(address, bytes, alignment);
      },
      [](void* target, any_stream stream, std::span<const segment> segments) {
        as<Backend>(target).zero(native<Backend>(stream), segments);
      },
      [](void* target, any_stream stream, void* destination, const void* source, std::size_t bytes) {
        as<Backend>(target).copy_to_host(native<Backend>(stream), destination, source, bytes);
      },
      [](void* target, any_stream stream, void* destination, const void* source, std::size_t bytes) {
        as<Backend>(target).copy_from_host(native<Backend>(stream), destination, source, bytes);
      },
      [](void* target, any_stream stream) { as<Backend>(target).synchronize(native<Backend>(stream)); },
      [](void* target, any_stream stream) {
        if constexpr (capturing_backend<Backend>) {
          return as<Backend>(target).is_capturing(native<Backend>(stream));
        } else {
          return static_cast<void>(target), static_cast<void>(stream), false;
        }
      }};

  void* target_;
  const functions* functions_;
};
static_assert(capturing_backend<any_backend>);

} // namespace stowage::inline v0_1
