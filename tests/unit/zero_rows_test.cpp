// The row pass, read back byte for byte: what each field's own formula reaches for T tokens, and nothing
// else.

#include "memory.hpp"

#include <stowage/arena.hpp>
#include <stowage/backend/host.hpp>
#include <stowage/backend/recording.hpp>
#include <stowage/regions.hpp>
#include <stowage/traits/at_least.hpp>
#include <stowage/traits/placeholder.hpp>
#include <stowage/traits/starts_at.hpp>
#include <stowage/traits/when.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using stowage::bf16;
using stowage::buffer;
using stowage::pad;
using stowage::part;
using stowage::placement;
using stowage::shape;
using stowage::tokens;
using test::range;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  bool off = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};

using wide = part<float, shape<M, 2>>;
using padded_halves = part<bf16, shape<pad<16>(M), 2>>;

struct key_values {
  part<bf16, shape<pad<16>(M), 3>> keys;
  part<bf16, shape<pad<16>(M), 3>, stowage::starts_at<M * 3>> values;
};

struct fields {
  buffer<bf16, shape<M, 5>, zero::rows> plain;
  buffer<bf16, shape<pad<16>(M), 5>, zero::rows> padded;
  buffer<std::uint8_t, shape<M>, zero::rows, stowage::at_least<256>> floored;
  buffer<float, shape<M>, zero::rows, stowage::when<&params::off>, stowage::placeholder<256>> held;
  buffer<float, shape<M>, zero::rows, stowage::when<&params::off>> absent;
  buffer<stowage::alternatives<wide, padded_halves>, zero::rows> either;
  buffer<stowage::regions<key_values>, zero::rows> kv;
  buffer<stowage::q8_1, shape<M, 32>, zero::rows> blocks;
  buffer<bf16, shape<stowage::min(M, 20), 4>, zero::rows> capped;
  buffer<float, shape<cdiv(M, 16), 2>, zero::rows> chunks;
  buffer<float, shape<M, 2>, zero::full> whole;
  buffer<std::uint8_t, shape<M, 7>, zero::never> untouched;
};

constexpr std::size_t most = 33; // M
constexpr std::size_t rounded(std::size_t count) { return (count + 15) / 16 * 16; }

/// A field with what a pass should clear of it.
struct expectation {
  const char* name;
  const void* address;
  std::size_t bytes;
  std::vector<range> cleared;
};

template <class Arena> std::vector<expectation> expect_rows(const Arena& arena, std::size_t count) {
  const std::size_t t = std::min(count, most);
  const std::size_t p = rounded(t);
  const std::size_t any = t == 0 ? 0 : 256;
  return {
      {"plain", arena->plain.data(), 33 * 10, {{0, t * 10}}},
      {"padded", arena->padded.data(), 48 * 10, {{0, p * 10}}},
      {"floored", arena->floored.data(), 256, {{0, any}}},
      {"held", arena->held.data(), 256, {{0, any}}},
      {"either", arena->either.data(), 33 * 8, {{0, t * 8}, {0, p * 4}}},
      {"kv", arena->kv.data(), 33 * 6 + 48 * 6, {{0, p * 6}, {33 * 6, 33 * 6 + p * 6}}},
      {"blocks", arena->blocks.data(), 33 * 36, {{0, t * 36}}},
      {"capped", arena->capped.data(), 20 * 8, {{0, std::min<std::size_t>(t, 20) * 8}}},
      {"chunks", arena->chunks.data(), 3 * 8, {{0, (t + 15) / 16 * 8}}},
      {"whole", arena->whole.data(), 33 * 8, {{0, 33 * 8}}},
      {"untouched", arena->untouched.data(), 33 * 7, {}},
  };
}

template <class Arena> void poison_all(Arena& arena) {
  for (const expectation& field : expect_rows(arena, 0)) {
    test::poison_bytes(const_cast<void*>(field.address), field.bytes);
  }
}

void check(const std::vector<expectation>& fields_of_pass) {
  for (const expectation& field : fields_of_pass) {
    CAPTURE(field.name);
    CHECK(test::first_difference(field.address, field.bytes, field.cleared) == field.bytes);
  }
}

using recording = stowage::recording_backend<>;
using arena_type = stowage::arena<fields, params, recording&>;

