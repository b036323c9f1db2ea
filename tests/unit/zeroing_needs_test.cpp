// The zeroing experiment: steps with a known use of old content, and what is said of them.

#include <stowage/backend/any.hpp>
#include <stowage/backend/withholding.hpp>
#include <stowage/guards.hpp>
#include <stowage/stowage.hpp>
#include <stowage/zeroing_needs.hpp>

#include <cstddef>
#include <cstdint>
#include <doctest/doctest.h>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace {

using stowage::buffer;
using stowage::shape;
using stowage::tokens;
using verdict = stowage::zeroing_verdict;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  bool trace = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};

using withholding = stowage::withholding_backend<>;

struct fields {
  buffer<std::uint32_t, shape<M>, zero::never> ids;
  buffer<float, shape<M, 2>, zero::rows> one;
  buffer<float, shape<M, 2>, zero::rows> two;
  buffer<float, shape<8>, zero::full> three;
  buffer<float, shape<M>, zero::never> four;
  buffer<float, shape<M>, zero::never> result;
  buffer<float, shape<M>, zero::never, stowage::when<&params::trace>> timeline;
};
using arena_type = stowage::arena<fields, params, withholding>;

arena_type make_arena() { return arena_type(stowage::make_plan<fields>(params{tokens{8}}), withholding{}); }

constexpr std::size_t batch = 5; // tokens of a step, of 8

verdict verdict_of(const stowage::zeroing_needs& needs, std::string_view name) {
  const stowage::zeroing_need* need = needs.find(name);
  return need == nullptr ? verdict::unknown : need->verdict;
}

/// Runs the experiment on a step that ends by writing `value(arena, token)` to the rows of result.
template <class Value>
stowage::zeroing_needs examine(arena_type& arena, const Value& value,
                               const stowage::zeroing_options<stowage::host_stream>& options = {}) {
  return stowage::find_zeroing_needs(
      arena,
      [&](arena_type& each) {
        each.zero_rows({}, tokens{batch});
        for (std::size_t token = 0; token < batch; ++token) each->result.data()[token] = value(each, token);
      },
      {std::as_bytes(arena->result.rows(0, batch))}, options);
}

TEST_CASE("zeroing needs: a step that reads nothing old needs no clearing at all") {
  arena_type arena = make_arena();
  const auto needs = examine(arena, [](arena_type&, std::size_t token) { return static_cast<float>(token); });
  CHECK(needs.deterministic);
  CHECK(needs.clean());
  CHECK(verdict_of(needs, "ids") == verdict::not_needed);
  CHECK(verdict_of(needs, "one") == verdict::waste);
  CHECK(verdict_of(needs, "two") == verdict::waste);
  CHECK(verdict_of(needs, "three") == verdict::waste);
  CHECK(verdict_of(needs, "four") == verdict::not_needed);
  CHECK(verdict_of(needs, "result") == verdict::not_needed);
  CHECK(verdict_of(needs, "timeline") == verdict::absent);
  CHECK(needs.find("one")->cleared_bytes == 5 * 2 * 4); // of 8 * 2 * 4
  CHECK(needs.find("one")->bytes == 8 * 2 * 4);
  CHECK(needs.wasted_bytes() == 2 * 5 * 2 * 4 + 8 * 4);
  CHECK(needs.output_bytes == 5 * 4);
  // Two runs from zeros, two from each of 4 patterns, all at once as it is; then zeros and 4 patterns without
  // the passes.
  CHECK(needs.runs == 1 + 1 + 2 * 4 + 4 + 5);
}

