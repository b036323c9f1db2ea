// Random field lists: the layout is what a second computation says, and passes clear the bytes that a model of them says,
// for random params, token counts and ranges.

#include "data.hpp"

#include <stowage/arena.hpp>
#include <stowage/backend/host.hpp>
#include <stowage/regions.hpp>
#include <stowage/traits/align.hpp>
#include <stowage/traits/at_least.hpp>
#include <stowage/traits/copies.hpp>
#include <stowage/traits/min_bytes.hpp>
#include <stowage/traits/placeholder.hpp>
#include <stowage/traits/tail.hpp>
#include <stowage/traits/when.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

namespace property {

using stowage::buffer;
using stowage::part;
using stowage::shape;
namespace zero = stowage::zero;

struct params {
  stowage::tokens tokens_of_batch{};
  std::size_t k = 0;
  std::size_t l = 0;
  bool on = false;
};

/// A field, as the second computation has it.
struct expected_field {
  std::string name;
  std::size_t bytes = 0;
  std::size_t offset = 0;
  std::size_t alignment = 1;
  std::size_t stride = 0;
  std::size_t copies = 1;
  std::size_t tail = 0;

  /// Whether a plan has the same.
  [[nodiscard]] bool is(const stowage::field_layout& layout) const {
    const bool sizes = layout.bytes == bytes && layout.copies == copies && layout.tail == tail;
    if (bytes == 0) return sizes && layout.offset == 0;
    return sizes && layout.offset == offset && layout.alignment == alignment && layout.stride == stride;
  }
};

struct range {
  std::size_t begin = 0;
  std::size_t end = 0;
};
/// A row pass, and what it clears of an instance of each field.
struct pass {
  std::size_t first = 0;
  std::size_t last = 0;
  bool with_full = false;
  std::vector<std::vector<range>> cleared;
};

inline constexpr unsigned char poison = 0xab;

/// One field of an arena in host memory: where it is, and what is allocated for it.
struct memory {
  unsigned char* address = nullptr;
  std::size_t allocated = 0;
};

/// The first byte of a field's instances that is not what it must be; a message, empty if there is none.
inline std::string first_difference(const expected_field& field, const memory& at,
                                    const std::vector<range>& cleared) {
  for (std::size_t copy = 0; copy < field.copies; ++copy) {
    std::vector<unsigned char> expected(field.bytes, poison);
    for (const range& each : cleared)
      std::fill(expected.begin() + static_cast<std::ptrdiff_t>(each.begin),
                expected.begin() + static_cast<std::ptrdiff_t>(each.end), static_cast<unsigned char>(0));
    const unsigned char* const start = at.address + copy * field.stride;
    for (std::size_t byte = 0; byte < field.bytes; ++byte) {
      if (start[byte] != expected[byte])
        return field.name + " copy " + std::to_string(copy) + " byte " + std::to_string(byte);
    }
  }
  return {};
}

/// Bytes between and behind the instances, where no pass goes in allocations of their own.
inline std::string first_touched_gap(const expected_field& field, const memory& at) {
  for (std::size_t byte = 0; byte < at.allocated; ++byte) {
    const bool inside = byte % field.stride < field.bytes;
    if (!inside && at.address[byte] != poison) return field.name + " gap at " + std::to_string(byte);
  }
  return {};
}

/// Bytes of the slab that are in no field are cleared only where what lies on both sides is.
inline std::string first_loose_gap(const std::vector<unsigned char>& in_field, const unsigned char* slab,
                                   std::size_t bytes) {
  for (std::size_t byte = 0; byte < bytes; ++byte) {
    if (in_field[byte] != 0 || slab[byte] == poison) continue;
    std::size_t before = byte;
    while (before > 0 && in_field[before] == 0) --before;
    std::size_t behind = byte;
    while (behind < bytes && in_field[behind] == 0) ++behind;
    if (in_field[before] == 0 || slab[before] != 0 || behind == bytes || slab[behind] != 0)
      return "padding at " + std::to_string(byte);
  }
  return {};
}

struct counters {
  std::size_t layouts = 0;
  std::size_t passes = 0;
};
inline counters& counted() {
  static counters all;
  return all;
}

template <class Fields>
void check_passes(const stowage::plan<Fields, params>& plan, const std::vector<expected_field>& fields,
                  const std::vector<pass>& passes) {
  for (const stowage::placement where : {stowage::placement::slab, stowage::placement::separate}) {
    const bool slab = where == stowage::placement::slab;
    CAPTURE(slab);
    stowage::arena arena(plan, stowage::host_backend{},
                         stowage::arena_options<stowage::host_stream>{where, {}});
    std::vector<memory> memories(fields.size());
    std::vector<unsigned char> in_field(plan.slab_bytes(), 0);
    for (std::size_t field = 0; field < fields.size(); ++field) {
      memories[field] = {reinterpret_cast<unsigned char*>(arena.address(field)),
                         plan.layout(field).allocated()};
      CHECK((memories[field].address != nullptr) == (fields[field].bytes != 0));
      for (std::size_t copy = 0; copy < fields[field].copies; ++copy) {
        const std::size_t start = fields[field].offset + copy * fields[field].stride;
        for (std::size_t byte = 0; byte < fields[field].bytes; ++byte) {
          if (in_field[start + byte]++ != 0) FAIL_CHECK("two fields overlap");
        }
      }
    }
    auto* const slab_address = reinterpret_cast<unsigned char*>(arena.slab());
    const auto poison_all = [&] {
      if (slab && slab_address != nullptr) std::memset(slab_address, poison, plan.slab_bytes());
      for (const memory& each : memories) {
        if (!slab && each.address != nullptr) std::memset(each.address, poison, each.allocated);
      }
    };
    const auto check = [&](const auto& cleared_of) {
      std::string difference;
      for (std::size_t field = 0; field < fields.size() && difference.empty(); ++field) {
        if (fields[field].bytes == 0) continue;
        difference = first_difference(fields[field], memories[field], cleared_of(field));
        if (difference.empty() && !slab) difference = first_touched_gap(fields[field], memories[field]);
      }
      if (difference.empty() && slab && slab_address != nullptr)
        difference = first_loose_gap(in_field, slab_address, plan.slab_bytes());
      CHECK(difference == "");
      ++counted().passes;
    };
    for (std::size_t number = 0; number < passes.size(); ++number) {
      const pass& each = passes[number];
      CAPTURE(number);
      CAPTURE(each.first);
      CAPTURE(each.last);
      poison_all();
      if (each.with_full) {
        arena.zero_rows({}, stowage::tokens{each.last});
      } else {
        arena.zero_rows({}, stowage::tokens{each.first}, stowage::tokens{each.last});
      }
      check([&](std::size_t field) { return each.cleared[field]; });
    }
    INFO("zero_all");
    poison_all();
    arena.zero_all();
    check([&](std::size_t field) {
      const bool cleared = plan.table()[field].policy != "never";
      return cleared ? std::vector<range>{{0, fields[field].bytes}} : std::vector<range>{};
    });
    CHECK(arena.release().ok());
  }
}

template <class Fields> void check_list(std::istream& input) {
  const std::size_t field_count = next_size(input);
  const std::size_t cases = next_size(input);
  REQUIRE(stowage::plan<Fields, params>::field_count == field_count);
  for (std::size_t number = 0; number < cases; ++number) {
    params given;
    given.tokens_of_batch = stowage::tokens{next_size(input)};
    given.k = next_size(input);
    given.l = next_size(input);
    given.on = next_size(input) != 0;
    const std::size_t guard = next_size(input);
    INFO("M ", given.tokens_of_batch.value, " K ", given.k, " L ", given.l, " flag ", given.on, " guard ",
         guard);
    auto plan = stowage::make_plan<Fields>(given);
    if (guard != 0) plan = plan.with_guards(guard);
    const std::size_t total = next_size(input);
    const std::size_t slab = next_size(input);
    CHECK(plan.total_bytes() == total);
    CHECK(plan.slab_bytes() == slab);
    CHECK(plan.slab_alignment() == next_size(input));
    CHECK(plan.zeroed_slab_bytes() == next_size(input));
    std::vector<expected_field> fields(field_count);
    for (std::size_t field = 0; field < field_count; ++field) {
      expected_field& expected = fields[field];
      expected.name = next<std::string>(input);
      for (std::size_t* const value : {&expected.bytes, &expected.offset, &expected.alignment,
                                       &expected.stride, &expected.copies, &expected.tail}) {
        *value = next_size(input);
      }
      CAPTURE(expected.name);
      CHECK(plan.name(field) == expected.name);
      CHECK(plan.bytes(field) == expected.bytes);
      CHECK(plan.offset(field) == expected.offset);
      CHECK(expected.is(plan.layout(field)));
    }
    ++counted().layouts;
    std::vector<pass> passes(next_size(input));
    for (pass& each : passes) {
      each.first = next_size(input);
      each.last = next_size(input);
      each.with_full = next_size(input) != 0;
      each.cleared.resize(field_count);
      for (auto& ranges : each.cleared) {
        ranges.resize(next_size(input));
        for (range& part : ranges) {
          part.begin = next_size(input);
          part.end = next_size(input);
        }
      }
    }
    if (guard == 0) check_passes(plan, fields, passes);
  }
}

inline constexpr stowage::dim<&params::tokens_of_batch> M{"M"};
inline constexpr stowage::dim<&params::k> K{"K"};
inline constexpr stowage::dim<&params::l> L{"L"};
inline constexpr stowage::dim<&params::on> flag{};

#include "lists.inc"

} // namespace property

TEST_CASE(
    "property: random field lists lie where a second computation says, and passes clear what a model says") {
  auto cases = property::open("lists.txt");
  const std::size_t lists = property::next_size(cases);
  property::check_lists(cases);
  CHECK(property::counted().layouts == lists * 5);
  CHECK(property::counted().passes >= lists * 4 * 45);
}
