#pragma once

// Elastic arenas, one suite for all backends that map memory: random sequences against a model, and the failure of every
// call that maps memory, clears or copies.
//
// A rig makes backends and can make the k-th of their calls fail. It has
//
//   make()          a backend for one arena; elastic
//   stream()        a stream for it
//   width()         bytes of a row, so that fields are several granules large
//   fail(k)         the k-th low call from now on fails once; 0 takes that back. Its result says whether it has failed
//   outstanding()   what of addresses, memory and handles was not given back

#include <stowage/elastic.hpp>
#include <stowage/regions.hpp>
#include <stowage/traits/align.hpp>
#include <stowage/traits/copies.hpp>
#include <stowage/traits/pad_fill.hpp>
#include <stowage/traits/tag.hpp>
#include <stowage/traits/tail.hpp>
#include <stowage/traits/when.hpp>
#include <stowage/traits/zero.hpp>
#include <stowage/traits/zero_at_construction.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace test {

struct elastic_params {
  stowage::tokens capacity{};
  std::size_t width = 0;
  bool extra = false;
};

namespace elastic {

inline constexpr stowage::dim<&elastic_params::capacity> M{"M"};
inline constexpr stowage::dim<&elastic_params::width> W{"W"};
using byte = std::uint8_t;
template <class Shape, class... Traits> using bytes = stowage::buffer<byte, Shape, Traits...>;

struct listed;

struct pair {
  stowage::part<byte, stowage::shape<M, 8>> keys;
  stowage::part<byte, stowage::shape<M, W>> values;
};

struct fields {
  bytes<stowage::shape<M, W>, stowage::zero::rows> plain;
  bytes<stowage::shape<stowage::pad<16>(M), 3>, stowage::zero::rows, stowage::align<1>> padded;
  bytes<stowage::shape<M, W>, stowage::zero::rows, stowage::copies<2>> twice;
  stowage::buffer<stowage::regions<pair>, stowage::zero::rows> both;
  bytes<stowage::shape<M, W>, stowage::zero::full, stowage::when<&elastic_params::extra>> maybe;
  bytes<stowage::shape<5, W>, stowage::zero::full, stowage::tag<listed>> whole;
  bytes<stowage::shape<M, 5>, stowage::zero::never, stowage::zero_at_construction> counters;
  bytes<stowage::shape<M, W>, stowage::zero::never, stowage::pad_fill<1>, stowage::copies<2>> scales;
  bytes<stowage::shape<M, W>, stowage::zero::never, stowage::tail<96>, stowage::tag<listed>> kept;
};
using plan = stowage::plan<fields, elastic_params>;

enum class cleared : unsigned char { rows, whole, never };

/// What the tensors are, in numbers. Rows are counted in M, in ceil16(M) or not at all.
struct tensor {
  const char* field;
  std::size_t row_bytes; // 0 stands for W
  std::size_t rows;      // 0 stands for M, 16 for ceil16(M)
  cleared policy;
  int at_construction; // -1: anything
  std::size_t copies;
  bool tagged;
};
inline constexpr std::array<tensor, 10> tensors{{
    {"plain", 0, 0, cleared::rows, -1, 1, false},
    {"padded", 3, 16, cleared::rows, -1, 1, false},
    {"twice", 0, 0, cleared::rows, -1, 2, false},
    {"both.keys", 8, 0, cleared::rows, -1, 1, false},
    {"both.values", 0, 0, cleared::rows, -1, 1, false},
    {"maybe", 0, 0, cleared::whole, -1, 1, false},
    {"whole", 0, 5, cleared::whole, -1, 1, true},
    {"counters", 5, 0, cleared::never, 0, 1, false},
    {"scales", 0, 0, cleared::never, 1, 2, false},
    {"kept", 0, 0, cleared::never, -1, 1, true},
}};
inline constexpr std::size_t maybe = 5;

/// Start of a tensor, by the handles.
inline byte* start_of(const fields& list, std::size_t index, std::size_t copy) {
  switch (index) {
    case 0: return list.plain.data();
    case 1: return list.padded.data();
    case 2: return list.twice.copy(copy).data();
    case 3: return list.both.parts().keys.data();
    case 4: return list.both.parts().values.data();
    case 5: return list.maybe.data();
    case 6: return list.whole.data();
    case 7: return list.counters.data();
    case 8: return list.scales.copy(copy).data();
    default: return list.kept.data();
  }
}

/// What an arena holds: a value for each row, -1 where it may be anything.
class model {
public:
  explicit model(const elastic_params& params) : params_(params) {
    for (std::size_t index = 0; index < tensors.size(); ++index) {
      for (std::size_t copy = 0; copy < tensors[index].copies; ++copy)
        rows_[index].push_back(std::vector<int>(rows(index, params), tensors[index].at_construction));
    }
  }

