// Kernels of the CUDA half. They get groups of the field list by value, and read how many rows a step has from the
// step's metadata: the same launch serves every batch size, which is what a captured graph needs.
#pragma once

#include "cuda_buffers.hpp"

#include <cuda_bf16.h>

namespace engine::kernels {

constexpr unsigned warp = 32, block_size = 128, warps = block_size / warp;

__device__ inline float value(stowage::bf16 number) {
  return __uint_as_float(std::uint32_t{number.bits} << 16);
}
__device__ inline stowage::bf16 rounded(float number) {
  return {__bfloat16_as_ushort(__float2bfloat16_rn(number))};
}

__device__ inline float sum_of_warp(float number) {
  for (unsigned distance = warp / 2; distance != 0; distance /= 2)
    number += __shfl_xor_sync(0xffffffffU, number, distance);
  return number;
}

/// A block a row: the token's embedding.
__global__ void embed(step_parts step, const stowage::bf16* embedding, float* hidden, unsigned width) {
  const unsigned row = blockIdx.x;
  if (row >= *step.rows.data()) return;
  const stowage::bf16* from = embedding + std::size_t{step.tokens.data()[row]} * width;
  for (unsigned at = threadIdx.x; at < width; at += block_size)
    hidden[std::size_t{row} * width + at] = value(from[at]);
}

/// A block a row: hidden / sqrt(mean of squares + epsilon) * weights. With `last_row` the step's last row becomes row 0.
__global__ void normalise(step_parts step, const float* hidden, const float* weights, float epsilon,
                          stowage::bf16* normalised, unsigned width, bool last_row) {
  __shared__ float sums[warps];
  const unsigned row = blockIdx.x;
  const unsigned rows = *step.rows.data();
  if (row >= rows) return;
  const float* from = hidden + std::size_t{last_row ? rows - 1 : row} * width;
  float squares = 0;
  for (unsigned at = threadIdx.x; at < width; at += block_size) squares += from[at] * from[at];
  squares = sum_of_warp(squares);
  if (threadIdx.x % warp == 0) sums[threadIdx.x / warp] = squares;
  __syncthreads();
  squares = 0;
  for (unsigned each = 0; each < warps; ++each) squares += sums[each];
  const float factor = rsqrtf(squares / static_cast<float>(width) + epsilon);
  for (unsigned at = threadIdx.x; at < width; at += block_size)
    normalised[std::size_t{row} * width + at] = rounded(from[at] * factor * weights[at]);
}

/// One row of weights times `Rows` rows of input, by a warp; the sums are in all lanes. 16 bytes of a row at a time.
template <unsigned Rows>
__device__ void dot(const stowage::bf16* weights, const stowage::bf16* input, unsigned width,
                    float (&sums)[Rows]) {
  for (float& sum : sums) sum = 0;
  const auto* left = reinterpret_cast<const uint4*>(weights);
  for (unsigned chunk = threadIdx.x % warp; chunk < width / 8; chunk += warp) {
    const uint4 numbers = left[chunk];
    const std::uint32_t pairs[4] = {numbers.x, numbers.y, numbers.z, numbers.w};
    for (unsigned row = 0; row < Rows; ++row) {
      const uint4 others = reinterpret_cast<const uint4*>(input + std::size_t{row} * width)[chunk];
      const std::uint32_t other_pairs[4] = {others.x, others.y, others.z, others.w};
      for (unsigned pair = 0; pair < 4; ++pair) {
        sums[row] += __uint_as_float(pairs[pair] << 16) * __uint_as_float(other_pairs[pair] << 16);
        sums[row] +=
            __uint_as_float(pairs[pair] & 0xffff0000U) * __uint_as_float(other_pairs[pair] & 0xffff0000U);
      }
    }
  }
  for (float& sum : sums) sum = sum_of_warp(sum);
}

/// write(row, sum) for each row of the batch, by one lane. Whole tiles of rows are read: input is padded to them.
template <class Write>
__device__ void multiply_rows(unsigned rows, const stowage::bf16* weights, const stowage::bf16* input,
                              unsigned width, const Write& write) {
  if (rows == 1) {
    float sums[1];
    dot(weights, input, width, sums);
    if (threadIdx.x % warp == 0) write(0U, sums[0]);
    return;
  }
  for (unsigned tile = 0; tile < rows; tile += tile_rows) {
    float sums[tile_rows];
    dot(weights, input + std::size_t{tile} * width, width, sums);
    for (unsigned row = 0; row < tile_rows; ++row)
      if (threadIdx.x % warp == row && tile + row < rows) write(tile + row, sums[row]);
  }
}

__device__ inline unsigned output_of_warp() { return blockIdx.x * warps + threadIdx.x / warp; }
__device__ inline void store(float* to, float sum) { *to = sum; }
__device__ inline void store(stowage::bf16* to, float sum) { *to = rounded(sum); }

/// A warp an output. `most` bounds the rows: 1 for the logits behind a prompt.
template <class Real>
__global__ void multiply(step_parts step, unsigned most, const stowage::bf16* weights,
                         const stowage::bf16* input, unsigned width, Real* result, unsigned outputs) {
  const unsigned n = output_of_warp();
  if (n >= outputs) return;
  multiply_rows(min(*step.rows.data(), most), weights + std::size_t{n} * width, input, width,
                [=](unsigned row, float sum) { store(result + std::size_t{row} * outputs + n, sum); });
}

/// The same, added to what is there.
__global__ void multiply_add(step_parts step, const stowage::bf16* weights, const stowage::bf16* input,
                             unsigned width, float* result, unsigned outputs) {
  const unsigned n = output_of_warp();
  if (n >= outputs) return;
  multiply_rows(*step.rows.data(), weights + std::size_t{n} * width, input, width,
                [=](unsigned row, float sum) { result[std::size_t{row} * outputs + n] += sum; });
}

__device__ inline float gated(float gate, float up) { return gate / (1.0F + expf(-gate)) * up; }

/// Both matrices of the feed-forward half, and the gate, in one.
__global__ void multiply_gated(step_parts step, const stowage::bf16* weights, const stowage::bf16* input,
                               unsigned width, stowage::bf16* activated, unsigned outputs) {
  const unsigned n = output_of_warp();
  if (n >= outputs) return;
  __shared__ float gates[warps][tile_rows];
  float* mine = gates[threadIdx.x / warp];
  const stowage::bf16* gate = weights + std::size_t{n} * width;
  const unsigned rows = *step.rows.data();
  for (unsigned tile = 0; tile < rows; tile += tile_rows) {
    const unsigned left = min(rows - tile, static_cast<unsigned>(tile_rows));
    const stowage::bf16* from = input + std::size_t{tile} * width;
    multiply_rows(left, gate, from, width, [=](unsigned row, float sum) { mine[row] = sum; });
    __syncwarp();
    multiply_rows(left, gate + std::size_t{outputs} * width, from, width, [=](unsigned row, float sum) {
      activated[std::size_t{tile + row} * outputs + n] = rounded(gated(mine[row], sum));
    });
    __syncwarp();
  }
}

/// For a prefill, where cuBLAS made gate and up: a block a row.
__global__ void activate(const stowage::bf16* gate_up, stowage::bf16* activated, unsigned width) {
  const std::size_t row = blockIdx.x;
  for (unsigned at = threadIdx.x; at < width; at += block_size)
    activated[row * width + at] =
        rounded(gated(value(gate_up[row * 2 * width + at]), value(gate_up[row * 2 * width + width + at])));
}

/// Where a token's keys or values of a layer lie.
__device__ inline std::size_t place(const step_parts& step, const cache_buffers<stowage::bf16>& cache,
                                    unsigned sequence, unsigned position, unsigned layer) {
  const std::size_t page =
      step.pages.data()[sequence * step.pages.extent(1) + position / static_cast<unsigned>(page_tokens)];
  const std::size_t token = (page * cache.keys.extent(1) + layer) * page_tokens + position % page_tokens;
  return token * cache.keys.extent(3) * cache.keys.extent(4);
}

/// A block a row: rotates queries and keys, and puts keys and values in the cache.
__global__ void rotate_and_store(step_parts step, stowage::bf16* qkv, const float* rotations,
                                 cache_buffers<stowage::bf16> cache, unsigned heads, unsigned layer) {
  const unsigned row = blockIdx.x;
  if (row >= *step.rows.data()) return;
  const auto dim = static_cast<unsigned>(cache.keys.extent(4));
  const auto kv_heads = static_cast<unsigned>(cache.keys.extent(3));
  const unsigned position = step.positions.data()[row];
  stowage::bf16* mine = qkv + std::size_t{row} * (heads + 2 * kv_heads) * dim;
  const float* rotation = rotations + std::size_t{position} * dim;
  const std::size_t to = place(step, cache, step.sequences.data()[row], position, layer);
  for (unsigned pair = threadIdx.x; pair < (heads + kv_heads) * dim / 2; pair += block_size) {
    const unsigned within = pair % (dim / 2);
    const float cosine = rotation[within];
    const float sine = rotation[dim / 2 + within];
    const float x = value(mine[2 * pair]);
    const float y = value(mine[2 * pair + 1]);
    const stowage::bf16 turned[2] = {rounded(x * cosine - y * sine), rounded(x * sine + y * cosine)};
    const bool key = pair >= heads * dim / 2;
    stowage::bf16* const target = key ? cache.keys.data() + to + 2 * pair - heads * dim : mine + 2 * pair;
    target[0] = turned[0];
    target[1] = turned[1];
  }
  for (unsigned at = threadIdx.x; at < kv_heads * dim; at += block_size)
    cache.values.data()[to + at] = mine[(heads + kv_heads) * dim + at];
}

constexpr unsigned most_per_lane = 4; // elements of a head: at most 128

/// A block: attention of one query over the positions [first, last). The largest score and the sum of weights are in all
/// threads, the weighted values in shared memory.
struct attended {
  float largest, sum;
  const float* values;
};
__device__ inline attended attend(const step_parts& step, const cache_buffers<stowage::bf16>& cache,
                                  const stowage::bf16* query, unsigned sequence, unsigned layer,
                                  unsigned kv_head, unsigned first, unsigned last) {
  __shared__ float shared_values[warps][warp * most_per_lane];
  __shared__ float shared_largest[warps];
  __shared__ float shared_sums[warps];
  const auto dim = static_cast<unsigned>(cache.keys.extent(4));
  const unsigned lane = threadIdx.x % warp;
  const unsigned mine = threadIdx.x / warp;
  const unsigned per_lane = dim / warp;
  const float scale = rsqrtf(static_cast<float>(dim));

  float part[most_per_lane];
  float values[most_per_lane] = {};
  for (unsigned each = 0; each < per_lane; ++each) part[each] = value(query[lane + each * warp]) * scale;
  float largest = -INFINITY;
  float sum = 0;
  for (unsigned position = first + mine; position < last; position += warps) {
    const std::size_t from = place(step, cache, sequence, position, layer) + kv_head * dim + lane;
    float score = 0;
    for (unsigned each = 0; each < per_lane; ++each)
      score += part[each] * value(cache.keys.data()[from + each * warp]);
    score = sum_of_warp(score);
    const float now = fmaxf(largest, score);
    const float old_weight = expf(largest - now); // 0 the first time
    const float weight = expf(score - now);
    sum = sum * old_weight + weight;
    for (unsigned each = 0; each < per_lane; ++each)
      values[each] = values[each] * old_weight + weight * value(cache.values.data()[from + each * warp]);
    largest = now;
  }
  for (unsigned each = 0; each < per_lane; ++each) shared_values[mine][lane + each * warp] = values[each];
  if (lane == 0) {
    shared_largest[mine] = largest;
    shared_sums[mine] = sum;
  }
  __syncthreads();
  float overall = -INFINITY;
  for (unsigned each = 0; each < warps; ++each) overall = fmaxf(overall, shared_largest[each]);
  float total = 0;
  for (unsigned each = 0; each < warps; ++each)
    if (shared_sums[each] > 0) total += shared_sums[each] * expf(shared_largest[each] - overall);
  for (unsigned at = threadIdx.x; at < dim; at += block_size) { // each thread its own column
    float column = 0;
    for (unsigned each = 0; each < warps; ++each)
      if (shared_sums[each] > 0) column += shared_values[each][at] * expf(shared_largest[each] - overall);
    shared_values[0][at] = column;
  }
  return {overall, total, shared_values[0]};
}

/// A block a row, head and piece of the sequence. Pieces that a sequence does not have are left as the row pass left them.
template <class Attention>
__global__ void attend_splits(step_parts step, Attention attention, cache_buffers<stowage::bf16> cache,
                              unsigned layer) {
  const unsigned row = blockIdx.x;
  const unsigned head = blockIdx.y;
  const unsigned split = blockIdx.z;
  if (row >= *step.rows.data()) return;
  const unsigned position = step.positions.data()[row];
  const unsigned first = split * static_cast<unsigned>(split_tokens);
  if (first > position) return;
  const auto dim = static_cast<unsigned>(cache.keys.extent(4));
  const unsigned kv_head = head / (gridDim.y / static_cast<unsigned>(cache.keys.extent(3)));
  const attended found =
      attend(step, cache, attention.qkv.data() + row * attention.qkv.extent(1) + head * dim,
             step.sequences.data()[row], layer, kv_head, first,
             min(first + static_cast<unsigned>(split_tokens), position + 1));
  const std::size_t piece = (std::size_t{row} * gridDim.y + head) * gridDim.z + split;
  for (unsigned at = threadIdx.x; at < dim; at += block_size)
    attention.split_outputs.data()[piece * dim + at] = found.values[at];
  if (threadIdx.x == 0) {
    attention.split_weights.data()[2 * piece] = found.largest;
    attention.split_weights.data()[2 * piece + 1] = found.sum;
  }
}

/// A block a row and head: puts the pieces together.
template <class Attention> __global__ void join_splits(step_parts step, Attention attention) {
  const unsigned row = blockIdx.x;
  if (row >= *step.rows.data()) return;
  const auto splits = static_cast<unsigned>(attention.split_weights.extent(2));
  const std::size_t head = std::size_t{row} * gridDim.y + blockIdx.y;
  const auto dim = static_cast<unsigned>(attention.split_outputs.extent(3));
  const float* pieces = attention.split_weights.data() + head * splits * 2;
  float largest = -INFINITY;
  for (unsigned split = 0; split < splits; ++split)
    if (pieces[2 * split + 1] > 0) largest = fmaxf(largest, pieces[2 * split]);
  for (unsigned at = threadIdx.x; at < dim; at += block_size) {
    float sum = 0;
    float column = 0;
    for (unsigned split = 0; split < splits; ++split) {
      if (!(pieces[2 * split + 1] > 0)) continue;
      const float weight = expf(pieces[2 * split] - largest);
      sum += weight * pieces[2 * split + 1];
      column += weight * attention.split_outputs.data()[(head * splits + split) * dim + at];
    }
    attention.output.data()[head * dim + at] = rounded(column / sum);
  }
}

/// A block a row and head, for a prefill: all positions up to the row's own.
template <class Attention>
__global__ void attend_whole(step_parts step, Attention attention, cache_buffers<stowage::bf16> cache,
                             unsigned layer) {
  const unsigned row = blockIdx.x;
  const unsigned head = blockIdx.y;
  const auto dim = static_cast<unsigned>(cache.keys.extent(4));
  const unsigned kv_head = head / (gridDim.y / static_cast<unsigned>(cache.keys.extent(3)));
  const attended found =
      attend(step, cache, attention.qkv.data() + row * attention.qkv.extent(1) + head * dim,
             step.sequences.data()[row], layer, kv_head, 0, step.positions.data()[row] + 1);
  for (unsigned at = threadIdx.x; at < dim; at += block_size)
    attention.output.data()[(std::size_t{row} * gridDim.y + head) * dim + at] =
        rounded(found.values[at] / found.sum);
}

/// Blocks in x share a row of logits: the largest and its token, as kernels.hpp's ranked() has it, into `best`, which
/// begins at 0.
__global__ void rank(step_parts step, unsigned most, const float* logits, unsigned width,
                     std::uint64_t* best) {
  const unsigned row = blockIdx.y;
  if (row >= min(*step.rows.data(), most)) return;
  unsigned long long mine = 0;
  for (unsigned token = blockIdx.x * block_size + threadIdx.x; token < width;
       token += gridDim.x * block_size) {
    const std::uint32_t bits = __float_as_uint(logits[std::size_t{row} * width + token]);
    const std::uint32_t ordered = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
    const unsigned long long each = static_cast<unsigned long long>(ordered) << 32 | ~token;
    mine = each > mine ? each : mine;
  }
  for (unsigned distance = warp / 2; distance != 0; distance /= 2) {
    const unsigned long long other = __shfl_xor_sync(0xffffffffU, mine, distance);
    mine = other > mine ? other : mine;
  }
  if (threadIdx.x % warp == 0) atomicMax(reinterpret_cast<unsigned long long*>(best + row), mine);
}

} // namespace engine::kernels
