#pragma once

// Failure injection, one suite for all backends. In every public operation that makes calls of a backend, each of
// these calls fails once. Then: nothing is leaked, nothing is given back twice or with another size, no call goes to
// memory that is not there, the arena is usable or cleanly empty, and the error names what failed.
//
// How many calls an operation makes is written out, so that a suite which fails nothing does not pass.
//
//   namespace test::failures {
//   TEST_CASE_TEMPLATE_INVOKE(failure_suite, rig<host_source>, ...);
//   }

#include <stowage/arena.hpp>
#include <stowage/backend/any.hpp>
#include <stowage/backend/failing.hpp>
#include <stowage/backend/host.hpp>
#include <stowage/backend/recording.hpp>
#include <stowage/carve.hpp>
#include <stowage/checksum.hpp>
#include <stowage/cursor.hpp>
#include <stowage/guards.hpp>
#include <stowage/regions.hpp>
#include <stowage/teardown.hpp>
#include <stowage/traits/copies.hpp>
#include <stowage/traits/pad_fill.hpp>
#include <stowage/traits/placeholder.hpp>
#include <stowage/traits/tag.hpp>
#include <stowage/traits/when.hpp>
#include <stowage/traits/zero_at_construction.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace test {

/// What the memory of a backend went through.
class ledger {
public:
  void allocated(void* address, std::size_t bytes, std::size_t alignment) {
    if (bytes == 0) complain("0 bytes were allocated");
    if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0) complain("an allocation is not aligned");
    live_.push_back({address, bytes, alignment});
  }
  void given_back(void* address, std::size_t bytes, std::size_t alignment) {
    for (auto found = live_.begin(); found != live_.end(); ++found) {
      if (found->address != address) continue;
      if (found->bytes != bytes) complain("memory was given back with another size");
      if (found->alignment != alignment) complain("memory was given back with another alignment");
      live_.erase(found);
      return;
    }
    complain("memory was given back that was not there");
  }
  void touched(const void* address, std::size_t bytes) {
    if (bytes == 0) complain("a call for 0 bytes");
    const auto* const begin = static_cast<const std::byte*>(address);
    for (const block& each : live_) {
      const auto* const start = static_cast<const std::byte*>(each.address);
      if (begin >= start && begin + bytes <= start + each.bytes) return;
    }
    complain("a call went to memory that is not there");
  }
  void complain(std::string what) { complaints_.push_back(std::move(what)); }

  [[nodiscard]] std::size_t blocks() const { return live_.size(); }
  /// All complaints; empty where everything is in order.
  [[nodiscard]] std::string complaints() const {
    std::string all;
    for (const std::string& each : complaints_) all += each + "; ";
    return all;
  }

private:
  struct block {
    void* address;
    std::size_t bytes;
    std::size_t alignment;
  };
  std::vector<block> live_;
  std::vector<std::string> complaints_;
};

/// Passes every call on and keeps the books, which must outlive it.
template <stowage::backend Inner> class audited_backend {
public:
  using stream_type = typename Inner::stream_type;

  audited_backend(Inner inner, ledger& books) : inner_(std::move(inner)), books_(&books) {}

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    void* const address = inner_.allocate(bytes, alignment);
    books_->allocated(address, bytes, alignment);
    return address;
  }
  stowage::status deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept {
    books_->given_back(address, bytes, alignment);
    return inner_.deallocate(address, bytes, alignment);
  }
  void zero(stream_type stream, std::span<const stowage::segment> segments) {
    if (segments.empty()) books_->complain("a pass without segments");
    for (const stowage::segment& each : segments) books_->touched(each.address, each.bytes);
    inner_.zero(stream, segments);
  }
  void copy_to_host(stream_type stream, void* destination, const void* source, std::size_t bytes) {
    books_->touched(source, bytes);
    inner_.copy_to_host(stream, destination, source, bytes);
  }
  void copy_from_host(stream_type stream, void* destination, const void* source, std::size_t bytes) {
    books_->touched(destination, bytes);
    inner_.copy_from_host(stream, destination, source, bytes);
  }
  void synchronize(stream_type stream) { inner_.synchronize(stream); }

