#pragma once

// A field list with every shape that a pass can meet, and what each pass clears of it, worked out by hand.

#include "device.hpp"

#include <stowage/regions.hpp>
#include <stowage/traits/align.hpp>
#include <stowage/traits/copies.hpp>
#include <stowage/traits/placeholder.hpp>
#include <stowage/traits/tag.hpp>
#include <stowage/traits/tail.hpp>
#include <stowage/traits/when.hpp>

#include <cstddef>
#include <cstdint>

namespace test {

struct row_params {
  stowage::tokens capacity{};
  bool off = false;
};
inline constexpr stowage::dim<&row_params::capacity> M{"M"};

struct essentials;

struct pieces {
  stowage::part<std::uint8_t, stowage::shape<M, 3>> bytes;
  stowage::part<float, stowage::shape<M, 2>> floats;
};

struct row_fields {
  stowage::buffer<stowage::bf16, stowage::shape<M, 5>, stowage::zero::rows> plain;
  stowage::buffer<stowage::bf16, stowage::shape<stowage::pad<16>(M), 5>, stowage::zero::rows> padded;
  // Neither sizes nor starts are multiples of 16 from here on.
  stowage::buffer<std::uint8_t, stowage::shape<M, 3>, stowage::zero::rows, stowage::align<1>> odd;
  stowage::buffer<std::uint8_t, stowage::shape<stowage::pad<16>(M), 7>, stowage::zero::rows,
                  stowage::align<1>>
      odd_padded;
  stowage::buffer<stowage::bf16, stowage::shape<M, 13>, stowage::zero::rows, stowage::align<2>> halves;
  stowage::buffer<std::uint8_t, stowage::shape<M, 1999>, stowage::zero::rows, stowage::align<1>,
                  stowage::tag<essentials>>
      wide; // several tiles
  stowage::buffer<std::uint8_t, stowage::shape<M, 11>, stowage::zero::rows, stowage::align<1>,
                  stowage::copies<2>>
      twice;
  stowage::buffer<float, stowage::shape<M, 4>, stowage::zero::rows, stowage::tail<96>> tailed;
  stowage::buffer<float, stowage::shape<M, 2>, stowage::zero::rows, stowage::when<&row_params::off>> absent;
  stowage::buffer<std::uint8_t, stowage::shape<37>, stowage::zero::full, stowage::align<1>> whole_odd;
  stowage::buffer<float, stowage::shape<M, 9>, stowage::zero::full, stowage::tag<essentials>> whole;
  stowage::buffer<std::uint8_t, stowage::shape<M, 7>, stowage::zero::never, stowage::align<1>,
                  stowage::tag<essentials>>
      kept_and_tagged;
  stowage::buffer<float, stowage::shape<M, 5>, stowage::zero::never> kept;
};

/// What the fields are, in numbers.
struct row_model {
  enum class policy : unsigned char { rows, full, never };
  std::string_view name;
  std::size_t row_bytes = 0;
  bool padded = false;
  policy cleared = policy::rows;
  bool tagged = false;
};
inline constexpr std::array<row_model, 13> row_models{{
    {"plain", 10},
    {"padded", 10, true},
    {"odd", 3},
    {"odd_padded", 7, true},
    {"halves", 26},
    {"wide", 1999, false, row_model::policy::rows, true},
    {"twice", 11},
    {"tailed", 16},
    {"absent", 8},
    {"whole_odd", 37, false, row_model::policy::full},
    {"whole", 36, false, row_model::policy::full, true},
    {"kept_and_tagged", 7, false, row_model::policy::never, true},
    {"kept", 20, false, row_model::policy::never},
}};

using row_plan = stowage::plan<row_fields, row_params>;
static_assert(row_plan::field_count == row_models.size());

inline const row_model& model_of(std::size_t field) {
  const row_model& model = row_models[field];
  REQUIRE(model.name == row_plan::name(field));
  return model;
}

inline constexpr std::size_t everything = static_cast<std::size_t>(-1);

/// Bytes that the first `count` tokens reach of a field with rows, padding included.
inline std::size_t reached(const row_model& model, std::size_t count, std::size_t capacity) {
  const std::size_t rows = std::min(count, capacity);
  return (model.padded ? (rows + 15) / 16 * 16 : rows) * model.row_bytes;
}

/// What zero_rows(count) clears.
inline ranges cleared_rows(std::size_t field, std::size_t count, std::size_t capacity) {
  const row_model& model = model_of(field);
  switch (model.cleared) {
    case row_model::policy::rows: return {{0, reached(model, count, capacity)}};
    case row_model::policy::full: return {{0, everything}};
    case row_model::policy::never: break;
  }
  return {};
}

/// What zero_rows(first, last) clears: what the first `last` tokens reach, without the rows of the first
/// `first` tokens themselves. Padding rows behind those are not theirs.
inline ranges cleared_tail(std::size_t field, std::size_t first, std::size_t last, std::size_t capacity) {
  const row_model& model = model_of(field);
  if (model.cleared != row_model::policy::rows) return {};
  if (first >= last) return {};
  return {{std::min(first, capacity) * model.row_bytes, reached(model, last, capacity)}};
}

inline ranges cleared_all(std::size_t field) {
  return model_of(field).cleared == row_model::policy::never ? ranges{} : ranges{{0, everything}};
}

inline ranges cleared_tagged(std::size_t field) {
  return model_of(field).tagged ? ranges{{0, everything}} : ranges{};
}

/// The numbers of tokens that are worth a pass, for a capacity.
inline std::vector<std::size_t> token_counts(std::size_t capacity) {
  return {0, 1, 15, 16, 17, capacity - 1, capacity, capacity + 1};
}

} // namespace test
