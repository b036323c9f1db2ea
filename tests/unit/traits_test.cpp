// pad_fill, copies, tail and min_bytes in an arena. Their layouts: tests/static/new_traits_test.cpp.

#include "memory.hpp"

#include <stowage/arena.hpp>
#include <stowage/backend/failing.hpp>
#include <stowage/backend/recording.hpp>
#include <stowage/regions.hpp>
#include <stowage/traits/copies.hpp>
#include <stowage/traits/min_bytes.hpp>
#include <stowage/traits/pad_fill.hpp>
#include <stowage/traits/tag.hpp>
#include <stowage/traits/tail.hpp>
#include <stowage/traits/when.hpp>
#include <stowage/traits/zero_at_construction.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {

using stowage::bf16;
using stowage::buffer;
using stowage::copies;
using stowage::make_plan;
using stowage::operation;
using stowage::pad_fill;
using stowage::placement;
using stowage::shape;
using stowage::tail;
using stowage::tokens;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  std::size_t hidden = 0;
  bool off = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};
inline constexpr stowage::dim<&params::off> off{};
constexpr params five{tokens{5}, 100};

/// Whether every element has these bits.
template <class Bits, class Handle> bool all_are(const Handle& field, Bits bits) {
  if (field.bytes() == 0 || field.bytes() % sizeof(Bits) != 0) return false;
  for (std::size_t index = 0; index < field.bytes() / sizeof(Bits); ++index) {
    Bits found{};
    std::memcpy(&found, field.memory().data() + index * sizeof(Bits), sizeof(Bits));
    if (found != bits) return false;
  }
  return true;
}

struct filled {
  buffer<float, shape<M, 3>, zero::never, pad_fill<1>> f32;
  buffer<double, shape<M>, zero::never, pad_fill<-1, 4>> f64;
  buffer<bf16, shape<M, 3>, zero::never, pad_fill<1>> bf16_one;
  buffer<bf16, shape<M, 3>, zero::never, pad_fill<-3, 2>> bf16_other;
  buffer<stowage::f16, shape<M, 3>, zero::never, pad_fill<1>> f16_one;
  buffer<stowage::f16, shape<M, 3>, zero::never, pad_fill<1, 4>> f16_other;
  buffer<stowage::fp8_e4m3, shape<M, 3>, zero::never, pad_fill<1>> e4m3;
  buffer<stowage::fp8_e5m2, shape<M, 3>, zero::never, pad_fill<1>> e5m2;
  buffer<std::int8_t, shape<M, 3>, zero::never, pad_fill<-3>> i8;
  buffer<std::int32_t, shape<M, 3>, zero::never, pad_fill<-1>> i32;
  buffer<float, shape<M, 3>, zero::never, pad_fill<0>> nothing;
  buffer<float, shape<M>, zero::never, pad_fill<1>, stowage::when<off>> absent;
  buffer<float, shape<M, 1000>, zero::never, pad_fill<1>> several_pieces; // 20000 bytes
  buffer<float, shape<M>, zero::full> cleared;
};

void check_filled(const filled& fields) {
  CHECK(all_are(fields.f32, std::uint32_t{0x3f800000}));
  CHECK(all_are(fields.f64, std::uint64_t{0xbfd0000000000000}));
  CHECK(all_are(fields.bf16_one, std::uint16_t{0x3f80}));
  CHECK(all_are(fields.bf16_other, std::uint16_t{0xbfc0}));
  CHECK(all_are(fields.f16_one, std::uint16_t{0x3c00}));
  CHECK(all_are(fields.f16_other, std::uint16_t{0x3400}));
  CHECK(all_are(fields.e4m3, std::uint8_t{0x38}));
  CHECK(all_are(fields.e5m2, std::uint8_t{0x3c}));
  CHECK(all_are(fields.i8, std::uint8_t{0xfd}));
  CHECK(all_are(fields.i32, std::uint32_t{0xffffffff}));
  CHECK(all_are(fields.nothing, std::uint32_t{0}));
  CHECK(fields.absent.data() == nullptr);
  CHECK(all_are(fields.several_pieces, std::uint32_t{0x3f800000}));
}

struct listed;
struct other_list;
struct tagged_group {
  buffer<float, shape<M>, zero::rows, stowage::tag<listed>> inner;
};
struct tagged_fields {
  buffer<float, shape<M>, zero::rows> plain;
  buffer<float, shape<M>, zero::rows, stowage::tag<listed>, stowage::tag<other_list>> both;
  tagged_group group;
};