TEST_CASE("zeroing needs: what is added into is needed, what is never cleared and read is a lie") {
  arena_type arena = make_arena();
  const auto needs = examine(arena, [](arena_type& each, std::size_t token) {
    each->one.data()[2 * token] += 1.0F;
    return each->one.data()[2 * token] + each->four.data()[token];
  });
  CHECK_FALSE(needs.clean());
  CHECK(verdict_of(needs, "one") == verdict::needed);
  CHECK(verdict_of(needs, "two") == verdict::waste);
  CHECK(verdict_of(needs, "four") == verdict::lie);
  CHECK(needs.find("four")->first_byte < 4); // in row 0: a change of its low bits is rounded away
  CHECK(needs.find("four")->last_byte < 5 * 4);
  CHECK(needs.find("four")->last_byte >= 4 * 4); // in row 4
  CHECK_FALSE(needs.find("four")->jointly);
}

TEST_CASE("zeroing needs: rows beyond the tokens are told apart from those that are cleared") {
  arena_type arena = make_arena();
  const auto needs = examine(arena, [](arena_type& each, std::size_t token) {
    float sum = 0;
    for (std::size_t row = 0; row < 7; ++row) sum += each->two.data()[2 * row + 1]; // rows 5 and 6 are stale
    return sum + static_cast<float>(token);
  });
  const stowage::zeroing_need* two = needs.find("two");
  REQUIRE(two != nullptr);
  CHECK(two->verdict == verdict::too_little);
  CHECK(two->row_bytes == 8);
  CHECK(two->located);
  CHECK(two->first_byte / 8 == 5);
  CHECK(two->last_byte / 8 == 6);
  CHECK(two->leaks_when_left_out); // the cleared rows are needed as well
  CHECK(needs.text().find("(rows 5 to 6)") != std::string::npos);
}

TEST_CASE("zeroing needs: NaN that is dropped is found by the other patterns") {
  arena_type arena = make_arena();
  const auto largest = [](arena_type& each, std::size_t) {
    float value = 0;
    for (const float other : each->four.span()) value = other > value ? other : value;
    return value;
  };
  CHECK(verdict_of(examine(arena, largest, {.patterns = {stowage::poisons::signalling_nan}}), "four") ==
        verdict::not_needed); // as far as NaN shows
  CHECK(verdict_of(examine(arena, largest), "four") == verdict::lie);
}

TEST_CASE("zeroing needs: several leaks at once are all found, and one does not hide another") {
  arena_type arena = make_arena();
  const auto needs = examine(arena, [](arena_type& each, std::size_t token) {
    // A flag in `four` decides whether `ids` is looked at: with both poisoned only the flag shows.
    if (each->four.data()[token] != 0.0F) return 100.0F;
    return each->ids.data()[token] != 0 ? 7.0F : 0.0F;
  });
  CHECK(verdict_of(needs, "four") == verdict::lie);
  CHECK(verdict_of(needs, "ids") == verdict::lie);
}

TEST_CASE("zeroing needs: a leak that needs two fields is reported as a joint one") {
  arena_type arena = make_arena();
  const auto needs = examine(arena, [](arena_type& each, std::size_t token) {
    return each->four.data()[token] != 0.0F && each->ids.data()[token] != 0 ? 1.0F : 0.0F;
  });
  CHECK(needs.find("four")->jointly);
  CHECK(needs.find("ids")->jointly);
  CHECK_FALSE(needs.find("one")->leaks);
  CHECK(needs.text().find("together with that of other fields") != std::string::npos);
}

TEST_CASE("zeroing needs: a leak that shows only while another field is zero takes each_alone") {
  const auto step = [](arena_type& each, std::size_t token) {
    const bool same = (each->four.data()[token] != 0.0F) == (each->ids.data()[token] != 0);
    return same ? 0.0F : 1.0F;
  };
  arena_type arena = make_arena();
  CHECK(verdict_of(examine(arena, step), "ids") == verdict::not_needed); // as far as bisection sees
  CHECK(verdict_of(examine(arena, step, {.each_alone = true}), "ids") == verdict::lie);
  CHECK(verdict_of(examine(arena, step, {.each_alone = true}), "four") == verdict::lie);
}

