#include "kernels.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace engine {

namespace {

/// binary16 as a float.
float half(std::uint16_t bits) {
#ifdef __F16C__
  return _cvtsh_ss(bits);
#else
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t magnitude = bits & 0x7fffU;
  if (magnitude < 0x400U) { // zero and subnormal numbers
    const float value = static_cast<float>(magnitude) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  const std::uint32_t exponent = magnitude >= 0x7c00U ? 0x38000000U + 0x38000000U : 0x38000000U;
  return std::bit_cast<float>(sign | ((magnitude << 13) + exponent));
#endif
}

// How the numbers of a block are written: what tells the two kinds of weights apart.

float value_of(const q4_1_block& block, std::size_t index) {
  const unsigned pair = block.pairs[index % 16];
  return half(block.scale) * static_cast<float>(index < 16 ? pair & 15U : pair >> 4) + half(block.minimum);
}
float value_of(const q8_0_block& block, std::size_t index) {
  return half(block.scale) * static_cast<float>(block.numbers[index]);
}

template <class Block> void dequantise_row(const Block* blocks, std::size_t columns, float* values) {
  for (std::size_t at = 0; at < columns; ++at) values[at] = value_of(blocks[at / 32], at % 32);
}

#ifdef __AVX2__

/// The numbers of a block as two vectors of 16-bit integers.
struct unpacked {
  __m256i low, high;
};
unpacked unpack(const q4_1_block& block) {
  const __m128i pairs = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block.pairs));
  const __m128i mask = _mm_set1_epi8(15);
  return {_mm256_cvtepu8_epi16(_mm_and_si128(pairs, mask)),
          _mm256_cvtepu8_epi16(_mm_and_si128(_mm_srli_epi16(pairs, 4), mask))};
}
unpacked unpack(const q8_0_block& block) {
  const auto* numbers = reinterpret_cast<const __m128i*>(block.numbers);
  return {_mm256_cvtepi8_epi16(_mm_loadu_si128(numbers)), _mm256_cvtepi8_epi16(_mm_loadu_si128(numbers + 1))};
}

/// Scale and minimum in the two lowest lanes.
__m128 scales_of(const q4_1_block& block) {
  std::int32_t both = 0;
  std::memcpy(&both, &block, sizeof both);
  return _mm_cvtph_ps(_mm_cvtsi32_si128(both));
}
__m128 scales_of(const q8_0_block& block) { return _mm_set_ss(half(block.scale)); }

float sum_of(__m256 values) {
  __m128 sum = _mm_add_ps(_mm256_castps256_ps128(values), _mm256_extractf128_ps(values, 1));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

template <std::size_t Rows, class Block>
std::array<float, Rows> dot_blocks(const Block* weights, std::size_t blocks,
                                   const activation_block* activations, std::size_t stride) {
  __m256 sums[Rows];
  __m128 minima[Rows]; // in lane 1
  for (std::size_t row = 0; row < Rows; ++row) {
    sums[row] = _mm256_setzero_ps();
    minima[row] = _mm_setzero_ps();
  }
  for (std::size_t at = 0; at < blocks; ++at) {
    const unpacked numbers = unpack(weights[at]);
    const __m128 scales = scales_of(weights[at]);
    for (std::size_t row = 0; row < Rows; ++row) {
      const activation_block& activation = activations[row * stride + at];
      const auto* vectors = reinterpret_cast<const __m256i*>(activation.numbers);
      // 32 products of 8 by 16 bits fit in 32 bits.
      const __m256i products =
          _mm256_add_epi32(_mm256_madd_epi16(numbers.low, _mm256_loadu_si256(vectors)),
                           _mm256_madd_epi16(numbers.high, _mm256_loadu_si256(vectors + 1)));
      double scale_and_sum = 0;
      std::memcpy(&scale_and_sum, &activation, sizeof scale_and_sum);
      const __m128 factors = _mm_mul_ps(scales, _mm_castpd_ps(_mm_set_sd(scale_and_sum)));
      minima[row] = _mm_add_ps(minima[row], factors);
      sums[row] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(products), _mm256_broadcastss_ps(factors), sums[row]);
    }
  }
  std::array<float, Rows> result;
  for (std::size_t row = 0; row < Rows; ++row)
    result[row] = sum_of(sums[row]) + _mm_cvtss_f32(_mm_movehdup_ps(minima[row]));
  return result;
}

#else