  [[nodiscard]] const elastic_params& params() const { return params_; }
  [[nodiscard]] std::vector<int>& at(std::size_t index, std::size_t copy) { return rows_[index][copy]; }
  [[nodiscard]] std::size_t row_bytes(std::size_t index) const {
    return tensors[index].row_bytes == 0 ? params_.width : tensors[index].row_bytes;
  }

  static std::size_t rows(std::size_t index, const elastic_params& params) {
    const std::size_t capacity = params.capacity.value;
    if (index == maybe && !params.extra) return 0;
    if (tensors[index].rows == 0) return capacity;
    return tensors[index].rows == 16 ? (capacity + 15) / 16 * 16 : tensors[index].rows;
  }

  /// Everything as in a new arena.
  void renew() { *this = model(params_); }

  void zero_all() {
    visit([](std::size_t index, std::vector<int>& values) {
      if (tensors[index].policy != cleared::never) std::fill(values.begin(), values.end(), 0);
    });
  }
  void zero_tagged() {
    visit([](std::size_t index, std::vector<int>& values) {
      if (tensors[index].tagged) std::fill(values.begin(), values.end(), 0);
    });
  }
  void zero_rows(std::size_t first, std::size_t last, bool with_whole) {
    const std::size_t capacity = params_.capacity.value;
    visit([&](std::size_t index, std::vector<int>& values) {
      if (tensors[index].policy == cleared::whole && with_whole) std::fill(values.begin(), values.end(), 0);
      if (tensors[index].policy != cleared::rows || first >= last) return;
      std::size_t reached = std::min(last, capacity);
      if (tensors[index].rows == 16) reached = (reached + 15) / 16 * 16;
      for (std::size_t row = std::min(first, capacity); row < reached; ++row) values[row] = 0;
    });
  }
  void resize(const elastic_params& wanted) {
    model next(wanted);
    for (std::size_t index = 0; index < tensors.size(); ++index) {
      if (tensors[index].row_bytes == 0 && wanted.width != params_.width) continue;
      for (std::size_t copy = 0; copy < tensors[index].copies; ++copy) {
        const std::vector<int>& old = rows_[index][copy];
        std::vector<int>& now = next.rows_[index][copy];
        std::copy_n(old.begin(), std::min(old.size(), now.size()), now.begin());
      }
    }
    *this = std::move(next);
  }

private:
  template <class Visit> void visit(const Visit& what) {
    for (std::size_t index = 0; index < tensors.size(); ++index) {
      for (std::vector<int>& values : rows_[index]) what(index, values);
    }
  }

  elastic_params params_;
  std::array<std::vector<std::vector<int>>, tensors.size()> rows_;
};

/// Writes a value of its own to each row, and remembers it.
template <class Arena, class Stream>
void write(Arena& arena, model& expected, Stream stream, std::mt19937& random) {
  std::vector<byte> data;
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    for (std::size_t copy = 0; copy < tensors[index].copies; ++copy) {
      std::vector<int>& values = expected.at(index, copy);
      if (values.empty()) continue;
      data.resize(values.size() * expected.row_bytes(index));
      for (std::size_t row = 0; row < values.size(); ++row) {
        values[row] = static_cast<int>(random() % 256);
        std::fill_n(data.begin() + static_cast<std::ptrdiff_t>(row * expected.row_bytes(index)),
                    expected.row_bytes(index), static_cast<byte>(values[row]));
      }
      arena.backend().copy_from_host(stream, start_of(arena.fields(), index, copy), data.data(), data.size());
      arena.backend().synchronize(stream);
    }
  }
}