TEST_CASE("zeroing needs: what a step adds up twice needs the pass in between, whatever was there before") {
  arena_type arena = make_arena();
  const auto needs = stowage::find_zeroing_needs(arena,
                                                 [](arena_type& each) {
                                                   for (int layer = 0; layer < 2; ++layer) {
                                                     each.zero_all(); // between the layers
                                                     each->three.data()[0] =
                                                         layer == 0 ? 1.0F : each->three.data()[0] + 2.0F;
                                                   }
                                                   each->result.data()[0] = each->three.data()[0];
                                                 },
                                                 {std::as_bytes(arena->result.rows(0, 1))});
  CHECK(verdict_of(needs, "three") == verdict::needed);
}

TEST_CASE("zeroing needs: a pass that comes too late does not help") {
  arena_type arena = make_arena();
  const auto needs = stowage::find_zeroing_needs(arena,
                                                 [](arena_type& each) {
                                                   each->result.data()[0] = each->three.data()[3];
                                                   each.zero_all();
                                                 },
                                                 {std::as_bytes(arena->result.rows(0, 1))});
  CHECK(verdict_of(needs, "three") == verdict::too_little);
  CHECK(needs.find("three")->first_byte / 4 == 3);
  CHECK(needs.find("three")->last_byte / 4 == 3);
}

TEST_CASE("zeroing needs: inputs are kept, and given back") {
  arena_type arena = make_arena();
  for (std::size_t token = 0; token < 8; ++token)
    arena->ids.data()[token] = static_cast<std::uint32_t>(token);
  const float table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto lookup = [&](arena_type& each, std::size_t token) {
    const float value = table[each->ids.data()[token]]; // a poisoned id would be out of range
    each->ids.data()[token] = 0;                        // and the step uses them up
    return value;
  };
  const auto needs = examine(arena, lookup, {.keep = {arena_type::plan_type::index_of<&fields::ids>()}});
  CHECK(needs.deterministic);
  CHECK(verdict_of(needs, "ids") == verdict::kept);
  CHECK(arena->ids.data()[7] == 7);
  CHECK(arena->ids.data()[3] == 3);
  CHECK(arena->result.data()[3] == 0.0F);
  // Without it, integers that are valid indices find the lie and stay in range.
  const auto told = examine(arena, lookup, {.patterns = {{.byte = 0x5b, .integer_value = 2}}});
  CHECK(verdict_of(told, "ids") == verdict::lie);
}

TEST_CASE("zeroing needs: an output that the step does not write shows its own old content") {
  arena_type arena = make_arena();
  const auto needs = stowage::find_zeroing_needs(
      arena, [](arena_type& each) { each->result.data()[0] = 1.0F; }, {arena->result.memory()});
  CHECK(verdict_of(needs, "result") == verdict::lie);
  CHECK(needs.find("result")->first_byte == 4);
  CHECK(needs.find("result")->last_byte == 8 * 4 - 1);
}

TEST_CASE("zeroing needs: a step that is not deterministic gets no verdicts") {
  arena_type arena = make_arena();
  float calls = 0;
  const auto needs = examine(arena, [&](arena_type&, std::size_t) { return calls += 1.0F; });
  CHECK_FALSE(needs.deterministic);
  CHECK_FALSE(needs.clean());
  CHECK(verdict_of(needs, "one") == verdict::unknown);
  CHECK(needs.text().find("not deterministic") != std::string::npos);
  // One that is only so when it reads poison.
  const auto hidden = examine(arena, [&](arena_type& each, std::size_t) {
    return each->four.data()[0] == 0.0F ? 0.0F : calls += 1.0F;
  });
  CHECK_FALSE(hidden.deterministic);
  // One that passes the check at the start, and gives other outputs now and then: no field is accused.
  std::size_t runs = 0;
  const auto rare = examine(arena, [&](arena_type&, std::size_t token) {
    if (token == 0) ++runs;
    return runs > 10 && runs % 3 == 0 ? 1.0F : 0.0F;
  });
  CHECK_FALSE(rare.deterministic);
  CHECK(verdict_of(rare, "four") == verdict::unknown);
  for (const stowage::zeroing_need& need : rare.fields) CHECK_FALSE(need.leaks);
}

