// Checksums of tagged fields. The values are worked out by hand.

#include <stowage/arena.hpp>
#include <stowage/backend/failing.hpp>
#include <stowage/backend/recording.hpp>
#include <stowage/checksum.hpp>
#include <stowage/traits/copies.hpp>
#include <stowage/traits/tag.hpp>
#include <stowage/traits/when.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using stowage::bf16;
using stowage::buffer;
using stowage::checksum;
using stowage::field_checksum;
using stowage::operation;
using stowage::placement;
using stowage::shape;
using stowage::tag;
using stowage::tokens;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  bool off = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
struct listed;
struct never_used;

struct fields {
  buffer<float, shape<4>, zero::never, tag<listed>> numbers;
  buffer<float, shape<M>, zero::rows> other;
  buffer<bf16, shape<3>, zero::full, tag<listed>> odd;
  buffer<float, shape<M>, zero::full, tag<listed>, stowage::when<&params::off>> absent;
  buffer<std::uint8_t, shape<3>, zero::full, tag<listed>> short_of_a_lane;
};
constexpr auto plan = stowage::make_plan<fields>(params{tokens{2}});

template <class Fields> void fill(Fields& list) {
  const float numbers[] = {1.0F, -2.0F, 0.5F, 3.0F};
  for (std::size_t index = 0; index < 4; ++index) list.numbers.data()[index] = numbers[index];
  // Two bf16 in one lane: the low half 0, the high half 1.0, which is 1.0F. The third is left over.
  list.odd.data()[0].bits = 0;
  list.odd.data()[1].bits = 0x3f80;
  list.odd.data()[2].bits = 0x7f80;
  for (std::size_t index = 0; index < 3; ++index) list.short_of_a_lane.data()[index] = 9;
}

void check_values(const std::vector<field_checksum>& seen) {
  REQUIRE(seen.size() == 3);
  CHECK(seen[0].name == "numbers");
  CHECK(seen[0].bytes == 16);
  CHECK(seen[0].sum == 2.5);
  CHECK(seen[0].sum_of_squares == 14.25); // 1 + 4 + 0.25 + 9
  CHECK(seen[0].sum_of_magnitudes == 6.5);
  CHECK(seen[1].name == "odd");
  CHECK(seen[1].bytes == 6);
  CHECK(seen[1].sum == 1.0);
  CHECK(seen[1].sum_of_squares == 1.0);
  CHECK(seen[1].sum_of_magnitudes == 1.0);
  CHECK(seen[2].name == "short_of_a_lane");
  CHECK(seen[2].bytes == 3);
  CHECK(seen[2].sum == 0.0);
  for (const field_checksum& each : seen) {
    CHECK(each.copied);
    CHECK(each.skipped_lanes == 0);
  }
}

TEST_CASE("checksum: values, names and bytes, in declaration order") {
  for (const placement where : {placement::slab, placement::separate}) {
    stowage::arena arena(plan, stowage::host_backend{}, {.where = where});
    fill(arena.fields());
    std::vector<field_checksum> seen;
    checksum<listed>(arena, {}, [&](const field_checksum& each) { seen.push_back(each); });
    check_values(seen);
  }
}

TEST_CASE("checksum: the staging memory may be small and odd, not smaller than a lane") {
  stowage::arena arena(plan, stowage::host_backend{});
  fill(arena.fields());
  std::array<std::byte, 16> staging;
  for (std::size_t size = 4; size <= staging.size(); ++size) {
    std::vector<field_checksum> seen;
    checksum<listed>(arena, {}, std::span(staging).first(size),
                     [&](const field_checksum& each) { seen.push_back(each); });
    check_values(seen);
  }
  const auto refused = [&](std::size_t size) {
    checksum<listed>(arena, {}, std::span(staging).first(size), [](const field_checksum&) {});
  };
  CHECK_THROWS_WITH_AS(refused(3), "stowage: a checksum needs at least 4 bytes of staging memory",
                       stowage::usage_error);
  CHECK_THROWS_AS(refused(0), stowage::usage_error);
}