TEST_CASE("tag: a plan says which fields are on a list, by number") {
  using plan = stowage::plan<tagged_fields, params>;
  CHECK_FALSE(plan::has_tag<listed>(0));
  CHECK(plan::has_tag<listed>(1));
  CHECK(plan::has_tag<listed>(2));
  CHECK(plan::has_tag<other_list>(1));
  CHECK_FALSE(plan::has_tag<other_list>(2));
  CHECK_FALSE(plan::has_tag<params>(1));
  CHECK_THROWS_AS(static_cast<void>(plan::has_tag<listed>(3)), stowage::bounds_error);
}

TEST_CASE("pad_fill: the value of every element type, and no zero pass undoes it") {
  for (const placement where : {placement::slab, placement::separate}) {
    stowage::arena arena(make_plan<filled>(five), stowage::host_backend{}, {.where = where});
    check_filled(arena.fields());
    test::poison_bytes(arena->cleared.data(), arena->cleared.bytes());
    arena.zero_all();
    CHECK(all_are(arena->cleared, std::uint32_t{0}));
    check_filled(arena.fields());
    arena.zero_rows({}, tokens{5});
    check_filled(arena.fields());
  }
}

struct filled_copies {
  buffer<std::uint8_t, shape<3>, zero::never> odd;
  buffer<bf16, shape<M, 3>, zero::never, pad_fill<1>, copies<3>, tail<10>> scales;
  buffer<float, shape<M>, zero::full> cleared;
};

TEST_CASE("pad_fill: every copy, and none of the neighbours") {
  for (const placement where : {placement::slab, placement::separate}) {
    stowage::arena arena(make_plan<filled_copies>(five), stowage::recording_backend<>{}, {.where = where});
    for (std::size_t copy = 0; copy < 3; ++copy)
      CHECK(all_are(arena->scales.copy(copy), std::uint16_t{0x3f80}));
    for (const auto& call : arena.backend().calls()) {
      if (call.what != operation::copy_from_host) continue;
      CHECK(call.address == arena->scales.data());
      CHECK(call.bytes == 2 * 256 + 30);
    }
    arena.zero_all();
    CHECK(all_are(arena->scales.copy(2), std::uint16_t{0x3f80}));
  }
}

struct double_buffered {
  buffer<float, shape<M, 3>, zero::rows, copies<2>> states;
  buffer<std::uint8_t, shape<M>, zero::full, copies<3>, stowage::when<off>> absent;
};

TEST_CASE("copies: each has its own accessor, at the alignment of the field") {
  for (const placement where : {placement::slab, placement::separate}) {
    stowage::arena arena(make_plan<double_buffered>(five), stowage::host_backend{}, {.where = where});
    const auto& first = arena->states.copy(0);
    const auto& second = arena->states.copy(1);
    CHECK(first.data() == arena->states.data());
    CHECK(reinterpret_cast<const std::byte*>(second.data()) ==
          reinterpret_cast<const std::byte*>(first.data()) + 256);
    CHECK(second.bytes() == 60);
    CHECK(second.extent(0) == 5);
    CHECK(second.extent(1) == 3);
    CHECK(second.name() == "states");
    CHECK(second.rows(4, 5).size() == 3);
    CHECK_THROWS_WITH_AS(static_cast<void>(arena->states.copy(2)),
                         "stowage: field 'states': copy 2 wanted, there are 2, counted from 0",
                         stowage::bounds_error);
    CHECK(arena->absent.copy(2).data() == nullptr);

    // The passes treat all alike.
    test::poison_bytes(arena.address(0), make_plan<double_buffered>(five).layout(0).extent());
    arena.zero_rows({}, tokens{2});
    for (const std::size_t copy : {0U, 1U}) {
      CHECK(test::first_difference(arena->states.copy(copy).data(), 60, {{0, 24}}) == 60);
    }
    arena.zero_all();
    CHECK(all_are(second, std::uint32_t{0}));

    CHECK(arena.release().ok());
    CHECK(arena->states.copy(1).data() == nullptr);
    CHECK(arena->states.copy(1).bytes() == 0);
  }
}

struct two_parts {
  stowage::part<float, shape<M>> one;
  stowage::part<double, shape<M>> other;
};
struct carved_copies {
  buffer<stowage::regions<two_parts>, zero::full, copies<2>> pair;
  buffer<stowage::alternatives<two_parts, stowage::part<float, shape<M>>>, zero::full, copies<2>> either;
};