struct attention {
  buffer<float, shape<M>, zero::rows, stowage::copies<2>> sums;
  buffer<float, shape<M>, zero::full, stowage::tail<64>> scores;
};
struct grouped {
  attention layer;
  buffer<float, shape<M>, zero::never, stowage::pad_fill<1>> scales;
  buffer<std::uint32_t, shape<4>, zero::never, stowage::zero_at_construction> counters;
  buffer<float, shape<M>, zero::never> result;
};

template <stowage::placement Where> void examine_groups() {
  using arena_of_groups = stowage::arena<grouped, params, withholding>;
  arena_of_groups arena(stowage::make_plan<grouped>(params{tokens{8}}), withholding{}, {.where = Where});
  const auto needs = stowage::find_zeroing_needs(
      arena,
      [](arena_of_groups& each) {
        each.zero_rows({}, tokens{batch});
        each->layer.sums.copy(1).data()[2] += 1.0F;
        const float overread = each->layer.scores.data()[8]; // in the tail
        for (std::size_t token = 0; token < batch; ++token) {
          each->result.data()[token] =
              (each->layer.sums.copy(1).data()[token] + overread) * each->scales.data()[token] +
              static_cast<float>(each->counters.data()[0]);
        }
      },
      {std::as_bytes(arena->result.rows(0, batch))});
  CHECK(verdict_of(needs, "layer.sums") == verdict::needed);
  CHECK(needs.find("layer.sums")->cleared_bytes == 2 * 5 * 4);
  CHECK(needs.find("layer.sums")->bytes == 2 * 8 * 4);
  CHECK(verdict_of(needs, "layer.scores") == verdict::too_little); // no pass clears a tail
  CHECK(needs.find("layer.scores")->first_byte / 4 == 8);
  CHECK(needs.find("layer.scores")->bytes == 8 * 4 + 64);
  CHECK(verdict_of(needs, "scales") == verdict::kept); // its content is given when the arena is made
  CHECK(verdict_of(needs, "counters") == verdict::kept);
  CHECK(arena->scales.data()[7] == 1.0F);
}

TEST_CASE("zeroing needs: groups, copies, tails and what is set at construction, in a slab") {
  examine_groups<stowage::placement::slab>();
}
TEST_CASE("zeroing needs: the same with separate allocations") {
  examine_groups<stowage::placement::separate>();
}

TEST_CASE("zeroing needs: an arena on any_backend, for steps that are not templates") {
  withholding memory;
  stowage::any_backend any(memory);
  stowage::arena arena(stowage::make_plan<fields>(params{tokens{8}}), any);
  const auto needs =
      stowage::find_zeroing_needs(arena, memory,
                                  [](stowage::arena<fields, params, stowage::any_backend&>& each) {
                                    each.zero_rows({}, tokens{batch});
                                    each->result.data()[0] = each->one.data()[0];
                                  },
                                  {std::as_bytes(arena->result.rows(0, 1))});
  CHECK(verdict_of(needs, "one") == verdict::needed);
  CHECK(verdict_of(needs, "two") == verdict::waste);
}

TEST_CASE("zeroing needs: what cannot be examined is refused") {
  arena_type arena = make_arena();
  const auto step = [](arena_type&) {};
  CHECK_THROWS_AS(static_cast<void>(stowage::find_zeroing_needs(arena, step, {})), stowage::usage_error);
  CHECK_THROWS_AS(static_cast<void>(stowage::find_zeroing_needs(arena, step, {arena->timeline.memory()})),
                  stowage::usage_error); // absent
  CHECK_THROWS_AS(
      static_cast<void>(stowage::find_zeroing_needs(arena, step, {arena->result.memory()}, {.patterns = {}})),
      stowage::usage_error);
  CHECK_THROWS_AS(static_cast<void>(stowage::find_zeroing_needs(arena, step, {arena->result.memory()},
                                                                {.patterns = {stowage::poisons::zeros}})),
                  stowage::usage_error);
  CHECK_THROWS_AS(
      static_cast<void>(stowage::find_zeroing_needs(arena, step, {arena->result.memory()}, {.keep = {99}})),
      stowage::bounds_error);
  const std::span<const std::byte> memory = arena->result.memory();
  CHECK(arena.release().ok());
  CHECK_THROWS_AS(static_cast<void>(stowage::find_zeroing_needs(arena, step, {memory})),
                  stowage::usage_error);
}

