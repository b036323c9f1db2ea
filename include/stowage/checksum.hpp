#pragma once

#include <stowage/arena.hpp>
#include <stowage/detail/cold.hpp>
#include <stowage/error.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <string_view>

namespace stowage::inline v0_1 {

/// What one buffer holds, read as f32 lanes over its whole allocation whatever its element type: the same
/// bytes give the same numbers on every path, which is all that a checksum is for.
struct field_checksum {
  /// The field, dotted in groups.
  std::string_view name;
  /// Bytes of its allocation.
  std::size_t bytes = 0;
  /// Over the finite lanes, added up in f64 in the order of the memory.
  double sum = 0;
  /// Of the same lanes, each squared.
  double sum_of_squares = 0;
  /// Of the same lanes, without their signs.
  double sum_of_magnitudes = 0;
  /// Lanes that are not finite, which the sums leave out.
  std::size_t skipped_lanes = 0;
  /// False where a copy failed: the buffer was skipped and the sums mean nothing.
  bool copied = true;
};

namespace detail {

/// Adds the lanes of some bytes. What is left of a size that is no multiple of 4 is ignored.
inline void add_lanes(field_checksum& checksum, std::span<const std::byte> bytes) {
  for (std::size_t offset = 0; offset + 4 <= bytes.size(); offset += 4) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, bytes.data() + offset, 4);
    if ((bits & 0x7f800000U) == 0x7f800000U) { // by its bits: -ffast-math knows no NaN
      ++checksum.skipped_lanes;
      continue;
    }
    const auto lane = static_cast<double>(std::bit_cast<float>(bits));
    checksum.sum += lane;
    checksum.sum_of_squares += lane * lane;
    checksum.sum_of_magnitudes += lane < 0 ? -lane : lane;
  }
}

} // namespace detail

/// Checksums of every buffer that carries tag<Tag> and takes memory (the first instance of a field with
/// copies): waits for the stream, then reads buffer after buffer through `staging` host memory and calls
/// sink(const field_checksum&) for each, in declaration order. A buffer whose copy fails is skipped: its
/// `copied` is false. Throws usage_error while the stream captures or after release, and what the first wait
/// for the stream throws. No heap.
template <class Tag, class Fields, class Params, class Backend, class Sink>
void checksum(arena<Fields, Params, Backend>& arena,
              typename std::remove_reference_t<Backend>::stream_type stream, std::span<std::byte> staging,
              const Sink& sink) {
  using arena_type = stowage::arena<Fields, Params, Backend>;
  arena.require_memory("checksum");
  auto& backend = arena.backend();
  if constexpr (capturing_backend<typename arena_type::backend_type>) {
    if (backend.is_capturing(stream))
      detail::refuse_during_capture("a checksum, which waits for the stream,");
  }
  if (staging.size() < 4) throw usage_error("stowage: a checksum needs at least 4 bytes of staging memory");
  backend.synchronize(stream);
  constexpr auto& listed = detail::fields_with_tag<Fields, Tag>;
  const std::size_t chunk = staging.size() / 4 * 4;
  for (std::size_t field = 0; field < listed.size(); ++field) {
    const std::byte* const address = arena.address(field);
    if (!listed[field] || address == nullptr) continue;
    field_checksum result{arena.plan().name(field), arena.plan().bytes(field)};
    try {
      for (std::size_t done = 0; done < result.bytes; done += chunk) {
        const std::size_t bytes = result.bytes - done < chunk ? result.bytes - done : chunk;
        backend.copy_to_host(stream, staging.data(), address + done, bytes);
        backend.synchronize(stream);
        detail::add_lanes(result, staging.first(bytes));
      }
    } catch (const std::exception&) {
      result = field_checksum{result.name, result.bytes};
      result.copied = false;
    }
    sink(static_cast<const field_checksum&>(result));
  }
}

/// The same with 16 KiB of staging memory on the stack.
template <class Tag, class Fields, class Params, class Backend, class Sink>
void checksum(arena<Fields, Params, Backend>& arena,
              typename std::remove_reference_t<Backend>::stream_type stream, const Sink& sink) {
  std::array<std::byte, 16384> staging;
  checksum<Tag>(arena, stream, std::span<std::byte>(staging), sink);
}

/// The log line of a checksum: tag, name, bytes and sums.
[[nodiscard]] STOWAGE_NOINLINE inline std::string format(std::string_view tag,
                                                         const field_checksum& checksum) {
  std::string line = "[" + std::string(tag) + "] " + std::string(checksum.name) + ": ";
  line += std::to_string(checksum.bytes) + " bytes";
  if (!checksum.copied) return line + ", skipped: the copy to the host failed";
  std::array<char, 128> sums;
  const int length = std::snprintf(sums.data(), sums.size(), ", sum %.17g, squares %.17g, magnitudes %.17g",
                                   checksum.sum, checksum.sum_of_squares, checksum.sum_of_magnitudes);
  line.append(sums.data(), static_cast<std::size_t>(length));
  if (checksum.skipped_lanes != 0)
    line += ", " + std::to_string(checksum.skipped_lanes) + " lanes not finite";
  return line;
}

} // namespace stowage::inline v0_1