/// The first row that is not as expected, or the empty string.
template <class Arena, class Stream>
std::string first_difference(Arena& arena, model& expected, Stream stream) {
  std::vector<byte> data;
  std::vector<byte> wanted;
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    for (std::size_t copy = 0; copy < tensors[index].copies; ++copy) {
      const std::vector<int>& values = expected.at(index, copy);
      const byte* const start = start_of(arena.fields(), index, copy);
      if (values.empty() != (start == nullptr)) return std::string(tensors[index].field) + ": null or not";
      if (values.empty()) continue;
      const std::size_t row_bytes = expected.row_bytes(index);
      data.resize(values.size() * row_bytes);
      arena.backend().copy_to_host(stream, data.data(), start, data.size());
      arena.backend().synchronize(stream);
      for (std::size_t row = 0; row < values.size(); ++row) {
        if (values[row] < 0) continue;
        wanted.assign(row_bytes, static_cast<byte>(values[row]));
        const byte* const found = data.data() + row * row_bytes;
        if (std::memcmp(found, wanted.data(), row_bytes) == 0) continue;
        const byte* const wrong = std::mismatch(found, found + row_bytes, wanted.begin()).first;
        return std::string(tensors[index].field) + ": row " + std::to_string(row) + " holds " +
               std::to_string(*wrong) + " instead of " + std::to_string(values[row]);
      }
    }
  }
  return {};
}

template <class Call> std::string usage_error_of(const Call& call) {
  try {
    call();
  } catch (const stowage::usage_error& error) {
    return error.what();
  }
  return {};
}

/// Every pass, copy and view of an arena that sleeps is refused, with the reason.
template <class Arena, class Stream> void check_refusals(Arena& arena, Stream stream) {
  const auto refused = [&](const auto& call) {
    return usage_error_of(call).find("asleep; wake() it first") != std::string::npos;
  };
  CHECK(refused([&] { arena.zero_all(stream); }));
  CHECK(refused([&] { arena.zero_rows(stream, stowage::tokens{1}); }));
  CHECK(refused([&] { arena.zero_rows(stream, stowage::tokens{1}, stowage::tokens{2}); }));
  CHECK(refused([&] { arena.template zero_tagged<listed>(stream); }));
  CHECK(refused([&] { static_cast<void>(arena.row_segments(stowage::tokens{1})); }));
  CHECK(refused([&] { static_cast<void>(arena.device_view()); }));
  CHECK(refused([&] { arena.require_generation(arena.generation()); }));
  byte there{};
  CHECK_FALSE(usage_error_of([&] { arena.backend().copy_to_host(stream, &there, arena.slab(), 1); }).empty());
  CHECK_FALSE(
      usage_error_of([&] { arena.backend().copy_from_host(stream, arena.slab(), &there, 1); }).empty());
  for (std::size_t index = 0; index < tensors.size(); ++index)
    CHECK(start_of(arena.fields(), index, 0) == nullptr);
}

/// The addresses of all tensors.
inline std::vector<byte*> addresses_of(const fields& list) {
  std::vector<byte*> all;
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    for (std::size_t copy = 0; copy < tensors[index].copies; ++copy)
      all.push_back(start_of(list, index, copy));
  }
  return all;
}

constexpr std::size_t most_tokens = 40;

template <class Rig> elastic_params largest(const Rig& rig) {
  return {stowage::tokens{most_tokens}, rig.width(), true};
}