TEST_CASE("checksum: lanes that are not finite are skipped and counted") {
  stowage::arena arena(plan, stowage::host_backend{});
  fill(arena.fields());
  float* const numbers = arena->numbers.data();
  numbers[0] = std::numeric_limits<float>::infinity();
  numbers[1] = -std::numeric_limits<float>::infinity();
  numbers[2] = std::numeric_limits<float>::quiet_NaN();
  numbers[3] = -4.0F;
  std::vector<field_checksum> seen;
  checksum<listed>(arena, {}, [&](const field_checksum& each) { seen.push_back(each); });
  REQUIRE(seen.size() == 3);
  CHECK(seen[0].skipped_lanes == 3);
  CHECK(seen[0].sum == -4.0);
  CHECK(seen[0].sum_of_squares == 16.0);
  CHECK(seen[0].sum_of_magnitudes == 4.0);
}

TEST_CASE("checksum: adds up in f64") {
  stowage::arena arena(plan, stowage::host_backend{});
  fill(arena.fields());
  const float numbers[] = {16777216.0F, 1.0F, 1.0F, -1.0F}; // 2^24: in f32, 1 more is no more
  for (std::size_t index = 0; index < 4; ++index) arena->numbers.data()[index] = numbers[index];
  std::vector<field_checksum> seen;
  checksum<listed>(arena, {}, [&](const field_checksum& each) { seen.push_back(each); });
  CHECK(seen[0].sum == 16777217.0);
  CHECK(seen[0].sum_of_squares == 281474976710659.0); // 2^48 + 3
  CHECK(seen[0].sum_of_magnitudes == 16777219.0);
}

struct large_fields {
  buffer<float, shape<10001>, zero::never, tag<listed>> numbers; // 40004 bytes: three pieces
  buffer<float, shape<2>, zero::never, tag<listed>, stowage::copies<2>> twice;
};

TEST_CASE("checksum: of more than one piece; of the first instance of copies") {
  stowage::arena arena(stowage::make_plan<large_fields>(params{}), stowage::recording_backend<>{});
  for (std::size_t index = 0; index < 10001; ++index)
    arena->numbers.data()[index] = index % 2 == 0 ? 2.0F : -1.0F;
  for (std::size_t copy = 0; copy < 2; ++copy) {
    for (float& number : arena->twice.copy(copy).span()) number = copy == 0 ? 3.0F : 100.0F;
  }
  arena.backend().clear();
  std::vector<field_checksum> seen;
  checksum<listed>(arena, {}, [&](const field_checksum& each) { seen.push_back(each); });
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].sum == 5001 * 2.0 - 5000.0);
  CHECK(seen[0].sum_of_squares == 5001 * 4.0 + 5000.0);
  CHECK(seen[0].sum_of_magnitudes == 5001 * 2.0 + 5000.0);
  CHECK(seen[1].bytes == 8);
  CHECK(seen[1].sum == 6.0);
  // The stream is waited for before the first copy and after each.
  const auto& calls = arena.backend().calls();
  REQUIRE(calls.size() == 1 + 2 * (3 + 1));
  CHECK(calls[0].what == operation::synchronize);
  for (std::size_t call = 1; call < calls.size(); ++call)
    CHECK(calls[call].what == (call % 2 == 1 ? operation::copy_to_host : operation::synchronize));
  CHECK(calls[1].bytes == 16384);
  CHECK(calls[5].bytes == 40004 - 2 * 16384);
}

TEST_CASE("checksum: an empty list calls nothing but the wait") {
  stowage::arena arena(plan, stowage::recording_backend<>{});
  arena.backend().clear();
  int called = 0;
  checksum<never_used>(arena, {}, [&](const field_checksum&) { ++called; });
  CHECK(called == 0);
  REQUIRE(arena.backend().calls().size() == 1);
  CHECK(arena.backend().calls()[0].what == operation::synchronize);
}

TEST_CASE("checksum: a failed copy skips that buffer and says so, for every copy") {
  std::array<std::byte, 8> staging; // two copies of `numbers`, one of each other
  const std::size_t field_of_copy[] = {0, 0, 1, 2};
  for (std::size_t k = 1; k <= 4; ++k) {
    CAPTURE(k);
    stowage::failing_backend<> backend;
    stowage::arena arena(plan, backend);
    fill(arena.fields());
    backend.fail(operation::copy_to_host, k);
    std::vector<field_checksum> seen;
    checksum<listed>(arena, {}, staging, [&](const field_checksum& each) { seen.push_back(each); });
    REQUIRE(seen.size() == 3);
    for (std::size_t field = 0; field < 3; ++field)
      CHECK(seen[field].copied == (field != field_of_copy[k - 1]));
    const field_checksum& failed = seen[field_of_copy[k - 1]];
    CHECK(failed.bytes == plan.bytes(failed.name)); // still named
    CHECK(failed.sum == 0.0);
    // The next one is whole again.
    seen.clear();
    checksum<listed>(arena, {}, staging, [&](const field_checksum& each) { seen.push_back(each); });
    check_values(seen);
  }
}

