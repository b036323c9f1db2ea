#pragma once

#include <stowage/backend/elastic.hpp>
#include <stowage/detail/checked.hpp>
#include <stowage/table.hpp>

#include <cstddef>
#include <vector>

namespace stowage::inline v0_1::detail {

/// Where a plan needs memory, in whole granules: its fields with their tails and guard zones, and the padding
/// that passes run through.
template <class Plan> std::vector<mapped_range> mapped_ranges_of(const Plan& plan, std::size_t granularity) {
  std::vector<mapped_range> ranges;
  const auto add = [&](std::size_t begin, std::size_t end) {
    begin = begin / granularity * granularity;
    end = round_up(end, granularity);
    if (!ranges.empty() && begin <= ranges.back().end()) {
      if (end > ranges.back().end()) ranges.back().bytes = end - ranges.back().offset;
    } else {
      ranges.push_back({begin, end - begin});
    }
  };
  std::size_t end = 0;
  std::size_t position = 0;
  for (const std::size_t field : slab_order<typename Plan::fields_type, typename Plan::params_type>) {
    const auto& layout = plan.layout(field);
    if (layout.bytes == 0) continue;
    if (end == 0) { // the first one: the zone in front of it
      add(layout.offset - plan.guard_bytes(), layout.offset + layout.bytes);
    } else if (layout.position == position + 1) {
      add(end, layout.offset + layout.bytes);
    }
    for (std::size_t copy = 0; copy < layout.copies; ++copy) {
      const std::size_t begin = layout.offset + copy * layout.stride;
      if (copy != 0 && plan.is_contiguous()) add(end, begin);
      end = begin + layout.bytes + layout.tail + plan.guard_bytes();
      add(begin, end);
    }
    position = layout.position;
  }
  return ranges;
}

} // namespace stowage::inline v0_1::detail
