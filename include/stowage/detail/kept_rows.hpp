#pragma once

#include <stowage/detail/byte_ranges.hpp>
#include <stowage/detail/cold.hpp>
#include <stowage/layout.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stowage::inline v0_1::detail {

/// What stays of the contents where a plan takes the place of another in the same reservation: fields lie where
/// they lay, but parts inside of them can move. Refers to both plans.
template <class Plan> class kept_rows {
public:
  kept_rows(const Plan& before, const Plan& after) : before_(before), after_(after) {}

  /// Whether a handle that was not null is at another address, or null.
  [[nodiscard]] bool addresses_change() const {
    for (std::size_t field = 0; field < Plan::field_count; ++field) {
      if (before_.bytes(field) == 0) continue;
      if (after_.bytes(field) == 0) return true;
      const placed_nodes old(before_, field);
      const placed_nodes now(after_, field);
      for (std::uint32_t node = 0; node < Plan::table()[field].nodes->length; ++node) {
        if (old[node].bytes == 0) continue;
        if (now[node].bytes == 0 || now[node].offset != old[node].offset) return true;
      }
    }
    return false;
  }

  /// Copies the rows of parts that move to the host; waits for the stream.
  template <class Backend, class Stream>
  void take(Backend& backend, Stream stream, const std::byte* slab, std::vector<std::byte>& moving) const {
    std::size_t bytes = 0;
    visit_moving([&](std::size_t, std::size_t, const part& one) { bytes += one.bytes; });
    if (bytes == 0) return;
    moving.resize(bytes);
    std::byte* next = moving.data();
    visit_moving([&](std::size_t field, std::size_t copy, const part& one) {
      backend.copy_to_host(stream, next, start_of(slab, field, copy) + one.from, one.bytes);
      next += one.bytes;
    });
    backend.synchronize(stream);
  }
  /// Copies them to where they are now.
  template <class Backend, class Stream>
  void put(Backend& backend, Stream stream, std::byte* slab, const std::vector<std::byte>& moving) const {
    if (moving.empty()) return;
    const std::byte* next = moving.data();
    visit_moving([&](std::size_t field, std::size_t copy, const part& one) {
      backend.copy_from_host(stream, start_of(slab, field, copy) + one.to, next, one.bytes);
      next += one.bytes;
    });
    backend.synchronize(stream);
  }

  /// Calls visit(begin, end) for the bytes of one instance of a field that hold nothing yet.
  template <class Visit> void visit_new(std::size_t field, const Visit& visit) const {
    byte_range_list<Plan::most_nodes + 1> fresh;
    fresh.add(0, after_.bytes(field));
    for (const part& one : parts_of(field)) fresh.remove(one.to, one.to + one.bytes);
    for (const byte_range& range : fresh) visit(range.begin, range.end);
  }

private:
  /// Bytes that stay, from the start of the field, before and after.
  struct part {
    std::size_t from = 0;
    std::size_t to = 0;
    std::size_t bytes = 0;
  };
  struct part_list {
    std::array<part, Plan::most_nodes> parts{};
    std::size_t count = 0;
    [[nodiscard]] const part* begin() const { return parts.data(); }
    [[nodiscard]] const part* end() const { return parts.data() + count; }
  };

  class placed_nodes {
  public:
    // Only the nodes that the field has are written, and looked at.
    placed_nodes(const Plan& plan, std::size_t field) { // NOLINT(cppcoreguidelines-pro-type-member-init)
      plan.place_field(field, nodes_.data());
    }
    const placed_node& operator[](std::uint32_t node) const { return nodes_[node]; }

  private:
    std::array<placed_node, Plan::most_nodes> nodes_;
  };

  [[nodiscard]] STOWAGE_NOINLINE part_list parts_of(std::size_t field) const {
    part_list list;
    if (before_.bytes(field) == 0 || after_.bytes(field) == 0) return list;
    const placed_nodes old(before_, field);
    const placed_nodes now(after_, field);
    const auto* const nodes = Plan::table()[field].nodes;
    bool shared = false; // alternatives share bytes: none of them can be moved without the others
    for (std::uint32_t node = 0; node < nodes->length; ++node) {
      shared = shared || nodes[node].kind == content_kind::alternatives;
      const placed_node& from = old[node];
      const placed_node& to = now[node];
      if (from.bytes == 0 || to.bytes == 0 || from.present != to.present) continue;
      if (from.present && nodes[node].kind != content_kind::tensor) continue; // what is in it counts
      bool same_rows = true;
      for (std::uint32_t axis = 1; axis < nodes[node].rank; ++axis)
        same_rows = same_rows && from.extents[axis] == to.extents[axis];
      if (!same_rows) continue;
      if (shared && from.offset != to.offset) continue;
      list.parts[list.count++] = {from.offset, to.offset, bytes_that_stay(nodes[node], from, to)};
    }
    return list;
  }

  /// The rows that are there before and after; with what a floor adds only where the rows are the same.
  template <class Node>
  static std::size_t bytes_that_stay(const Node& node, const placed_node& from, const placed_node& to) {
    const std::size_t bytes = std::min(from.bytes, to.bytes);
    if (!from.present || node.rank == 0 || from.extents[0] == to.extents[0]) return bytes;
    std::size_t elements = std::min(from.extents[0], to.extents[0]);
    for (std::uint32_t axis = 1; axis < node.rank; ++axis) elements *= to.extents[axis];
    return std::min(bytes, elements / node.elements_per_block * node.block_bytes);
  }

  /// In the same order every time.
  template <class Visit> void visit_moving(const Visit& visit) const {
    for (std::size_t field = 0; field < Plan::field_count; ++field) {
      for (const part& one : parts_of(field)) {
        if (one.from == one.to) continue;
        for (std::size_t copy = 0; copy < after_.layout(field).copies; ++copy) visit(field, copy, one);
      }
    }
  }

  /// The same before and after.
  template <class Byte> Byte* start_of(Byte* slab, std::size_t field, std::size_t copy) const {
    return slab + after_.offset(field) + copy * after_.layout(field).stride;
  }

  const Plan& before_;
  const Plan& after_;
};

} // namespace stowage::inline v0_1::detail
