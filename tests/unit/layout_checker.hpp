#pragma once

// What holds for the layout of every plan, checked from the numbers alone.

#include <stowage/plan.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace test {

/// One field, as a plan says it.
struct placed_field {
  std::string name;
  std::size_t bytes = 0;
  std::size_t offset = 0;
  std::size_t alignment = 1;
  std::size_t group = 0; // rows, full, never
  bool present = false;
};

inline void check_layout(const std::vector<placed_field>& fields, std::size_t total, std::size_t slab,
                         std::size_t slab_alignment, std::size_t zeroed) {
  std::vector<placed_field> taken;
  std::size_t sum = 0;
  for (const placed_field& field : fields) {
    CAPTURE(field.name);
    CHECK(field.present == (field.bytes != 0));
    if (field.bytes == 0) {
      CHECK(field.offset == 0);
      continue;
    }
    taken.push_back(field);
    sum += field.bytes;
    CHECK(field.offset % field.alignment == 0);
    CHECK(slab_alignment % field.alignment == 0);
  }
  CHECK(total == sum);
  std::sort(taken.begin(), taken.end(),
            [](const placed_field& one, const placed_field& other) { return one.offset < other.offset; });
  std::size_t end = 0;
  std::size_t end_of_zeroed = 0;
  std::size_t group = 0;
  for (const placed_field& field : taken) {
    CAPTURE(field.name);
    CHECK(field.offset >= end);                  // no overlap
    CHECK(field.offset - end < field.alignment); // no gap but padding
    CHECK(field.group >= group);
    group = field.group;
    end = field.offset + field.bytes;
    if (group < 2) end_of_zeroed = end;
  }
  CHECK(slab == end);
  CHECK(zeroed == end_of_zeroed);
}

/// Checks a plan. `policy(name)` gives the group of a field: 0 rows, 1 full, 2 never.
template <class Plan, class Policy> void check_layout_of(const Plan& plan, const Policy& policy) {
  std::vector<placed_field> fields;
  for (std::size_t field = 0; field < Plan::field_count; ++field) {
    fields.push_back({std::string(plan.name(field)), plan.bytes(field), plan.offset(field),
                      plan.layout(field).alignment, policy(field), plan.present(field)});
  }
  check_layout(fields, plan.total_bytes(), plan.slab_bytes(), plan.slab_alignment(),
               plan.zeroed_slab_bytes());
}

} // namespace test