TEST_CASE("zero_rows: clears what T tokens reach, for every T and placement") {
  const auto plan = stowage::make_plan<fields>(params{tokens{most}});
  for (const placement where : {placement::slab, placement::separate}) {
    recording backend;
    arena_type arena(plan, backend, {.where = where});
    for (const std::size_t count : {0u, 1u, 2u, 15u, 16u, 17u, 20u, 21u, 31u, 32u, 33u, 34u, 100000u}) {
      CAPTURE(count);
      poison_all(arena);
      backend.clear();
      arena.zero_rows({}, tokens{count});
      const auto expected = expect_rows(arena, count);
      for (const expectation& field : expected) {
        CAPTURE(field.name);
        CHECK(test::first_difference(field.address, field.bytes, field.cleared) == field.bytes);
      }
      // One call, and no segment of it is null or empty.
      REQUIRE(backend.calls().size() == 1);
      for (const stowage::segment& part : backend.calls()[0].segments) {
        CHECK(part.address != nullptr);
        CHECK(part.bytes != 0);
      }
    }
  }
}

TEST_CASE("zero_rows: counts the bytes that it clears") {
  const auto plan = stowage::make_plan<fields>(params{tokens{most}});
  // whole 264 always; one token: 10, 160, 256, 256, max(8, 64), 2 * 96, 36, 8, 8.
  CHECK(plan.zero_rows_bytes(tokens{0}) == 264);
  CHECK(plan.zero_rows_bytes(tokens{1}) == 264 + 10 + 160 + 256 + 256 + 64 + 2 * 96 + 36 + 8 + 8);
  // 17 tokens: kv reaches 192 bytes of the keys and 192 from byte 198.
  CHECK(plan.zero_rows_bytes(tokens{17}) ==
        264 + 170 + 320 + 256 + 256 + 136 + 2 * 192 + 17 * 36 + 17 * 8 + 2 * 8);
  CHECK(plan.zero_rows_bytes(tokens{33}) ==
        264 + 330 + 480 + 256 + 256 + 264 + 486 + 33 * 36 + 20 * 8 + 3 * 8);
}

TEST_CASE("zero_rows: everything at the capacity is one range, as in zero_all") {
  const auto plan = stowage::make_plan<fields>(params{tokens{most}});
  recording backend;
  arena_type arena(plan, backend);
  backend.clear();
  arena.zero_rows({}, tokens{most});
  REQUIRE(backend.calls()[0].segments.size() == 1);
  CHECK(backend.calls()[0].segments[0] == stowage::segment{arena.slab(), plan.zeroed_slab_bytes()});
}

/// What the tokens [first, last) reach, without the rows that the first ones own.
template <class Arena>
std::vector<expectation> expect_tail(const Arena& arena, std::size_t first, std::size_t last) {
  const std::size_t t = std::min(last, most);
  const std::size_t f = std::min(first, most);
  const std::size_t p = rounded(t);
  auto result = expect_rows(arena, 0);
  for (expectation& field : result) field.cleared.clear();
  if (first >= last) return result;
  result[0].cleared = {{f * 10, t * 10}};
  result[1].cleared = {{f * 10, p * 10}};
  result[2].cleared = {{f, 256}};
  result[3].cleared = {{0, f == 0 ? 256u : 0u}};
  result[4].cleared = {{f * 8, std::max(t * 8, p * 4)}};
  // Live keys end at f * 6, live values lie in [198, 198 + f * 6).
  for (std::size_t index = f * 6; index < 486; ++index) {
    const bool keys = index < p * 6;
    const bool values = index >= 198 + f * 6 && index < 198 + p * 6;
    const bool live = index >= 198 && index < 198 + f * 6;
    if ((keys || values) && !live) result[6 - 1].cleared.push_back({index, index + 1});
  }
  result[6].cleared = {{f * 36, t * 36}};
  result[7].cleared = {{std::min<std::size_t>(f, 20) * 8, std::min<std::size_t>(t, 20) * 8}};
  return result;
}

TEST_CASE("zero_rows: the tail of a batch, behind rows that stay") {
  const auto plan = stowage::make_plan<fields>(params{tokens{most}});
  for (const placement where : {placement::slab, placement::separate}) {
    recording backend;
    arena_type arena(plan, backend, {.where = where});
    for (const std::size_t first : {0u, 1u, 7u, 16u, 20u, 32u, 33u, 40u}) {
      for (const std::size_t last : {0u, 1u, 8u, 16u, 17u, 32u, 33u, 40u}) {
        CAPTURE(first);
        CAPTURE(last);
        poison_all(arena);
        arena.zero_rows({}, tokens{first}, tokens{last});
        auto expected = expect_tail(arena, first, last);
        expected.erase(expected.begin() + 8); // chunks: the test below
        check(expected);
      }
    }
  }
}