TEST_CASE("zeroing needs: a step that releases, moves or replaces its arena is refused, its outputs unread") {
  const auto refuses = [](auto step) {
    arena_type arena = make_arena();
    CHECK_THROWS_AS(static_cast<void>(stowage::find_zeroing_needs(arena, step, {arena->result.memory()})),
                    stowage::usage_error);
  };
  refuses([](arena_type& each) { static_cast<void>(each.release()); });
  refuses([](arena_type& each) { arena_type elsewhere(std::move(each)); });
  refuses([](arena_type& each) { each = make_arena(); });
}

struct nibbles {
  buffer<stowage::u4, shape<M>, zero::never> codes;
};

TEST_CASE("zeroing needs: a number that is zero in 4 bits is no poison for them") {
  stowage::arena arena(stowage::make_plan<nibbles>(params{tokens{8}}), withholding{});
  const auto run = [&](unsigned char value) {
    return stowage::find_zeroing_needs(arena, [](auto&) {}, {arena->codes.memory()},
                                       {.patterns = {{.byte = 0x5b, .integer_value = value}}});
  };
  CHECK_THROWS_AS(static_cast<void>(run(16)), stowage::usage_error);
  CHECK(verdict_of(run(17), "codes") == verdict::lie);
}

TEST_CASE("zeroing needs: guard zones make no difference, and stay") {
  arena_type arena(stowage::make_plan<fields>(params{tokens{8}}).with_guards(), withholding{});
  const auto needs = examine(arena, [](arena_type& each, std::size_t token) {
    return each->one.data()[token] + each->four.data()[token];
  });
  CHECK(verdict_of(needs, "one") == verdict::needed);
  CHECK(verdict_of(needs, "two") == verdict::waste);
  CHECK(verdict_of(needs, "four") == verdict::lie);
  CHECK(stowage::scan_guards(arena, {}, [](const stowage::guard_damage&) {}) == 0);
}

/// Host memory with a stream that a test can take for captured.
struct captured_backend : stowage::host_backend {
  const bool* captures = nullptr;
  [[nodiscard]] bool is_capturing(stream_type) const { return captures != nullptr && *captures; }
};

TEST_CASE("zeroing needs: neither poison nor the experiment runs while the stream captures") {
  bool captures = false;
  captured_backend memory;
  memory.captures = &captures;
  stowage::arena arena(stowage::make_plan<fields>(params{tokens{8}}), stowage::withholding_backend(memory));
  static_assert(stowage::capturing_backend<decltype(arena)::backend_type>);
  captures = true;
  std::size_t steps = 0;
  CHECK_THROWS_AS(stowage::poison(arena, stowage::poisons::ones), stowage::usage_error);
  CHECK_THROWS_AS(static_cast<void>(
                      stowage::find_zeroing_needs(arena, [&](auto&) { ++steps; }, {arena->result.memory()})),
                  stowage::usage_error);
  CHECK(steps == 0);
}

TEST_CASE("zeroing needs: when the step throws, passes clear again all that they are asked to") {
  arena_type arena = make_arena();
  int calls = 0;
  CHECK_THROWS_AS(static_cast<void>(examine(arena,
                                            [&](arena_type&, std::size_t) {
                                              if (++calls == 80) throw std::runtime_error("step");
                                              return 0.0F;
                                            })),
                  std::runtime_error);
  arena->one.data()[0] = 1.0F;
  arena.zero_all();
  CHECK(arena->one.data()[0] == 0.0F);
}

} // namespace
