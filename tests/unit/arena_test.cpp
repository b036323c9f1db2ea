#include "memory.hpp"

#include <stowage/arena.hpp>
#include <stowage/backend/any.hpp>
#include <stowage/backend/host.hpp>
#include <stowage/backend/recording.hpp>
#include <stowage/traits/align.hpp>
#include <stowage/traits/at_least.hpp>
#include <stowage/traits/placeholder.hpp>
#include <stowage/traits/tag.hpp>
#include <stowage/traits/when.hpp>
#include <stowage/traits/zero_at_construction.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace test {

/// A backend whose stream can be captured.
struct capturable {
  using stream_type = int;
  stowage::recording_backend<> inner;
  bool capturing = false;
  void* allocate(std::size_t bytes, std::size_t alignment) { return inner.allocate(bytes, alignment); }
  stowage::status deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
    return inner.deallocate(address, bytes, alignment);
  }
  void zero(int, std::span<const stowage::segment> segments) { inner.zero({}, segments); }
  void copy_to_host(int, void* destination, const void* source, std::size_t bytes) {
    inner.copy_to_host({}, destination, source, bytes);
  }
  void copy_from_host(int, void* destination, const void* source, std::size_t bytes) {
    inner.copy_from_host({}, destination, source, bytes);
  }
  void synchronize(int) { inner.synchronize({}); }
  bool is_capturing(int stream) const { return capturing && stream == 7; }
};

} // namespace test

namespace {

using stowage::bf16;
using stowage::buffer;
using stowage::operation;
using stowage::placement;
using stowage::shape;
using stowage::tokens;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  std::size_t hidden = 0;
  bool mamba = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};

struct essentials;

struct attention {
  buffer<bf16, shape<M, 8>, zero::rows, stowage::tag<essentials>> keys;
  buffer<bf16, shape<M, 8>, zero::never> values;
};

struct fields {
  buffer<float, shape<hidden>, zero::never, stowage::zero_at_construction> weight;
  buffer<bf16, shape<M, hidden>, zero::full> logits;
  buffer<bf16, shape<stowage::pad<16>(M), hidden>, zero::rows, stowage::tag<essentials>> states;
  stowage::not_owned<int> layers;
  buffer<float, shape<M>, zero::rows, stowage::when<&params::mamba>, stowage::tag<essentials>> scan;
  attention heads;
  buffer<float, shape<M>, zero::rows, stowage::when<&params::mamba>, stowage::placeholder<256>> held;
  buffer<std::uint8_t, shape<3>, zero::never, stowage::align<16>, stowage::tag<essentials>> flags;
};

// In slab order: states 0 to 32 * 5 * 2 = 320, heads.keys 512 to 784, held 1024 to 1280, logits 1280 to 1450,
// weight 1536 to 1556, heads.values 1792 to 2064, flags 2064 to 2067.
constexpr auto plan = stowage::make_plan<fields>(params{tokens{17}, 5, false});
constexpr std::size_t slab_bytes = 2067;
constexpr std::size_t zeroed_bytes = 1450;
static_assert(plan.slab_bytes() == slab_bytes && plan.zeroed_slab_bytes() == zeroed_bytes);

using recording = stowage::recording_backend<>;

std::size_t offset_of(const std::byte* slab, const void* address) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) - slab);
}

TEST_CASE("arena: one allocation, every field at its offset") {
  recording backend;
  const stowage::arena arena(plan, backend);
  REQUIRE(backend.count(operation::allocate) == 1);
  CHECK(backend.calls()[0].bytes == slab_bytes);
  CHECK(backend.calls()[0].alignment == 256);
  CHECK(backend.calls()[0].address == arena.slab());

  const std::byte* slab = arena.slab();
  CHECK(offset_of(slab, arena->states.data()) == 0);
  CHECK(offset_of(slab, arena->heads.keys.data()) == 512);
  CHECK(offset_of(slab, arena->held.data()) == 1024);
  CHECK(offset_of(slab, arena->logits.data()) == 1280);
  CHECK(offset_of(slab, arena->weight.data()) == 1536);
  CHECK(offset_of(slab, arena->heads.values.data()) == 1792);
  CHECK(offset_of(slab, arena->flags.data()) == 2064);
  CHECK(arena.address(1) == static_cast<void*>(arena->logits.data()));
  CHECK(arena.address(3) == nullptr);
  CHECK_THROWS_AS(static_cast<void>(arena.address(8)), stowage::bounds_error);
  CHECK(arena.params().hidden == 5);
  CHECK_FALSE(arena.released());
}