std::int32_t number_of(const q4_1_block& block, std::size_t index) {
  return index < 16 ? block.pairs[index] & 15 : block.pairs[index - 16] >> 4;
}
std::int32_t number_of(const q8_0_block& block, std::size_t index) { return block.numbers[index]; }
float minimum_of(const q4_1_block& block) { return half(block.minimum); }
float minimum_of(const q8_0_block&) { return 0.0F; }

template <std::size_t Rows, class Block>
std::array<float, Rows> dot_blocks(const Block* weights, std::size_t blocks,
                                   const activation_block* activations, std::size_t stride) {
  std::array<float, Rows> result{};
  for (std::size_t at = 0; at < blocks; ++at) {
    const float scale = half(weights[at].scale);
    const float minimum = minimum_of(weights[at]);
    for (std::size_t row = 0; row < Rows; ++row) {
      const activation_block& activation = activations[row * stride + at];
      std::int32_t sum = 0;
      for (std::size_t index = 0; index < 32; ++index)
        sum += number_of(weights[at], index) * activation.numbers[index];
      result[row] += scale * activation.scale * static_cast<float>(sum) + minimum * activation.sum;
    }
  }
  return result;
}

#endif

} // namespace

void dequantise(const matrix& weights, std::size_t row, float* values) {
  switch (weights.type) {
    case tensor_type::q4_1: dequantise_row(weights.row<q4_1_block>(row), weights.columns, values); break;
    case tensor_type::q8_0: dequantise_row(weights.row<q8_0_block>(row), weights.columns, values); break;
    case tensor_type::f32: std::memcpy(values, weights.row<float>(row), weights.row_bytes()); break;
  }
}

void quantise(const float* values, std::size_t count, activation_block* blocks) {
  for (std::size_t at = 0; at < count; at += 32) {
    activation_block& block = blocks[at / 32];
    float largest = 0.0F;
    float sum = 0.0F;
    for (std::size_t index = 0; index < 32; ++index) {
      largest = std::max(largest, std::abs(values[at + index]));
      sum += values[at + index];
    }
    const float inverse = largest > 0.0F ? 32767.0F / largest : 0.0F;
    block.scale = largest / 32767.0F;
    block.sum = sum;
    for (std::size_t index = 0; index < 32; ++index)
      block.numbers[index] = static_cast<std::int16_t>(std::lrintf(values[at + index] * inverse));
  }
}

template <std::size_t Rows>
std::array<float, Rows> dot(const matrix& weights, std::size_t row, const activation_block* activations,
                            std::size_t stride) {
  const std::size_t blocks = weights.columns / 32;
  return weights.type == tensor_type::q4_1
             ? dot_blocks<Rows>(weights.row<q4_1_block>(row), blocks, activations, stride)
             : dot_blocks<Rows>(weights.row<q8_0_block>(row), blocks, activations, stride);
}
template std::array<float, 1> dot<1>(const matrix&, std::size_t, const activation_block*, std::size_t);
template std::array<float, tile_rows> dot<tile_rows>(const matrix&, std::size_t, const activation_block*,
                                                     std::size_t);

void normalise(const float* values, const matrix& weights, float epsilon, float* result) {
  const auto* scale = weights.row<float>(0);
  float squares = 0.0F;
  for (std::size_t at = 0; at < weights.columns; ++at) squares += values[at] * values[at];
  const float factor = 1.0F / std::sqrt(squares / static_cast<float>(weights.columns) + epsilon);
  for (std::size_t at = 0; at < weights.columns; ++at) result[at] = values[at] * factor * scale[at];
}

void make_rotation(std::size_t position, std::size_t dim, float base, float* rotation) {
  const std::size_t pairs = dim / 2;
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    const double angle =
        static_cast<double>(position) *
        std::pow(static_cast<double>(base), -static_cast<double>(pair) / static_cast<double>(pairs));
    rotation[pair] = static_cast<float>(std::cos(angle));
    rotation[pairs + pair] = static_cast<float>(std::sin(angle));
  }
}

void rotate(float* head, std::size_t dim, const float* rotation) {
  const std::size_t pairs = dim / 2;
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    const float cosine = rotation[pair];
    const float sine = rotation[pairs + pair];
    const float x = head[2 * pair];
    const float y = head[2 * pair + 1];
    head[2 * pair] = x * cosine - y * sine;
    head[2 * pair + 1] = x * sine + y * cosine;
  }
}

float gated(float gate, float up) { return gate / (1.0F + std::exp(-gate)) * up; }

std::uint64_t ranked(float logit, std::uint32_t token) {
  const auto bits = std::bit_cast<std::uint32_t>(logit);
  const std::uint32_t ordered = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  return std::uint64_t{ordered} << 32 | ~token;
}

} // namespace engine