private:
  Inner inner_;
  ledger* books_;
};

// A source makes the backend under test and the stream it works on, anew for every failure. `variants` is how many of
// them there are.

struct host_source {
  using backend_type = stowage::host_backend;
  static constexpr std::size_t variants = 1;
  explicit host_source(std::size_t /*variant*/) {}
  [[nodiscard]] backend_type make() { return {}; }
  [[nodiscard]] stowage::host_stream stream() { return {}; }
};

/// A backend, its books, and the failure in front of both.
template <class Source> class rig {
public:
  using failing_type = stowage::failing_backend<audited_backend<typename Source::backend_type>>;
  using backend_type = failing_type;
  using stream_type = typename backend_type::stream_type;
  static constexpr std::size_t variants = Source::variants;

  explicit rig(std::size_t variant) : source_(variant) {}

  [[nodiscard]] backend_type& backend() { return failing_; }
  [[nodiscard]] failing_type& failing() { return failing_; }
  [[nodiscard]] ledger& books() { return books_; }
  [[nodiscard]] stream_type stream() { return source_.stream(); }

private:
  Source source_;
  ledger books_;
  failing_type failing_{audited_backend<typename Source::backend_type>(source_.make(), books_)};
};
/// The same, called through any_backend: the failure comes from behind it.
template <class Source> class rig_behind_any {
public:
  using failing_type = typename rig<Source>::failing_type;
  using backend_type = stowage::any_backend;
  using stream_type = stowage::any_stream;
  static constexpr std::size_t variants = Source::variants;

  explicit rig_behind_any(std::size_t variant) : rig_(variant) {}

  [[nodiscard]] backend_type& backend() { return any_; }
  [[nodiscard]] failing_type& failing() { return rig_.failing(); }
  [[nodiscard]] ledger& books() { return rig_.books(); }
  [[nodiscard]] stream_type stream() { return rig_.stream(); }

private:
  rig<Source> rig_;
  stowage::any_backend any_{rig_.failing()};
};

namespace failures {

using stowage::buffer;
using stowage::operation;
using stowage::placement;
using stowage::shape;
using stowage::tokens;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  bool off = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
struct listed;

struct key_values {
  stowage::part<std::uint8_t, shape<M>> flags;
  stowage::part<double, shape<M>> values;
};
struct group {
  buffer<float, shape<M>, zero::never> keys;
  buffer<float, shape<M, 2>, zero::full, stowage::copies<2>> values;
};
struct fields {
  buffer<stowage::bf16, shape<stowage::pad<16>(M), 4>, zero::rows, stowage::tag<listed>> states;
  buffer<float, shape<M>, zero::rows, stowage::when<&params::off>> absent;
  group heads;
  buffer<float, shape<8>, zero::never, stowage::zero_at_construction, stowage::tag<listed>> weight;
  buffer<float, shape<M, 40>, zero::never, stowage::pad_fill<1>> scales;
  buffer<stowage::regions<key_values>, zero::rows> pair;
  buffer<std::uint8_t, shape<1024>, zero::never> pool;
  buffer<float, shape<M>, zero::rows, stowage::when<&params::off>, stowage::placeholder<64>> held;
};
using plan_type = stowage::plan<fields, params>;
inline plan_type make_plan(bool guarded = false) {
  const plan_type plan(params{tokens{40}, false});
  return guarded ? plan.with_guards(64) : plan;
}

// M = 40. Bytes of each allocation where each field has its own, in the order of declaration.
struct named_bytes {
  std::string_view name;
  std::size_t bytes;
};
inline constexpr std::array<named_bytes, 8> apart{{
    {"states", 48 * 4 * 2},
    {"heads.keys", 40 * 4},
    {"heads.values", 512 + 40 * 2 * 4}, // two copies, the second at a multiple of 256
    {"weight", 8 * 4},
    {"scales", 40 * 40 * 4},
    {"pair", 40 + 40 * 8},
    {"pool", 1024},
    {"held", 64},
}};
// One behind the other, each at a multiple of 256: states 0, pair 512, held 1024, heads.values 1280 (to 2112),
// heads.keys 2304, weight 2560, scales 2816 (to 9216), pool 9216.
inline constexpr std::size_t slab_bytes = 9216 + 1024;
// With at least 64 bytes in front and behind: states 256, pair 768, held 1280, heads.values 1536 (to 2368), heads.keys
// 2560, weight 2816, scales 3072 (to 9472), pool 9728.
inline constexpr std::size_t guarded_bytes = 9728 + 1024 + 64;
// In front of the first field and behind each of the nine instances. None is longer than 4096 bytes.
inline constexpr std::size_t zones = 10;

/// Calls of each kind, in the order of stowage::operation.
struct call_counts {
  std::size_t allocate = 0;
  std::size_t deallocate = 0;
  std::size_t zero = 0;
  std::size_t copy_to_host = 0;
  std::size_t copy_from_host = 0;
  std::size_t synchronize = 0;