TEST_CASE("arena: an allocation a field, none for the absent one") {
  recording backend;
  stowage::arena arena(plan, backend, {.where = placement::separate});
  REQUIRE(backend.count(operation::allocate) == 7);
  CHECK(arena.slab() == nullptr);
  const std::array<std::size_t, 7> bytes{5 * 4, 17 * 5 * 2, 32 * 5 * 2, 17 * 8 * 2, 17 * 8 * 2, 256, 3};
  for (std::size_t index = 0; index < 7; ++index) CHECK(backend.calls()[index].bytes == bytes[index]);
  CHECK(backend.calls()[0].alignment == 256);
  CHECK(backend.calls()[6].alignment == 16);
  CHECK(static_cast<void*>(arena->states.data()) == backend.calls()[2].address);

  backend.clear();
  CHECK(arena.release().ok());
  CHECK(backend.count(operation::deallocate) == 7);
  // In reverse order, each with the numbers it was allocated with.
  CHECK(backend.calls().front().bytes == 3);
  CHECK(backend.calls().front().alignment == 16);
  CHECK(backend.calls().back().bytes == 20);
}

TEST_CASE("arena: what the accessors tell") {
  stowage::arena arena(plan, stowage::host_backend{});
  static_assert(std::is_same_v<decltype(arena->states.data()), bf16*>);
  CHECK(arena->states.bytes() == 32 * 5 * 2);
  CHECK(arena->states.size() == 32 * 5);
  CHECK(arena->states.extents() == std::array<std::size_t, 2>{32, 5});
  CHECK(arena->states.extent(0) == 32);
  CHECK(arena->states.row_elements() == 5);
  CHECK(arena->states.span().size() == 160);
  CHECK(arena->states.span().data() == arena->states.data());
  CHECK(arena->states.rows(3, 7).data() == arena->states.data() + 3 * 5);
  CHECK(arena->states.rows(3, 7).size() == 4 * 5);
  CHECK(arena->states.rows(0, 32).size() == 160);
  CHECK(arena->states.rows(32, 32).empty());
  CHECK(arena->states.name() == "states");
  CHECK(arena->heads.keys.name() == "heads.keys");
  CHECK(arena->states);
  CHECK(arena->flags.extents() == std::array<std::size_t, 1>{3});
  CHECK_THROWS_WITH_AS(
      static_cast<void>(arena->states.rows(30, 33)),
      "stowage: field 'states': rows [30, 33) wanted, 32 rows are there; plan for more tokens or ask "
      "for fewer rows",
      stowage::bounds_error);
  CHECK_THROWS_AS(static_cast<void>(arena->states.rows(2, 1)), stowage::bounds_error);
  CHECK_THROWS_AS(static_cast<void>(arena->states.rows(0, static_cast<std::size_t>(-1))),
                  stowage::bounds_error);
  CHECK(arena->states.row(3).data() == arena->states.data() + 3 * 5);
  CHECK(arena->states.row(3).size() == 5);
  CHECK(arena->flags.row(2).data() == arena->flags.data() + 2); // the leading axis need not be the tokens'
  CHECK(arena->flags.row(2).size() == 1);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(arena->flags.row(3)),
      "stowage: field 'flags': rows [3, 4) wanted, 3 rows are there; plan for more tokens or ask "
      "for fewer rows",
      stowage::bounds_error);
  CHECK_THROWS_AS(static_cast<void>(arena->states.row(static_cast<std::size_t>(-1))), stowage::bounds_error);

  // A null field is empty, not an error.
  CHECK(arena->scan.data() == nullptr);
  CHECK(arena->scan.bytes() == 0);
  CHECK(arena->scan.size() == 0);
  CHECK(arena->scan.span().empty());
  CHECK(arena->scan.rows(0, 0).empty());
  CHECK_FALSE(arena->scan);
  CHECK_THROWS_AS(static_cast<void>(arena->scan.rows(0, 1)), stowage::bounds_error);
  CHECK_THROWS_AS(static_cast<void>(arena->scan.row(0)), stowage::bounds_error);
  // A placeholder has memory without extents.
  CHECK(arena->held.data() != nullptr);
  CHECK(arena->held.bytes() == 256);
  CHECK(arena->held.extents() == std::array<std::size_t, 1>{0});
  CHECK(arena->held.span().empty());

  // The field list is the user's struct: what is not owned is there too.
  arena->layers.value = 48;
  CHECK(*std::as_const(arena)->layers == 48);
  CHECK(&arena.fields() == arena.operator->());
}

