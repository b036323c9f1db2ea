#pragma once

// Plain C++ that the checksum kernel's source and its launcher include; no other header of the library.

namespace stowage::inline v0_1::cuda::detail {

/// Buffers of one launch, blocks of one buffer, threads of one block.
inline constexpr unsigned int most_checksum_buffers = 64;
inline constexpr unsigned int checksum_blocks = 64;
inline constexpr unsigned int checksum_threads = 256;

/// What one block found in its share of one buffer.
struct checksum_partial {
  double sum;
  double sum_of_squares;
  double sum_of_magnitudes;
  unsigned long long skipped_lanes;
};

/// The parameter of the checksum kernel. Addresses are multiples of 4; block (x, y) writes partials[y *
/// blocks + x].
struct checksum_arguments {
  checksum_partial* partials;
  unsigned long long address[most_checksum_buffers];
  unsigned long long lanes[most_checksum_buffers];
};
static_assert(sizeof(checksum_arguments) <= 4096);

} // namespace stowage::inline v0_1::cuda::detail
