// The arithmetic of the CPU half: quantised dot products, normalisation, rotation.
#pragma once

#include "buffers.hpp"
#include "gguf.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace engine {

/// A row of a matrix as plain numbers.
void dequantise(const matrix& weights, std::size_t row, float* values);

/// Activations in blocks of 32. `count` is a multiple of 32.
void quantise(const float* values, std::size_t count, activation_block* blocks);

/// Row `row` of the weights times `Rows` rows of activations, which are `stride` blocks apart. Instantiated for 1
/// and tile_rows; the result of a row does not depend on which.
template <std::size_t Rows>
std::array<float, Rows> dot(const matrix& weights, std::size_t row, const activation_block* activations,
                            std::size_t stride);

/// values / sqrt(mean of squares + epsilon) * weights.
void normalise(const float* values, const matrix& weights, float epsilon, float* result);

/// Cosine and sine of `position` for the pairs of a head, behind one another.
void make_rotation(std::size_t position, std::size_t dim, float base, float* rotation);

/// Rotates each pair of neighbours in a head.
void rotate(float* head, std::size_t dim, const float* rotation);

/// gate * sigmoid(gate) * up
float gated(float gate, float up);

/// A logit and its token as one number: the larger logit is the larger number, and of equal ones the smaller token.
std::uint64_t ranked(float logit, std::uint32_t token);
inline std::uint32_t token_of(std::uint64_t ranked) { return ~static_cast<std::uint32_t>(ranked); }

} // namespace engine