TEST_CASE("arena: whether other extents fit") {
  const stowage::arena arena(plan, stowage::host_backend{});
  CHECK(arena->states.fits(32, 5));
  CHECK(arena->states.fits(160));
  CHECK(arena->states.fits(2, 8, 10));
  CHECK(arena->states.fits(0));
  CHECK_FALSE(arena->states.fits(161));
  CHECK_FALSE(arena->states.fits(33, 5));
  CHECK_FALSE(arena->states.fits(-1));
  CHECK_FALSE(arena->states.fits(-1, 0));
  CHECK_FALSE(arena->states.fits(0, -1));
  CHECK_FALSE(arena->states.fits(std::size_t{1} << 33, std::size_t{1} << 33));
  CHECK_FALSE(arena->scan.fits(0));
  CHECK(arena->held.fits(64));
  CHECK_FALSE(arena->held.fits(65));
  CHECK(arena->states.fits(shape<stowage::pad<16>(M), hidden>{}, arena.params()));
  CHECK_FALSE(arena->states.fits(shape<stowage::pad<16>(M) + 1, hidden>{}, arena.params()));
  // A formula without a value does not fit.
  CHECK_FALSE(arena->states.fits(shape<hidden - 6>{}, arena.params()));
}

TEST_CASE("arena: zero_all is one segment of a slab, and one a field apart") {
  recording backend;
  {
    stowage::arena arena(plan, backend);
    test::poison_bytes(arena.slab(), slab_bytes);
    backend.clear();
    arena.zero_all();
    REQUIRE(backend.calls().size() == 1);
    REQUIRE(backend.calls()[0].segments.size() == 1);
    CHECK(backend.calls()[0].segments[0] == stowage::segment{arena.slab(), zeroed_bytes});
    CHECK(test::first_difference(arena.slab(), slab_bytes, {{0, zeroed_bytes}}) == slab_bytes);
  }
  stowage::arena arena(plan, backend, {.where = placement::separate});
  backend.clear();
  arena.zero_all();
  REQUIRE(backend.calls().size() == 1);
  const auto& segments = backend.calls()[0].segments;
  REQUIRE(segments.size() == 4);
  CHECK(segments[0].bytes == 320);
  CHECK(segments[1].bytes == 272);
  CHECK(segments[2].bytes == 256);
  CHECK(segments[3].bytes == 170);
  CHECK(segments[3].address == static_cast<void*>(arena->logits.data()));
}

TEST_CASE("arena: zero_tagged clears whole fields whatever their policy, absent ones never") {
  for (const placement where : {placement::slab, placement::separate}) {
    recording backend;
    stowage::arena arena(plan, backend, {.where = where});
    const auto poison = [](const auto& field) { test::poison_bytes(field.data(), field.bytes()); };
    poison(arena->states);
    poison(arena->heads.keys);
    poison(arena->heads.values);
    poison(arena->logits);
    poison(arena->flags);
    backend.clear();
    arena.zero_tagged<essentials>();
    REQUIRE(backend.calls().size() == 1);
    for (const stowage::segment& range : backend.calls()[0].segments) {
      CHECK(range.address != nullptr);
      CHECK(range.bytes != 0);
    }
    CHECK(test::first_difference(arena->states.data(), 320, {{0, 320}}) == 320);
    CHECK(test::first_difference(arena->heads.keys.data(), 272, {{0, 272}}) == 272);
    CHECK(test::first_difference(arena->heads.values.data(), 272, {}) == 272);
    CHECK(test::first_difference(arena->logits.data(), 170, {}) == 170);
    CHECK(test::first_difference(arena->flags.data(), 3, {{0, 3}}) == 3);

    // A tag that no field carries is no call at all.
    backend.clear();
    arena.zero_tagged<struct on_no_field>();
    CHECK(backend.calls().empty());
  }
}