/// A random walk of `steps` through sleeping, waking, resizing and passes.
template <class Rig> void walk(std::uint32_t seed, std::size_t steps, stowage::elastic_placement where) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random()) % limit; };
  Rig rig;
  const auto stream = rig.stream();
  const bool stable = where == stowage::elastic_placement::stable;
  {
    auto backend = rig.make();
    elastic_params params{stowage::tokens{1 + below(most_tokens)}, rig.width(), below(2) == 0};
    const plan most(largest(rig));
    using arena_type = stowage::elastic_arena<fields, elastic_params, decltype(backend)&>;
    std::optional<arena_type> arena;
    arena.emplace(plan(params), most, backend, typename arena_type::options_type{where, stream});
    model expected(params);
    model when_woken = expected;
    std::uint64_t generation = arena->generation();
    std::vector<byte*> addresses = addresses_of(arena->fields());
    for (std::size_t step = 0; step < steps; ++step) {
      CAPTURE(seed);
      CAPTURE(step);
      const std::size_t what = below(14);
      CAPTURE(what);
      if (what == 0) {
        arena->sleep(stream);
        if (!arena->keeps_contents()) when_woken.renew();
        REQUIRE(arena->asleep());
      } else if (what == 1) {
        const bool had_contents = !arena->asleep() || arena->keeps_contents();
        arena->sleep(stowage::keep_contents, stream);
        REQUIRE(arena->asleep());
        REQUIRE(arena->keeps_contents() == had_contents);
      } else if (what < 5) {
        arena->wake(stream);
        expected = when_woken;
        REQUIRE_FALSE(arena->asleep());
        REQUIRE_FALSE(arena->keeps_contents());
        if (!addresses.empty()) REQUIRE((addresses_of(arena->fields()) == addresses));
      } else if (what < 8) {
        elastic_params wanted = params;
        wanted.capacity = stowage::tokens{1 + below(most_tokens)};
        if (below(4) == 0) wanted.extra = !wanted.extra;
        if (below(8) == 0) wanted.width = rig.width() / (1 + below(2));
        if (arena->keeps_contents()) {
          CHECK(usage_error_of([&] { arena->resize(wanted, stream); }).find("keeps its contents") !=
                std::string::npos);
        } else {
          const bool same = plan(wanted).hash() == plan(params).hash();
          const bool was_asleep = arena->asleep();
          arena->resize(wanted, stream);
          // keys grow or shrink in front of values; maybe goes.
          const bool moves =
              stable ? wanted.capacity.value != params.capacity.value || (params.extra && !wanted.extra)
                     : !same;
          CHECK((arena->generation() != generation) == moves);
          generation = arena->generation();
          expected.resize(wanted);
          if (was_asleep || (!stable && !same)) expected.renew();
          params = wanted;
          when_woken = expected;
          if (!was_asleep) {
            const std::vector<byte*> now = addresses_of(arena->fields());
            for (std::size_t index = 0; stable && index < now.size(); ++index) {
              const bool is_values = index == 5; // behind plain, padded, two of twice and keys
              if (!is_values && now[index] != nullptr && addresses[index] != nullptr)
                CHECK(now[index] == addresses[index]);
            }
            addresses = now;
          } else {
            addresses = {};
          }
        }
      } else if (what == 8) {
        elastic_params beyond = largest(rig);
        beyond.capacity = stowage::tokens{most_tokens + 1 + below(100)};
        if (!arena->keeps_contents()) CHECK_THROWS_AS(arena->resize(beyond, stream), stowage::bounds_error);
      } else if (what == 9) {
        auto moved = std::move(*arena);
        arena.emplace(std::move(moved));
      } else if (arena->asleep()) {
        check_refusals(*arena, stream);
      } else if (what == 10) {
        write(*arena, expected, stream, random);
      } else {
        const std::size_t count = below(most_tokens + 4);
        const std::size_t last = below(most_tokens + 4);
        switch (below(4)) {
          case 0:
            arena->zero_all(stream);
            expected.zero_all();
            break;
          case 1:
            arena->zero_rows(stream, stowage::tokens{count});
            expected.zero_rows(0, count, true);
            break;
          case 2:
            arena->zero_rows(stream, stowage::tokens{count}, stowage::tokens{last});
            expected.zero_rows(count, last, false);
            break;
          default: arena->template zero_tagged<listed>(stream); expected.zero_tagged();
        }
      }
      if (arena->asleep()) {
        REQUIRE(arena->mapped_bytes() == 0);
      } else {
        if (addresses.empty()) addresses = addresses_of(arena->fields());
        REQUIRE(arena->mapped_bytes() >= arena->bytes_awake());
        REQUIRE(first_difference(*arena, expected, stream) == "");
        when_woken = expected;
      }
      CHECK(arena->params().capacity.value == params.capacity.value);
    }
    CHECK(arena->release().ok());
    CHECK(arena->release().ok());
    CHECK_THROWS_AS(arena->wake(stream), stowage::usage_error);
    CHECK_THROWS_AS(arena->sleep(stream), stowage::usage_error);
    CHECK_THROWS_AS(arena->resize(params, stream), stowage::usage_error);
  }
  CHECK(rig.outstanding() == 0);
}

enum class operation : unsigned char {
  construct,
  sleep,
  sleep_keeping,
  wake,
  wake_kept,
  grow,
  shrink,
  narrow
};