TEST_CASE("checksum: a failed wait skips that buffer, and the first one leaves as it is") {
  std::array<std::byte, 8> staging;
  const std::size_t field_of_wait[] = {0, 0, 1, 2};
  for (std::size_t k = 1; k <= 5; ++k) {
    CAPTURE(k);
    stowage::failing_backend<> backend;
    stowage::arena arena(plan, backend);
    fill(arena.fields());
    backend.fail(operation::synchronize, k);
    std::vector<field_checksum> seen;
    const auto run = [&] {
      checksum<listed>(arena, {}, staging, [&](const field_checksum& each) { seen.push_back(each); });
    };
    if (k == 1) {
      CHECK_THROWS_AS(run(), stowage::backend_error);
      CHECK(seen.empty());
      continue;
    }
    run();
    REQUIRE(seen.size() == 3);
    for (std::size_t field = 0; field < 3; ++field)
      CHECK(seen[field].copied == (field != field_of_wait[k - 2]));
  }
}

/// The host with streams that say whether they are captured.
struct capturing : stowage::recording_backend<> {
  struct stream_type : stowage::host_stream {
    bool captured = false;
  };
  [[nodiscard]] bool is_capturing(stream_type stream) { return stream.captured; }
};
static_assert(stowage::capturing_backend<capturing>);

TEST_CASE("checksum: refused with the reason while the stream is capturing") {
  capturing backend;
  stowage::arena arena(plan, backend);
  fill(arena.fields());
  backend.clear();
  std::vector<field_checksum> seen;
  const auto keep = [&](const field_checksum& each) { seen.push_back(each); };
  CHECK_THROWS_WITH_AS(checksum<listed>(arena, {{}, true}, keep),
                       "stowage: a checksum, which waits for the stream, is not possible while the stream "
                       "captures; do it before the capture begins",
                       stowage::usage_error);
  CHECK(seen.empty());
  CHECK(backend.calls().empty()); // it did not wait
  checksum<listed>(arena, {{}, false}, keep);
  check_values(seen);
}

TEST_CASE("checksum: refused on a released arena") {
  stowage::arena arena(plan, stowage::host_backend{});
  CHECK(arena.release().ok());
  CHECK_THROWS_WITH_AS(checksum<listed>(arena, {}, [](const field_checksum&) {}),
                       "stowage: checksum was called on an arena that is released or moved from",
                       stowage::usage_error);
}

TEST_CASE("checksum: the log line") {
  field_checksum line{.name = "numbers", .bytes = 16, .sum = 2.5, .sum_of_squares = 14.25};
  line.sum_of_magnitudes = 6.5;
  CHECK(stowage::format("step 3", line) ==
        "[step 3] numbers: 16 bytes, sum 2.5, squares 14.25, magnitudes 6.5");
  line.sum = 0.1; // every digit, so that two lines can be compared
  line.skipped_lanes = 2;
  CHECK(stowage::format("step 3", line) ==
        "[step 3] numbers: 16 bytes, sum 0.10000000000000001, squares 14.25, magnitudes 6.5, 2 lanes not "
        "finite");
  line.copied = false;
  CHECK(stowage::format("step 3", line) ==
        "[step 3] numbers: 16 bytes, skipped: the copy to the host failed");
  line = {.name = "numbers", .bytes = 16};
  line.sum = -std::numeric_limits<double>::max(); // the longest
  line.sum_of_squares = -std::numeric_limits<double>::max();
  line.sum_of_magnitudes = -std::numeric_limits<double>::max();
  CHECK(stowage::format("", line) ==
        "[] numbers: 16 bytes, sum -1.7976931348623157e+308, squares -1.7976931348623157e+308, magnitudes "
        "-1.7976931348623157e+308");
}

} // namespace