TEST_CASE("arena: zero_at_construction clears, and waits for it") {
  recording backend;
  const stowage::arena arena(plan, backend);
  REQUIRE(backend.calls().size() == 3);
  CHECK(backend.calls()[1].what == operation::zero);
  REQUIRE(backend.calls()[1].segments.size() == 1);
  CHECK(backend.calls()[1].segments[0] == stowage::segment{arena.slab() + 1536, 20});
  CHECK(backend.calls()[2].what == operation::synchronize);
  CHECK(test::first_difference(arena->weight.data(), 20, {{0, 20}}) == 20);
}

TEST_CASE("arena: release is idempotent, and every handle is null after it") {
  recording backend;
  stowage::arena arena(plan, backend);
  arena->layers.value = 3;
  backend.clear();
  CHECK(arena.release().ok());
  CHECK(arena.release().ok());
  CHECK(backend.calls().size() == 1);
  CHECK(backend.calls()[0].what == operation::deallocate);
  CHECK(backend.calls()[0].bytes == slab_bytes);
  CHECK(arena.released());
  CHECK(arena.slab() == nullptr);
  CHECK(arena.address(1) == nullptr);
  CHECK(arena->states.data() == nullptr);
  CHECK(arena->states.bytes() == 0);
  CHECK(arena->states.extents() == std::array<std::size_t, 2>{0, 0});
  CHECK(arena->held.data() == nullptr);
  CHECK(arena->heads.keys.rows(0, 0).empty());
  CHECK(arena->layers.value == 3);
  CHECK_THROWS_AS(static_cast<void>(arena->states.rows(0, 1)), stowage::bounds_error);

  CHECK_THROWS_WITH_AS(arena.zero_all(),
                       "stowage: zero_all was called on an arena that is released or moved from",
                       stowage::usage_error);
  CHECK_THROWS_AS(arena.zero_rows({}, tokens{1}), stowage::usage_error);
  CHECK_THROWS_AS(arena.zero_rows({}, tokens{1}, tokens{2}), stowage::usage_error);
  CHECK_THROWS_AS(arena.zero_tagged<essentials>(), stowage::usage_error);
  CHECK(backend.calls().size() == 1);
}

TEST_CASE("arena: the destructor gives the memory back") {
  recording backend;
  { const stowage::arena arena(plan, backend); }
  CHECK(backend.count(operation::deallocate) == 1);
  backend.clear();
  { const stowage::arena arena(plan, backend, {.where = placement::separate}); }
  CHECK(backend.count(operation::allocate) == 7);
  CHECK(backend.count(operation::deallocate) == 7);
}

TEST_CASE("arena: a move keeps every address; what was moved from is released") {
  using arena_type = stowage::arena<fields, params, recording&>;
  static_assert(std::is_nothrow_move_constructible_v<arena_type> &&
                std::is_nothrow_move_assignable_v<arena_type>);
  static_assert(!std::is_copy_constructible_v<arena_type> && !std::is_copy_assignable_v<arena_type>);
  for (const placement where : {placement::slab, placement::separate}) {
    recording backend;
    const std::size_t allocations = where == placement::slab ? 1 : 7;
    stowage::arena first(plan, backend, {.where = where});
    const bf16* states = first->states.data();
    stowage::arena second(std::move(first));
    CHECK(second->states.data() == states);
    CHECK(first.released()); // NOLINT(bugprone-use-after-move)
    CHECK(first->states.data() == nullptr);
    CHECK_THROWS_AS(first.zero_all(), stowage::usage_error);
    CHECK(first.release().ok());
    CHECK(backend.count(operation::deallocate) == 0);

    stowage::arena third(plan, backend, {.where = where});
    third = std::move(second);
    CHECK(backend.count(operation::deallocate) == allocations); // what third had
    CHECK(third->states.data() == states);
    CHECK_FALSE(third.released());
    arena_type& same = third;
    third = std::move(same);
    CHECK(third->states.data() == states);
    CHECK(third.release().ok());
    CHECK(backend.count(operation::deallocate) == 2 * allocations);
  }
}