TEST_CASE("copies: of regions and alternatives") {
  const stowage::arena arena(make_plan<carved_copies>(five), stowage::host_backend{});
  const auto& second = arena->pair.copy(1);
  CHECK(second.bytes() == 24 + 40);
  CHECK(reinterpret_cast<std::byte*>(second->other.data()) == second.data() + 24);
  CHECK(second.data() == arena->pair.data() + 256);
  CHECK(second->other.name() == "other");
  const auto& either = arena->either.copy(1);
  CHECK(reinterpret_cast<std::byte*>(either.as<two_parts>().other.data()) == either.data() + 24);
  CHECK(either.data() == arena->either.data() + 256);
}

struct tailed {
  buffer<float, shape<M>, zero::rows, tail<100>> states;
  buffer<float, shape<M>, zero::full, tail<5000>, copies<2>> last;
};

TEST_CASE("tail: backed behind every copy, and not counted") {
  for (const placement where : {placement::slab, placement::separate}) {
    stowage::arena arena(make_plan<tailed>(five), stowage::host_backend{}, {.where = where});
    CHECK(arena->states.bytes() == 20);
    CHECK(arena->states.memory().size() == 20);
    CHECK(arena->states.size() == 5);
    CHECK(arena->last.copy(1).bytes() == 20);
    // What AddressSanitizer would see if it were not there.
    test::poison_bytes(arena->states.data(), 20 + 100);
    for (const std::size_t copy : {0U, 1U}) test::poison_bytes(arena->last.copy(copy).data(), 20 + 5000);
    arena.zero_all();
    CHECK(all_are(arena->states, std::uint32_t{0}));
    CHECK(all_are(arena->last.copy(1), std::uint32_t{0}));
    // Behind the last field no pass goes.
    CHECK(test::first_difference(arena->last.copy(1).data(), 20 + 5000, {{0, 20}}) == 20 + 5000);
  }
}

struct floored {
  buffer<float, shape<M>, zero::never, stowage::min_bytes<2 * hidden>> workspace;
};

TEST_CASE("min_bytes: the floor is allocated; the extents stay those of the shape") {
  const stowage::arena arena(make_plan<floored>(five), stowage::recording_backend<>{});
  CHECK(arena->workspace.bytes() == 200);
  CHECK(arena->workspace.extent(0) == 5);
  CHECK(arena->workspace.fits(50));
  CHECK_FALSE(arena->workspace.fits(51));
  test::poison_bytes(arena->workspace.data(), 200);
}

// Construction with everything that it does: allocate, clear, fill, wait.
struct constructed {
  buffer<float, shape<M>, zero::never, pad_fill<1>> small;
  buffer<float, shape<M, 500>, zero::never, pad_fill<1>, copies<2>> large; // several pieces
  buffer<float, shape<M>, zero::never, stowage::zero_at_construction> weight;
  buffer<float, shape<M>, zero::rows> states;
};

TEST_CASE("pad_fill: construction fails at every call that it makes, and leaves nothing behind") {
  constexpr auto plan = make_plan<constructed>(five);
  // 10000 bytes a copy, 10240 apart.
  constexpr std::size_t pieces = 1 + (10240 + 10000 + 4095) / 4096;
  for (const placement where : {placement::slab, placement::separate}) {
    for (const operation what :
         {operation::allocate, operation::zero, operation::copy_from_host, operation::synchronize}) {
      const std::size_t calls = what == operation::allocate         ? (where == placement::slab ? 1 : 4)
                                : what == operation::zero           ? 1
                                : what == operation::copy_from_host ? pieces
                                                                    : 3; // weight, small, large
      for (std::size_t k = 1; k <= calls; ++k) {
        CAPTURE(static_cast<int>(what));
        CAPTURE(k);
        stowage::failing_backend<> backend;
        backend.fail(what, k);
        if (what == operation::allocate) {
          CHECK_THROWS_AS(stowage::arena(plan, backend, {.where = where}), stowage::out_of_memory);
        } else {
          CHECK_THROWS_AS(stowage::arena(plan, backend, {.where = where}), stowage::backend_error);
        }
        CHECK(backend.count(what) == k);
        CHECK(backend.outstanding() == 0);
      }
      // One call later nothing is left to fail.
      stowage::failing_backend<> backend;
      backend.fail(what, calls + 1);
      {
        const stowage::arena arena(plan, backend, {.where = where});
        CHECK(all_are(arena->large.copy(1), std::uint32_t{0x3f800000}));
        CHECK(all_are(arena->weight, std::uint32_t{0}));
        CHECK(backend.count(what) == calls);
      }
      CHECK(backend.outstanding() == 0);
    }
  }
}

} // namespace