  [[nodiscard]] std::size_t of(operation what) const {
    return std::array<std::size_t, 6>{
        allocate, deallocate, zero, copy_to_host, copy_from_host, synchronize}[static_cast<std::size_t>(
        what)];
  }
};
inline constexpr std::array<std::string_view, 6> call_names{"allocate",     "deallocate",     "zero",
                                                            "copy_to_host", "copy_from_host", "synchronize"};
inline std::string_view name_of(operation what) { return call_names[static_cast<std::size_t>(what)]; }

/// What came of a call that was to fail.
struct attempt {
  bool threw = false;
  /// Of an out_of_memory.
  std::size_t bytes = 0;
  std::string message;
  std::size_t calls = 0;
};

/// The failure that is asked for: the k-th call of a kind.
struct wanted_failure {
  operation what = operation::allocate;
  std::size_t k = 0;
  /// Whether there is such a call.
  bool happens = false;

  /// Makes a call with the failure armed. An error must be the one that belongs to the failure.
  template <class Rig, class Call> attempt during(Rig& rig, const Call& call) const {
    attempt result;
    rig.failing().fail(what, k);
    try {
      call();
    } catch (const stowage::out_of_memory& error) {
      result = {true, error.bytes(), error.what(), 0};
      CHECK(what == operation::allocate);
      CHECK(result.message.find(std::to_string(error.bytes()) + " bytes wanted") != std::string::npos);
    } catch (const stowage::backend_error& error) {
      result = {true, 0, error.what(), 0};
      CHECK(what != operation::allocate);
      CHECK(what != operation::deallocate);
      CHECK(error.code() == 719);
      CHECK(result.message ==
            "stowage: " + std::string(name_of(what)) + " was made to fail by failing_backend");
    }
    result.calls = rig.failing().count(what);
    rig.failing().fail(what, 0);
    // The call was reached, or, one beyond the last, was not.
    if (happens) {
      CHECK(result.calls >= k);
    } else {
      CHECK(result.calls == k - 1);
      CHECK_FALSE(result.threw);
    }
    return result;
  }
};

/// Runs a scenario for each call of each kind, and once for the call behind the last, which does not happen.
template <class Rig, class Scenario>
void for_every_failure(const call_counts& calls, const Scenario& scenario) {
  for (std::size_t kind = 0; kind < call_names.size(); ++kind) {
    const auto what = static_cast<operation>(kind);
    for (std::size_t k = 1; k <= calls.of(what) + 1; ++k) {
      for (std::size_t variant = 0; variant < Rig::variants; ++variant) {
        INFO("failing: ", std::string(name_of(what)), " number ", k, ", backend ", variant);
        Rig rig(variant);
        scenario(rig, wanted_failure{what, k, k <= calls.of(what)});
        CHECK(rig.books().blocks() == 0);
        CHECK(rig.books().complaints() == "");
        CHECK(rig.failing().outstanding() == 0);
      }
    }
  }
}

template <class Rig> using arena_of = stowage::arena<fields, params, typename Rig::backend_type&>;
template <class Rig> auto options_of(Rig& rig, placement where) {
  return stowage::arena_options<typename Rig::stream_type>{where, rig.stream()};
}
template <class Rig> arena_of<Rig> make_arena(Rig& rig, placement where, bool guarded = false) {
  return arena_of<Rig>(make_plan(guarded), rig.backend(), options_of(rig, where));
}

/// Bytes of a field, read through the backend.
template <class Rig> std::vector<unsigned char> read(Rig& rig, const void* address, std::size_t bytes) {
  std::vector<unsigned char> memory(bytes);
  rig.backend().copy_to_host(rig.stream(), memory.data(), address, bytes);
  rig.backend().synchronize(rig.stream());
  return memory;
}
template <class Rig> void fill(Rig& rig, void* address, std::size_t bytes, unsigned char value) {
  const std::vector<unsigned char> memory(bytes, value);
  rig.backend().copy_from_host(rig.stream(), address, memory.data(), bytes);
  rig.backend().synchronize(rig.stream());
}
/// Bytes that are 0 at the start, and whether all others are still `value`.
struct cleared_prefix {
  std::size_t bytes = 0;
  bool rest_is_kept = true;
};
inline cleared_prefix cleared(const std::vector<unsigned char>& memory, unsigned char value) {
  cleared_prefix result;
  while (result.bytes < memory.size() && memory[result.bytes] == 0) ++result.bytes;
  for (std::size_t index = result.bytes; index < memory.size(); ++index) {
    if (memory[index] != value) result.rest_is_kept = false;
  }
  return result;
}

/// That an arena is as good as new, whatever happened before: fields bound, passes do their work, release succeeds.
template <class Rig> void check_usable(Rig& rig, arena_of<Rig>& arena) {
  CHECK_FALSE(arena.released());
  REQUIRE(arena->states.data() != nullptr);
  REQUIRE(arena->heads.values.copy(1).data() != nullptr);
  CHECK(arena->absent.data() == nullptr);
  CHECK(arena->pair->values.data() != nullptr);
  fill(rig, arena->states.data(), 384, 0xab);
  fill(rig, arena->heads.keys.data(), 160, 0xab);
  arena.zero_rows(rig.stream(), tokens{7});
  const cleared_prefix states = cleared(read(rig, arena->states.data(), 384), 0xab);
  CHECK(states.bytes == 16 * 4 * 2); // ceil16(7) rows of 4 bf16
  CHECK(states.rest_is_kept);
  CHECK(cleared(read(rig, arena->heads.keys.data(), 160), 0xab).bytes == 0);
}

/// That nothing of an arena is left.
template <class Arena> void check_empty(Arena& arena) {
  CHECK(arena.released());
  CHECK(arena.slab() == nullptr);
  CHECK(arena->states.data() == nullptr);
  CHECK(arena->heads.values.copy(1).data() == nullptr);
  CHECK(arena->pair->values.data() == nullptr);
  for (std::size_t field = 0; field < plan_type::field_count; ++field) CHECK(arena.address(field) == nullptr);
  CHECK_THROWS_AS(arena.zero_all(), stowage::usage_error);
  CHECK(arena.release().ok()); // a second call does nothing
}

template <class Rig> void construction(placement where, bool guarded, const call_counts& calls) {
  for_every_failure<Rig>(calls, [&](Rig& rig, const wanted_failure& failure) {
    std::optional<arena_of<Rig>> arena;
    const attempt made = failure.during(
        rig, [&] { arena.emplace(make_plan(guarded), rig.backend(), options_of(rig, where)); });
    if (failure.happens) {
      REQUIRE(made.threw);
      CHECK(made.calls == failure.k); // nothing of the kind was tried after it
      CHECK(rig.books().blocks() == 0);
      if (failure.what == operation::allocate) {
        CHECK(made.bytes == (guarded                    ? guarded_bytes
                             : where == placement::slab ? slab_bytes
                                                        : apart[failure.k - 1].bytes));
      }
      // The backend is as good as before.
      arena.emplace(make_plan(guarded), rig.backend(), options_of(rig, where));
    }
    check_usable(rig, *arena);
    const auto scales = read(rig, arena->fields().scales.data(), 6400);
    CHECK(scales[3] == 0x3f); // 1.0f: 00 00 80 3f
    CHECK(scales[6399] == 0x3f);
    CHECK(arena->release().ok());
    check_empty(*arena);
  });
}

/// A pass fails: it throws, and the arena is what it was.
template <class Rig, class Pass> void pass(const call_counts& calls, bool guarded, const Pass& run) {
  for (const placement where : {placement::slab, placement::separate}) {
    if (guarded && where == placement::separate) continue;
    for_every_failure<Rig>(calls, [&](Rig& rig, const wanted_failure& failure) {
      arena_of<Rig> arena = make_arena(rig, where, guarded);
      const void* const states = arena->states.data();
      const std::uint64_t generation = arena.generation();
      const attempt made = failure.during(rig, [&] { run(rig, arena); });
      CHECK(made.threw == failure.happens);
      CHECK(arena->states.data() == states);
      CHECK(arena.generation() == generation);
      CHECK_NOTHROW(run(rig, arena));
      check_usable(rig, arena);
    });
  }
}

/// Memory goes back in reverse order of declaration; a failure stops nothing, and the first is told.
template <class Rig> void release(placement where) {
  const std::size_t blocks = where == placement::slab ? 1 : apart.size();
  for_every_failure<Rig>({0, blocks, 0, 0, 0, 0}, [&](Rig& rig, const wanted_failure& failure) {
    arena_of<Rig> arena = make_arena(rig, where);
    stowage::status status;
    failure.during(rig, [&] { status = arena.release(); });
    CHECK(status.ok() == !failure.happens);
    if (failure.happens) {
      const named_bytes& expected = apart[apart.size() - failure.k];
      CHECK(status.error().operation == "deallocate");
      CHECK(status.error().code == 719);
      CHECK(status.error().subject == (where == placement::slab ? "slab" : expected.name));
      CHECK(status.error().bytes == (where == placement::slab ? slab_bytes : expected.bytes));
    }
    CHECK(rig.books().blocks() == 0);
    check_empty(arena);
  });
}

TEST_CASE_TEMPLATE_DEFINE("failures: every call of every operation", Rig, failure_suite) {
  SUBCASE("construction in a slab") { construction<Rig>(placement::slab, false, {1, 0, 1, 0, 2, 2}); }
  SUBCASE("construction in a slab with guard zones") {
    construction<Rig>(placement::slab, true, {1, 0, 1, 0, 2 + zones, 2 + zones});
  }
  // scales are filled in two pieces; weight is cleared and waited for, scales are waited for.
  SUBCASE("construction in separate allocations") {
    construction<Rig>(placement::separate, false, {apart.size(), 0, 1, 0, 2, 2});
  }
  SUBCASE("construction and the giving back after it") {
    for (const placement where : {placement::slab, placement::separate}) {
      for (std::size_t k = 1; k <= (where == placement::slab ? 1 : apart.size()); ++k) {
        Rig rig(k % Rig::variants);
        rig.failing().fail(operation::synchronize, 2);
        rig.failing().fail(operation::deallocate, k);
        // The first error leaves.
        CHECK_THROWS_WITH_AS(static_cast<void>(make_arena(rig, where)),
                             "stowage: synchronize was made to fail by failing_backend",
                             stowage::backend_error);
        CHECK(rig.books().blocks() == 0);
        CHECK(rig.books().complaints() == "");
      }
    }
  }

  const call_counts one_pass{0, 0, 1, 0, 0, 0};
  SUBCASE("zero_all") {
    pass<Rig>(one_pass, false, [](Rig& rig, auto& arena) { arena.zero_all(rig.stream()); });
    pass<Rig>(one_pass, true, [](Rig& rig, auto& arena) { arena.zero_all(rig.stream()); });
  }
  SUBCASE("zero_rows") {
    pass<Rig>(one_pass, false, [](Rig& rig, auto& arena) { arena.zero_rows(rig.stream(), tokens{3}); });
    pass<Rig>(one_pass, true, [](Rig& rig, auto& arena) { arena.zero_rows(rig.stream(), tokens{3}); });
  }
  SUBCASE("zero_rows over a range") {
    pass<Rig>(one_pass, false,
              [](Rig& rig, auto& arena) { arena.zero_rows(rig.stream(), tokens{3}, tokens{20}); });
    // Nothing to clear is no call.
    pass<Rig>({}, false, [](Rig& rig, auto& arena) { arena.zero_rows(rig.stream(), tokens{3}, tokens{3}); });
  }
  SUBCASE("zero_tagged") {
    pass<Rig>(one_pass, false,
              [](Rig& rig, auto& arena) { arena.template zero_tagged<listed>(rig.stream()); });
  }
  SUBCASE("copies to and from the host") {
    pass<Rig>({0, 0, 0, 1, 1, 1}, false, [](Rig& rig, auto& arena) {
      std::array<unsigned char, 64> bytes{};
      arena.backend().copy_from_host(rig.stream(), arena->held.data(), bytes.data(), bytes.size());
      arena.backend().copy_to_host(rig.stream(), bytes.data(), arena->held.data(), bytes.size());
      arena.backend().synchronize(rig.stream());
    });
  }
  SUBCASE("scan_guards") {
    // One wait for the stream, then each zone is copied and waited for.
    pass<Rig>({0, 0, 0, zones, 0, 1 + zones}, true, [](Rig& rig, auto& arena) {
      const std::size_t damaged =
          stowage::scan_guards(arena, rig.stream(), [](const stowage::guard_damage&) {});
      CHECK(damaged == 0);
    });
  }
  SUBCASE("checksum") {
    // 128 bytes at a time: states in 3 pieces, weight in 1; each is waited for, behind one wait for the stream.
    for_every_failure<Rig>({0, 0, 0, 4, 0, 5}, [](Rig& rig, const wanted_failure& failure) {
      arena_of<Rig> arena = make_arena(rig, placement::slab);
      fill(rig, arena->states.data(), 384, 0);
      std::array<std::byte, 128> staging{};
      std::vector<stowage::field_checksum> sums;
      const attempt made = failure.during(rig, [&] {
        stowage::checksum<listed>(arena, rig.stream(), std::span<std::byte>(staging),
                                  [&](const stowage::field_checksum& each) { sums.push_back(each); });
      });
      const bool first_wait = failure.happens && failure.what == operation::synchronize && failure.k == 1;
      CHECK(made.threw == first_wait);
      if (first_wait) {
        CHECK(sums.empty());
      } else {
        // A piece that cannot be copied costs its field only: the others are told.
        REQUIRE(sums.size() == 2);
        CHECK(sums[0].name == "states");
        CHECK(sums[1].name == "weight");
        const std::size_t piece = failure.what == operation::synchronize ? failure.k - 1 : failure.k;
        // A field that failed is not read on: then later pieces of the plan count for the next field.
        const bool states_fail = failure.happens && piece <= 3;
        CHECK(sums[0].copied == !states_fail);
        CHECK(sums[1].copied == !(failure.happens && piece == 4));
      }
      check_usable(rig, arena);
    });
  }
  SUBCASE("release of a slab") { release<Rig>(placement::slab); }
  SUBCASE("release of separate allocations") { release<Rig>(placement::separate); }
  SUBCASE("the destructor") {
    for (const placement where : {placement::slab, placement::separate}) {
      const std::size_t blocks = where == placement::slab ? 1 : apart.size();
      for_every_failure<Rig>({0, blocks, 0, 0, 0, 0}, [&](Rig& rig, const wanted_failure& failure) {
        std::optional<arena_of<Rig>> arena(make_arena(rig, where));
        CHECK_FALSE(failure.during(rig, [&] { arena.reset(); }).threw);
      });
    }
  }
  SUBCASE("moving into a new arena") {
    for (const placement where : {placement::slab, placement::separate}) {
      for_every_failure<Rig>({}, [&](Rig& rig, const wanted_failure& failure) {
        arena_of<Rig> from = make_arena(rig, where);
        const void* const states = from->states.data();
        failure.during(rig, [&] {
          arena_of<Rig> to(std::move(from));
          CHECK(to->states.data() == states);
          from = std::move(to);
        });
        CHECK(from->states.data() == states);
        check_usable(rig, from);
        const arena_of<Rig> to(std::move(from));
        check_empty(from); // NOLINT(bugprone-use-after-move): a moved-from arena is a released one
      });
    }
  }
  SUBCASE("moving over another arena") {
    for (const placement where : {placement::slab, placement::separate}) {
      const std::size_t blocks = where == placement::slab ? 1 : apart.size();
      for_every_failure<Rig>({0, blocks, 0, 0, 0, 0}, [&](Rig& rig, const wanted_failure& failure) {
        arena_of<Rig> arena = make_arena(rig, where);
        arena_of<Rig> other = make_arena(rig, where);
        const void* const states = other->states.data();
        CHECK_FALSE(failure.during(rig, [&] { arena = std::move(other); }).threw);
        CHECK(rig.books().blocks() == blocks);
        CHECK(arena->states.data() == states);
        check_usable(rig, arena);
        check_empty(other); // NOLINT(bugprone-use-after-move): a moved-from arena is a released one
      });
    }
  }
  SUBCASE("teardown of two arenas") {
    for_every_failure<Rig>({0, 1 + apart.size(), 0, 0, 0, 0}, [](Rig& rig, const wanted_failure& failure) {
      arena_of<Rig> target = make_arena(rig, placement::separate);
      arena_of<Rig> draft = make_arena(rig, placement::slab);
      stowage::teardown resources;
      resources.add("target model", target);
      resources.add("draft model", draft); // released first
      stowage::status status;
      failure.during(rig, [&] { status = resources.release(); });
      CHECK(status.ok() == !failure.happens);
      if (failure.happens) {
        CHECK(status.error().label == (failure.k == 1 ? "draft model" : "target model"));
        CHECK(status.error().subject == (failure.k == 1 ? "slab" : apart[apart.size() + 1 - failure.k].name));
      }
      CHECK(rig.books().blocks() == 0);
      check_empty(target);
      check_empty(draft);
      CHECK(resources.release().ok());
    });
  }
  SUBCASE("what makes no call: views, lists, carving, a cursor, refusals") {
    pass<Rig>({}, true, [](Rig&, auto& arena) {
      CHECK(arena.row_segments(tokens{7}).view().size() >= 1);
      CHECK(arena.device_view().states.data() == arena->states.data());
      arena.require(arena.plan());
      arena.require_generation(arena.generation());
      CHECK_THROWS_AS(arena.require_generation(0), stowage::usage_error);
      CHECK_THROWS_AS(arena.require(plan_type(params{tokens{39}, false}).with_guards(64)),
                      stowage::usage_error);
      const auto parts = stowage::carve<key_values>(arena->pool, params{tokens{100}, false});
      CHECK(parts->values.bytes() == 800);
      CHECK_THROWS_AS(static_cast<void>(stowage::carve<key_values>(arena->pool, params{tokens{200}, false})),
                      stowage::bounds_error);
      CHECK_FALSE(stowage::carving_fits<key_values>(arena->pool, params{tokens{200}, false}));
      stowage::cursor slab(arena->pool);
      CHECK(slab.take(1000, 8).size() == 1000);
      CHECK_THROWS_AS(static_cast<void>(slab.take(25)), stowage::bounds_error);
      CHECK(slab.take(24).size() == 24);
      CHECK_THROWS_AS(static_cast<void>(arena->states.rows(0, 49)), stowage::bounds_error);
    });
  }
}

} // namespace failures
} // namespace test