TEST_CASE("arena: a temporary backend is taken over, an lvalue referred to") {
  stowage::arena owner(plan, recording{});
  static_assert(std::is_same_v<decltype(owner), stowage::arena<fields, params, recording>>);
  CHECK(owner.backend().count(operation::allocate) == 1);
  stowage::arena moved(std::move(owner));
  CHECK(moved.backend().count(operation::allocate) == 1);

  recording backend;
  stowage::arena referrer(plan, backend);
  static_assert(std::is_same_v<decltype(referrer), stowage::arena<fields, params, recording&>>);
  CHECK(&referrer.backend() == &backend);
}

TEST_CASE("arena: without a byte there is no call to the backend") {
  for (const placement where : {placement::slab, placement::separate}) {
    recording backend;
    const auto empty = stowage::make_plan<attention>(params{});
    stowage::arena arena(empty, backend, {.where = where});
    CHECK(arena.slab() == nullptr);
    arena.zero_all();
    arena.zero_rows({}, tokens{4});
    arena.zero_rows({}, tokens{1}, tokens{4});
    arena.zero_tagged<essentials>();
    CHECK(arena->keys.data() == nullptr);
    CHECK(arena.release().ok());
    CHECK(backend.calls().empty());
  }
}

TEST_CASE("arena: a plan with passed-in sizes is what is allocated and bound") {
  recording backend;
  const auto armed =
      plan.with_bytes<&fields::scan>(68).with_bytes<&fields::states>(70).with_bytes<&fields::held>(0);
  const stowage::arena arena(armed, backend);
  CHECK(arena->scan.data() != nullptr);
  CHECK(arena->scan.bytes() == 68);
  CHECK(arena->scan.extents() == std::array<std::size_t, 1>{17});
  CHECK(arena->states.bytes() == 70);
  CHECK(arena->states.extents() == std::array<std::size_t, 2>{7, 5}); // 7 rows of 10 bytes
  CHECK(arena->held.data() == nullptr);
  CHECK(backend.calls()[0].bytes == armed.slab_bytes());
}

TEST_CASE("arena: rows of a passed-in size below the floor are those of the formula") {
  struct floored {
    buffer<float, shape<M>, zero::rows, stowage::at_least<256>> sums;
  };
  // 2 rows of 4 bytes, 256 by the floor; 8 bytes are still 2 rows.
  const auto small = stowage::make_plan<floored>(params{.batch = tokens{2}}).with_bytes<&floored::sums>(8);
  const stowage::arena arena(small, stowage::host_backend{});
  CHECK(arena->sums.bytes() == 8);
  CHECK(arena->sums.extents() == std::array<std::size_t, 1>{2});
}

static_assert(stowage::capturing_backend<test::capturable>);
static_assert(!stowage::capturing_backend<stowage::host_backend>);

TEST_CASE("arena: is not made while its stream captures; passes can be captured") {
  test::capturable backend;
  backend.capturing = true;
  CHECK_THROWS_WITH_AS(
      (stowage::arena(plan, backend, {.stream = 7})),
      "stowage: making an arena is not possible while the stream captures; do it before the capture "
      "begins",
      stowage::usage_error);
  CHECK(backend.inner.calls().empty());

  stowage::arena arena(plan, backend, {.stream = 3});
  backend.inner.clear();
  arena.zero_all(7);
  arena.zero_rows(7, tokens{3});
  CHECK(backend.inner.calls().size() == 2);
  CHECK(backend.inner.count(operation::synchronize) == 0);
}

} // namespace