/// Lets every call of an operation fail once, the k-th at the k-th time. Returns how many calls it makes.
template <class Rig> std::size_t fail_every_call(operation what, stowage::elastic_placement where) {
  CAPTURE(static_cast<int>(what));
  CAPTURE(static_cast<int>(where));
  const bool stable = where == stowage::elastic_placement::stable;
  for (std::size_t k = 1;; ++k) {
    CAPTURE(k);
    REQUIRE(k < 1000);
    Rig rig;
    const auto stream = rig.stream();
    bool failed = false;
    {
      auto backend = rig.make();
      using arena_type = stowage::elastic_arena<fields, elastic_params, decltype(backend)&>;
      const typename arena_type::options_type options{where, stream};
      const plan most(largest(rig));
      const elastic_params small{stowage::tokens{9}, rig.width(), true};
      const elastic_params grown{stowage::tokens{37}, rig.width(), true};
      const elastic_params narrow{stowage::tokens{30}, rig.width() / 2, false};
      const elastic_params begin = what == operation::shrink || what == operation::narrow ? grown : small;
      if (what == operation::construct) {
        rig.fail(k);
        bool threw = false;
        try {
          arena_type arena(plan(begin), most, backend, options);
          failed = rig.fail(0);
        } catch (const std::exception&) {
          threw = true;
          failed = rig.fail(0);
        }
        CHECK(threw == failed);
      } else {
        std::mt19937 random(7);
        arena_type arena(plan(begin), most, backend, options);
        model expected(begin);
        write(arena, expected, stream, random);
        if (what == operation::wake) arena.sleep(stream);
        if (what == operation::wake_kept) arena.sleep(stowage::keep_contents, stream);
        const bool begins_asleep = arena.asleep();
        const std::uint64_t generation = arena.generation();
        rig.fail(k);
        bool threw = false;
        try {
          switch (what) {
            case operation::sleep: arena.sleep(stream); break;
            case operation::sleep_keeping: arena.sleep(stowage::keep_contents, stream); break;
            case operation::wake:
            case operation::wake_kept: arena.wake(stream); break;
            case operation::grow: arena.resize(grown, stream); break;
            case operation::shrink: arena.resize(small, stream); break;
            default: arena.resize(narrow, stream);
          }
        } catch (const std::exception& error) {
          threw = true;
          CHECK(std::string(error.what()).find("stowage: ") == 0);
        }
        failed = rig.fail(0);
        CHECK_FALSE((threw && !failed)); // a failure can be made good, where only less memory is given back

        const bool resized =
            what == operation::grow || what == operation::shrink || what == operation::narrow;
        if (!failed) CHECK(arena.asleep() == (what == operation::sleep || what == operation::sleep_keeping));
        if (threw && begins_asleep) {
          CHECK(arena.asleep());
          CHECK(arena.keeps_contents() == (what == operation::wake_kept));
        }
        if (resized && arena.params().capacity != begin.capacity) {
          if (stable) {
            expected.resize(arena.params());
          } else {
            expected = model(arena.params());
          }
        } else if (resized) {
          CHECK(threw);
          CHECK(arena.generation() == generation);
        }
        if (what == operation::wake) expected.renew();
        if (arena.asleep()) {
          if (!arena.keeps_contents()) expected.renew();
          CHECK(arena.keeps_contents() == (what == operation::sleep_keeping || what == operation::wake_kept));
          CHECK_FALSE(usage_error_of([&] { arena.zero_all(stream); }).empty());
          arena.sleep(stream); // what a failure has left mapped goes
          CHECK(arena.mapped_bytes() == 0);
          arena.wake(stream);
        }
        CHECK(first_difference(arena, expected, stream) == "");
        // Everything works afterwards.
        arena.zero_all(stream);
        expected.zero_all();
        arena.resize(grown, stream);
        if (arena.where() == stowage::elastic_placement::compact && expected.params().capacity.value != 37) {
          expected = model(grown);
        } else {
          expected.resize(grown);
        }
        CHECK(first_difference(arena, expected, stream) == "");
        CHECK(arena.release().ok());
      }
    }
    CHECK(rig.outstanding() == 0);
    if (!failed) return k - 1;
  }
}

} // namespace elastic
} // namespace test