TEST_CASE("zero_rows: [0, first) and [first, last) together clear [0, last)") {
  const auto plan = stowage::make_plan<fields>(params{tokens{most}});
  recording backend;
  arena_type arena(plan, backend);
  for (const std::size_t first : {1u, 5u, 16u, 30u}) {
    for (const std::size_t last : {6u, 17u, 33u}) {
      if (first >= last) continue;
      CAPTURE(first);
      CAPTURE(last);
      poison_all(arena);
      arena.zero_rows({}, tokens{first});
      arena.zero_rows({}, tokens{first}, tokens{last});
      check(expect_rows(arena, last));
    }
  }
}

// A row that several tokens share stays as long as one of the first tokens owns it.
TEST_CASE("zero_rows: a tail leaves the chunk alone that the first tokens reach into") {
  const auto plan = stowage::make_plan<fields>(params{tokens{most}});
  arena_type::backend_type backend;
  arena_type arena(plan, backend);
  poison_all(arena);
  arena.zero_rows({}, tokens{17}, tokens{33});
  // Token 16 is in chunk 1, so only chunk 2 is cleared.
  CHECK(test::first_difference(arena->chunks.data(), 24, {{16, 24}}) == 24);
}

struct shifted_parts {
  part<float, shape<M>, stowage::when<&params::off>> optional;
  part<float, shape<M>, stowage::starts_at<M>> values;
};
struct floored_parts {
  part<std::uint8_t, shape<M>, stowage::at_least<64>> flags;
  part<std::uint8_t, shape<M>> rest;
};
struct carved {
  buffer<stowage::regions<shifted_parts>, zero::rows> shifted;
  buffer<stowage::regions<floored_parts>, zero::rows> floored;
};

TEST_CASE("zero_rows: a region that does not begin at byte 0 is cleared where it is") {
  const auto plan = stowage::make_plan<carved>(params{tokens{10}});
  stowage::arena arena(plan, stowage::host_backend{});
  REQUIRE(arena->shifted.bytes() == 80);
  test::poison_bytes(arena->shifted.data(), 80);
  arena.zero_rows({}, tokens{2});
  CHECK(test::first_difference(arena->shifted.data(), 80, {{40, 48}}) == 80);
}

// Two ranges and the floor of the field: three segments, and more in a tail pass. ASan would show a list that
// is short.
struct scattered_parts {
  part<std::uint8_t, shape<M>, stowage::starts_at<64>> first;
  part<std::uint8_t, shape<M>, stowage::starts_at<128>> second;
};
struct scattered {
  buffer<stowage::regions<scattered_parts>, zero::rows, stowage::at_least<16>> bytes;
};

TEST_CASE("zero_rows: ranges and a floor that lie apart") {
  const auto plan = stowage::make_plan<scattered>(params{tokens{10}});
  stowage::arena arena(plan, stowage::host_backend{});
  REQUIRE(arena->bytes.bytes() == 138);
  test::poison_bytes(arena->bytes.data(), 138);
  arena.zero_rows({}, tokens{2});
  CHECK(test::first_difference(arena->bytes.data(), 138, {{0, 16}, {64, 66}, {128, 130}}) == 138);
  test::poison_bytes(arena->bytes.data(), 138);
  arena.zero_rows({}, tokens{2}, tokens{5});
  CHECK(test::first_difference(arena->bytes.data(), 138, {{0, 16}, {66, 69}, {130, 133}}) == 138);
}

TEST_CASE("zero_rows: the floor of a part is cleared with its rows") {
  const auto plan = stowage::make_plan<carved>(params{tokens{10}});
  stowage::arena arena(plan, stowage::host_backend{});
  REQUIRE(arena->floored.bytes() == 74);
  test::poison_bytes(arena->floored.data(), 74);
  arena.zero_rows({}, tokens{2});
  CHECK(test::first_difference(arena->floored.data(), 74, {{0, 66}}) == 74);
}

} // namespace
