// The cursor slab, from one thread. cursor_threads_test.cpp has several.

#include <stowage/arena.hpp>
#include <stowage/backend/host.hpp>
#include <stowage/cursor.hpp>
#include <stowage/traits/when.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

namespace {

using stowage::cursor;

alignas(256) std::byte memory[1024];

std::size_t offset_of(std::span<std::byte> taken) { return static_cast<std::size_t>(taken.data() - memory); }

TEST_CASE("cursor: takes follow one another") {
  cursor slab(memory, 1024, "weights");
  CHECK(slab.size() == 1024);
  CHECK(slab.remaining() == 1024);
  const auto first = slab.take(3);
  const auto second = slab.take(5);
  CHECK(offset_of(first) == 0);
  CHECK(first.size() == 3);
  CHECK(offset_of(second) == 3);
  CHECK(second.size() == 5);
  CHECK(slab.used() == 8);
  CHECK(slab.remaining() == 1016);
}

TEST_CASE("cursor: alignment is that of the address") {
  cursor slab(memory, 1024, "weights");
  CHECK(offset_of(slab.take(1)) == 0);
  CHECK(offset_of(slab.take(8, 8)) == 8);
  CHECK(offset_of(slab.take(1, 64)) == 64);
  CHECK(offset_of(slab.take(16, 256)) == 256);
  CHECK(slab.used() == 272); // padding included

  cursor odd(memory + 1, 1023, "weights"); // the slab itself starts at an odd address
  CHECK(offset_of(odd.take(4, 16)) == 16);
  CHECK(odd.used() == 19);
}

TEST_CASE("cursor: zero bytes are never handed out") {
  cursor slab(memory, 1024, "weights");
  CHECK(slab.take(0).data() == nullptr);
  CHECK(slab.take(0, 256).empty());
  CHECK(slab.used() == 0);
  CHECK(slab.high_water() == 0);
}

TEST_CASE("cursor: an exhausted slab says what was wanted, where, and its size") {
  cursor slab(memory, 100, "weights");
  CHECK(offset_of(slab.take(96)) == 0);
  CHECK_THROWS_WITH_AS(static_cast<void>(slab.take(5)),
                       "stowage: 5 bytes (aligned to 1) wanted from slab 'weights' at 96, its size is 100",
                       stowage::bounds_error);
  // The bytes are there, but not at that alignment.
  CHECK_THROWS_WITH_AS(static_cast<void>(slab.take(1, 64)),
                       "stowage: 1 bytes (aligned to 64) wanted from slab 'weights' at 96, its size is 100",
                       stowage::bounds_error);
  // A failed take leaves everything as it was.
  CHECK(slab.used() == 96);
  CHECK(slab.remaining() == 4);
  CHECK(slab.high_water() == 96);
  CHECK(slab.try_take(5).data() == nullptr);
  CHECK(offset_of(slab.take(4)) == 96); // exactly the rest
  CHECK(slab.remaining() == 0);
  CHECK(slab.try_take(1).data() == nullptr);
  CHECK_THROWS_AS(static_cast<void>(slab.take(1)), stowage::bounds_error);
}

TEST_CASE("cursor: a huge request does not wrap around") {
  for (const std::size_t taken : {std::size_t{0}, std::size_t{1}, std::size_t{100}}) {
    cursor slab(memory, 1024, "weights");
    static_cast<void>(slab.take(taken));
    for (const std::size_t bytes :
         {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 99, SIZE_MAX - 255, SIZE_MAX / 2 + 1}) {
      for (const std::size_t alignment : {std::size_t{1}, std::size_t{256}, std::size_t{1} << 63U}) {
        CHECK(slab.try_take(bytes, alignment).data() == nullptr);
        CHECK_THROWS_AS(static_cast<void>(slab.take(bytes, alignment)), stowage::bounds_error);
        CHECK(slab.used() == taken);
      }
    }
  }
  cursor slab(memory, 1024, "weights");
  static_cast<void>(slab.take(1));
  CHECK_THROWS_WITH_AS(
      static_cast<void>(slab.take(SIZE_MAX)),
      "stowage: 18446744073709551615 bytes (aligned to 1) wanted from slab 'weights' at 1, its "
      "size is 1024",
      stowage::bounds_error);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(slab.take(SIZE_MAX - 1, 256)),
      "stowage: 18446744073709551614 bytes (aligned to 256) wanted from slab 'weights' at 1, "
      "its size is 1024",
      stowage::bounds_error);
}

TEST_CASE("cursor: the high water mark outlives a reset") {
  cursor slab(memory, 1024, "weights");
  static_cast<void>(slab.take(700));
  CHECK(slab.high_water() == 700);
  slab.reset();
  CHECK(slab.used() == 0);
  CHECK(slab.remaining() == 1024);
  CHECK(slab.high_water() == 700);
  CHECK(offset_of(slab.take(10)) == 0);
  CHECK(slab.high_water() == 700);
  slab.reset();
  static_cast<void>(slab.take(1024));
  CHECK(slab.high_water() == 1024);
}

struct params {
  stowage::tokens batch{};
  bool there = true;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
struct fields {
  stowage::buffer<float, stowage::shape<M, 2>, stowage::zero::never, stowage::when<&params::there>> rows;
};

TEST_CASE("cursor: over a field, under its name; an absent one is an error") {
  stowage::arena arena(stowage::make_plan<fields>(params{stowage::tokens{4}}), stowage::host_backend{});
  cursor slab(arena->rows);
  CHECK(slab.size() == 32);
  CHECK(static_cast<void*>(slab.take(32, 4).data()) == static_cast<void*>(arena->rows.data()));
  CHECK_THROWS_WITH_AS(static_cast<void>(slab.take(1)),
                       "stowage: 1 bytes (aligned to 1) wanted from slab 'rows' at 32, its size is 32",
                       stowage::bounds_error);

  const stowage::arena without(stowage::make_plan<fields>(params{stowage::tokens{4}, false}),
                               stowage::host_backend{});
  cursor absent(without->rows);
  CHECK(absent.size() == 0);
  CHECK(absent.remaining() == 0);
  CHECK(absent.try_take(1).data() == nullptr);
  CHECK_THROWS_WITH_AS(static_cast<void>(absent.take(8)),
                       "stowage: 8 bytes wanted from slab 'rows', which is absent", stowage::usage_error);
  CHECK(absent.used() == 0);
}

} // namespace
