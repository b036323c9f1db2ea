#pragma once

#include <stowage/detail/byte_ranges.hpp>
#include <stowage/detail/cold.hpp>
#include <stowage/detail/leaves.hpp>
#include <stowage/detail/raise.hpp>
#include <stowage/fault.hpp>
#include <stowage/field.hpp>
#include <stowage/layout.hpp>
#include <stowage/table.hpp>
#include <stowage/traits/zero.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace stowage::inline v0_1 {

/// Why a field takes memory or does not.
enum class field_state : unsigned char {
  absent,      ///< its condition does not hold: null
  empty,       ///< its formula gives 0 bytes: null
  placeholder, ///< its condition does not hold, but it keeps a placeholder
  present
};

/// Where a field lies.
struct field_layout {
  /// Bytes of the field (of one instance), without alignment padding; 0 where it is null.
  std::size_t bytes = 0;
  /// Bytes from the start of the slab; 0 where it is null.
  std::size_t offset = 0;
  /// The offset is a multiple of this, in bytes.
  std::size_t alignment = 1;
  /// Place in the slab among the fields that take memory.
  std::size_t position = 0;
  /// Instances of the field.
  std::size_t copies = 1;
  /// Bytes from the start of one instance to the start of the next.
  std::size_t stride = 0;
  /// Backing beyond the end of each instance; bytes.
  std::size_t tail = 0;
  /// Why it takes memory or does not.
  field_state state = field_state::absent;
  /// The size was passed in instead of computed.
  bool overridden = false;

  friend constexpr bool operator==(const field_layout&, const field_layout&) = default;

  /// Bytes from the start of the first instance to the end of the last.
  [[nodiscard]] constexpr std::size_t extent() const {
    return bytes == 0 ? 0 : (copies - 1) * stride + bytes;
  }
  /// Bytes that the field takes in the slab, or as an allocation of its own.
  [[nodiscard]] constexpr std::size_t allocated() const { return bytes == 0 ? 0 : extent() + tail; }
};

namespace detail {

[[noreturn]] STOWAGE_COLD inline void slab_size_has_no_value(const fault& what, std::string_view field) {
  throw_size_error(what, field, "the offsets and the total of the slab");
}

[[noreturn]] STOWAGE_COLD inline void no_field_has_this_name(std::string_view name) {
  message text;
  text << "stowage: no field is named '" << name << "'; see plan.name(index)";
  detail::raise<bounds_error>(text.c_str());
}

[[noreturn]] STOWAGE_COLD inline void field_index_out_of_range(std::size_t index, std::size_t count) {
  message text;
  text << "stowage: field number " << index << " wanted, the field list has " << count;
  detail::raise<bounds_error>(text.c_str());
}

[[noreturn]] STOWAGE_COLD inline void
override_is_smaller_than_its_regions(std::string_view field, std::size_t wanted, std::size_t given) {
  message text;
  text << "stowage: field '" << field << "': " << given << " bytes passed in, its regions need " << wanted;
  detail::raise<bounds_error>(text.c_str());
}

/// FNV-1a, 64 bits, over numbers.
class hasher {
public:
  constexpr void add(std::uint64_t number) {
    for (int byte = 0; byte < 8; ++byte) {
      state_ ^= number & 0xffU;
      state_ *= 0x100000001b3U;
      number >>= 8U;
    }
  }
  [[nodiscard]] constexpr std::uint64_t value() const { return state_; }

private:
  std::uint64_t state_ = 0xcbf29ce484222325U;
};

} // namespace detail

/// Bytes, offsets and conditions of every field of a field list for given params. Owns no memory; constexpr.
/// Fields are addressed by member pointer (`plan.bytes<&fields::logits>()`, with the path through groups), by
/// number in declaration order, or by name.
template <class Fields, class Params> class plan {
  static_assert(detail::check_field_list<Fields>());

public:
  /// The field list.
  using fields_type = Fields;
  /// What its formulas read.
  using params_type = Params;
  /// The types of all fields, those of groups in their place.
  using field_types = detail::leaf_types<Fields>;
  /// Fields of the list, those of groups included.
  static constexpr std::size_t field_count = field_types::size;
  static_assert(field_count > 0, "stowage: a field list needs at least one buffer");

  /// Throws size_error where a size has no value; in a constant expression that does not compile.
  explicit constexpr plan(const Params& params) : params_(params) {
    for (std::size_t field = 0; field < field_count; ++field) evaluate(field, false);
    place();
  }

  /// The params that it was made from.
  [[nodiscard]] constexpr const Params& params() const { return params_; }

  /// Where a field lies, by number. Throws bounds_error for a number beyond the list.
  [[nodiscard]] constexpr const field_layout& layout(std::size_t field) const {
    if (field >= field_count) detail::field_index_out_of_range(field, field_count);
    return layouts_[field];
  }
  template <auto Member, auto... Path> [[nodiscard]] constexpr const field_layout& layout() const {
    return layouts_[index_of<Member, Path...>()];
  }
  /// Throws bounds_error for a name that no field has.
  [[nodiscard]] constexpr const field_layout& layout(std::string_view name) const {
    return layouts_[index_of(name)];
  }

  /// Bytes of a field without padding, 0 where it is null.
  [[nodiscard]] constexpr std::size_t bytes(std::size_t field) const { return layout(field).bytes; }
  [[nodiscard]] constexpr std::size_t bytes(std::string_view name) const { return layout(name).bytes; }
  template <auto Member, auto... Path> [[nodiscard]] constexpr std::size_t bytes() const {
    return layout<Member, Path...>().bytes;
  }

  /// Bytes from the start of the slab; only for fields that take memory.
  [[nodiscard]] constexpr std::size_t offset(std::size_t field) const { return layout(field).offset; }
  [[nodiscard]] constexpr std::size_t offset(std::string_view name) const { return layout(name).offset; }
  template <auto Member, auto... Path> [[nodiscard]] constexpr std::size_t offset() const {
    return layout<Member, Path...>().offset;
  }

  /// Whether a field takes memory.
  [[nodiscard]] constexpr bool present(std::size_t field) const { return layout(field).bytes != 0; }
  [[nodiscard]] constexpr bool present(std::string_view name) const { return layout(name).bytes != 0; }
  template <auto Member, auto... Path> [[nodiscard]] constexpr bool present() const {
    return layout<Member, Path...>().bytes != 0;
  }

  /// Number of a field in declaration order.
  template <auto Member, auto... Path> [[nodiscard]] static constexpr std::size_t index_of() {
    return detail::leaf_index<Fields, Member, Path...>();
  }
  [[nodiscard]] static constexpr std::size_t index_of(std::string_view name) {
    for (std::size_t field = 0; field < field_count; ++field) {
      if (detail::leaf_names<Fields>[field].view() == name) return field;
    }
    detail::no_field_has_this_name(name);
  }
  /// Name of a field; dotted in groups. Throws bounds_error for a number beyond the list.
  [[nodiscard]] static constexpr std::string_view name(std::size_t field) {
    if (field >= field_count) detail::field_index_out_of_range(field, field_count);
    return detail::leaf_names<Fields>[field].view();
  }
  /// Whether a field carries tag<Tag>. For passes of your own over a list. Throws bounds_error for a number beyond
  /// the list.
  template <class Tag> [[nodiscard]] static constexpr bool has_tag(std::size_t field) {
    if (field >= field_count) detail::field_index_out_of_range(field, field_count);
    return detail::fields_with_tag<Fields, Tag>[field];
  }

  /// Bytes of all fields, without padding.
  [[nodiscard]] constexpr std::size_t total_bytes() const { return total_bytes_; }
  /// Bytes of the one allocation, padding between fields included.
  [[nodiscard]] constexpr std::size_t slab_bytes() const { return slab_bytes_; }
  /// Alignment of the slab's start, in bytes: that of its strictest field.
  [[nodiscard]] constexpr std::size_t slab_alignment() const { return slab_alignment_; }
  /// Bytes from the start of the slab that zeroing everything clears, padding between fields included.
  [[nodiscard]] constexpr std::size_t zeroed_slab_bytes() const { return zeroed_slab_bytes_; }

  /// A hash over everything that decides the layout: number, sizes, extents, offsets, alignments, states and policies
  /// of the fields. Names and the params themselves take no part. Equal for equal layouts on every supported
  /// compiler.
  [[nodiscard]] constexpr std::uint64_t hash() const {
    detail::hasher hash;
    hash.add(field_count);
    for (std::size_t field = 0; field < field_count; ++field) hash.add(hash_of_field(field));
    hash.add(slab_bytes_);
    if (guard_bytes_ != 0) hash.add(guard_bytes_);
    return hash.value();
  }

  /// The part of the hash that one field has in it: where it lies, and extents, offsets and sizes of all that is in it.
  [[nodiscard]] constexpr std::uint64_t hash_of_field(std::size_t field) const {
    const field_layout& layout = this->layout(field);
    detail::hasher hash;
    hash.add(layout.bytes);
    hash.add(layout.offset);
    hash.add(layout.alignment);
    hash.add(layout.stride);
    hash.add(layout.copies);
    hash.add(layout.tail);
    hash.add(static_cast<std::uint64_t>(layout.state));
    hash.add(table()[field].slab_group);
    hash.add(static_cast<std::uint64_t>(table()[field].in_row_pass));
    if (layout.bytes == 0) return hash.value();
    nodes_type placed;
    place_field(field, placed.data());
    for (std::uint32_t node = 0; node < table()[field].nodes->length; ++node) {
      hash.add(placed[node].offset);
      hash.add(placed[node].bytes);
      for (std::uint32_t axis = 0; axis < table()[field].nodes[node].rank; ++axis)
        hash.add(placed[node].extents[axis]);
    }
    return hash.value();
  }

  /// Bytes of one field that a row pass over `count` tokens clears: as far as they reach for a row policy,
  /// all for a full one, none for never. Padding is not counted.
  [[nodiscard]] constexpr std::size_t zero_bytes(std::size_t field, tokens count) const {
    if (field >= field_count) detail::field_index_out_of_range(field, field_count);
    std::size_t bytes = 0;
    visit_row_pass(0, count.value, true, [&](std::size_t visited, std::size_t begin, std::size_t end) {
      if (visited == field) bytes += end - begin;
    });
    return bytes;
  }
  template <auto Member, auto... Path> [[nodiscard]] constexpr std::size_t zero_bytes(tokens count) const {
    return zero_bytes(index_of<Member, Path...>(), count);
  }
  /// Bytes of all fields that a row pass over `count` tokens clears.
  [[nodiscard]] constexpr std::size_t zero_rows_bytes(tokens count) const {
    std::size_t bytes = 0;
    visit_row_pass(0, count.value, true,
                   [&](std::size_t, std::size_t begin, std::size_t end) { bytes += end - begin; });
    return bytes;
  }
  /// Bytes of all fields that are cleared by zeroing everything.
  [[nodiscard]] constexpr std::size_t zero_all_bytes() const {
    std::size_t bytes = 0;
    for (std::size_t field = 0; field < field_count; ++field) {
      if (table()[field].cleared_by_zero_all) bytes += layouts_[field].copies * layouts_[field].bytes;
    }
    return bytes;
  }

  /// The same plan with the size of one field passed in: `plan.with_bytes<&fields::scratch>(4096)`. The field
  /// is present with that many bytes whatever its condition says, or null for 0; everything behind it moves.
  /// A test arms an entry so without touching the environment. Throws bounds_error where the regions of the
  /// field do not fit.
  template <auto Member, auto... Path> [[nodiscard]] constexpr plan with_bytes(std::size_t bytes) const {
    plan copy = *this;
    copy.override_bytes(index_of<Member, Path...>(), bytes);
    return copy;
  }

  /// The same plan with one field present, whatever its condition says, at the size of its formula.
  template <auto Member, auto... Path> [[nodiscard]] constexpr plan with() const {
    constexpr std::size_t field = index_of<Member, Path...>();
    plan copy = *this;
    copy.evaluate(field, true);
    copy.layouts_[field].overridden = true;
    copy.place();
    return copy;
  }

  /// The same plan with guard zones: at least `bytes` of the slab before the first field, behind each one and
  /// between copies, which the arena fills with a pattern and scan_guards() looks at (guards.hpp). Passes
  /// then clear field by field. For debugging; 0 takes the zones away.
  [[nodiscard]] constexpr plan with_guards(std::size_t bytes = 256) const {
    plan copy = *this;
    copy.guard_bytes_ = bytes;
    copy.place();
    return copy;
  }
  /// Bytes of a guard zone at least; 0 without.
  [[nodiscard]] constexpr std::size_t guard_bytes() const { return guard_bytes_; }

  /// The same plan with every field where a reservation has its place (reservation.hpp). Throws what
  /// room.require_room_for(*this) throws.
  template <class Room> [[nodiscard]] constexpr plan placed_in(const Room& room) const {
    room.require_room_for(*this);
    plan copy = *this;
    copy.move_into(room);
    return copy;
  }
  /// Whether a reservation keeps room for more between fields or copies, where there may be no memory.
  [[nodiscard]] constexpr bool has_holes() const { return holes_; }
  /// Between fields, and between copies, lies nothing but alignment padding.
  [[nodiscard]] constexpr bool is_contiguous() const { return contiguous_; }

  /// Calls visit(field, begin, end) for each guard zone: slab offsets, and the field that it lies behind, or
  /// field_count for the zone in front of all. In a reservation with room for more, each is as long as
  /// guard_bytes().
  template <class Visit> constexpr void visit_guards(const Visit& visit) const {
    if (guard_bytes_ != 0) visit_between(visit, holes_);
  }

  /// The same for all that lies between fields and copies in a slab, guard zones or mere padding; also where nothing
  /// does. A tail belongs to its field.
  template <class Visit> constexpr void visit_gaps(const Visit& visit) const { visit_between(visit, false); }

  /// Calls visit(field, begin, end) for the byte ranges that a row pass over the tokens [first, last) clears,
  /// in slab order; offsets count from the start of the field. `with_full` adds the fields that are cleared
  /// whole.
  template <class Visit>
  constexpr void visit_row_pass(std::size_t first, std::size_t last, bool with_full,
                                const Visit& visit) const {
    if constexpr (row_range_count != 0) {
      fault never;
      const detail::evaluator<Params> reach{params_, never, last};
      const detail::evaluator<Params> live{params_, never, first, true};
      const std::size_t count = first < last ? row_field_count_ : 0;
      for (std::size_t place = 0; place < count; ++place)
        visit_row_field(row_fields_[place], first, reach, live, visit);
    }
    if (!with_full) return;
    for (const std::size_t field : detail::slab_order<Fields, Params>) {
      if (table()[field].in_row_pass == row_pass::whole) visit_copies(field, 0, layouts_[field].bytes, visit);
    }
  }

  /// Segments that a row pass has at most.
  static constexpr std::size_t most_row_segments = detail::sizes_of_list<Fields, Params>.row_segments;

  /// Evaluates one field into `out`, node by node, with the state of this plan.
  STOWAGE_NOINLINE constexpr void place_field(std::size_t field, detail::placed_node* out) const {
    fault first_fault;
    place_field(field, detail::evaluator<Params>{params_, first_fault}, out);
  }
  /// Fields, with all their copies.
  static constexpr std::size_t field_instances = detail::sizes_of_list<Fields, Params>.instances;
  /// Most nodes of one field.
  static constexpr std::size_t most_nodes = detail::sizes_of_list<Fields, Params>.most_nodes;

  /// The table of the field list, in declaration order.
  [[nodiscard]] static constexpr const auto& table() { return detail::field_table<Fields, Params>; }

private:
  static constexpr std::size_t row_range_count = detail::sizes_of_list<Fields, Params>.row_ranges;
  using nodes_type = std::array<detail::placed_node, most_nodes>;

  /// The row ranges of one field are ranges_[first, last).
  struct row_field {
    std::size_t field = 0;
    std::size_t first = 0;
    std::size_t last = 0;
    /// Bytes that every pass clears at least.
    std::size_t minimum = 0;
    /// All ranges begin at byte 0.
    bool one_prefix = true;
  };

  STOWAGE_NOINLINE constexpr void evaluate(std::size_t field, bool armed) {
    fault first_fault;
    const detail::evaluator<Params> evaluate{params_, first_fault};
    const detail::content_node<Params>* node = table()[field].nodes;
    nodes_type placed;
    detail::placed_node* out = placed.data();
    field_layout& layout = layouts_[field];
    layout.alignment = node->alignment;
    layout.copies = table()[field].copies;
    layout.tail = table()[field].tail_bytes;
    layout.bytes = detail::place_content(node, out, 0, evaluate, armed);
    if (placed[0].present) {
      layout.state = layout.bytes == 0 ? field_state::empty : field_state::present;
    } else {
      layout.state = layout.bytes == 0 ? field_state::absent : field_state::placeholder;
    }
    if (first_fault.kind != fault_kind::none) fail(field, first_fault);
  }

  STOWAGE_NOINLINE constexpr void fail(std::size_t field, const fault& what) const {
    if (__builtin_is_constant_evaluated()) {
      detail::fail_in_constant_expression<Fields>(field);
      return;
    }
    const auto formula = write_text<512>([&](text_writer& writer) {
      const detail::content_node<Params>* node = table()[field].nodes;
      if (node->kind == detail::content_kind::tensor) writer << node->element << ' ';
      detail::write_shape(writer, node);
    });
    detail::throw_size_error(what, name(field), formula.view());
  }

  STOWAGE_NOINLINE constexpr void override_bytes(std::size_t field, std::size_t bytes) {
    fault first_fault;
    const detail::evaluator<Params> evaluate{params_, first_fault};
    const detail::content_node<Params>* node = table()[field].nodes;
    const bool is_tensor = node->kind == detail::content_kind::tensor;
    nodes_type placed;
    detail::placed_node* out = placed.data();
    const std::size_t formula_bytes = detail::place_content(node, out, 0, evaluate, true);
    const bool has_extents = first_fault.kind == fault_kind::none && formula_bytes != 0;
    if (!is_tensor && bytes != 0 && has_extents && bytes < formula_bytes) {
      detail::override_is_smaller_than_its_regions(name(field), formula_bytes, bytes);
    }
    field_layout& layout = layouts_[field];
    layout.bytes = bytes;
    layout.state = bytes == 0    ? field_state::absent
                   : has_extents ? field_state::present
                                 : field_state::placeholder; // memory without extents
    layout.overridden = true;
    place();
  }

  STOWAGE_NOINLINE constexpr void place() {
    fault first_fault;
    const detail::evaluator<Params> evaluate{params_, first_fault};
    std::size_t cursor = guard_bytes_;
    std::size_t position = 0;
    total_bytes_ = 0;
    slab_alignment_ = 1;
    zeroed_slab_bytes_ = 0;
    range_count_ = 0;
    row_field_count_ = 0;
    holes_ = false;
    contiguous_ = guard_bytes_ == 0;
    for (const std::size_t field : detail::slab_order<Fields, Params>) {
      field_layout& layout = layouts_[field];
      layout.offset = 0;
      layout.position = 0;
      layout.stride = 0;
      if (layout.bytes == 0) continue;
      layout.offset = evaluate.round_up(cursor, layout.alignment);
      layout.position = position++;
      layout.stride = evaluate.round_up(evaluate.add(evaluate.add(layout.bytes, layout.tail), guard_bytes_),
                                        layout.alignment);
      const std::size_t before_last = evaluate.multiply(layout.copies - 1, layout.stride);
      const std::size_t end = evaluate.add(evaluate.add(layout.offset, before_last), layout.bytes);
      cursor = evaluate.add(evaluate.add(end, layout.tail), guard_bytes_);
      total_bytes_ = evaluate.add(total_bytes_, evaluate.multiply(layout.copies, layout.bytes));
      if (layout.alignment > slab_alignment_) slab_alignment_ = layout.alignment;
      if (table()[field].cleared_by_zero_all) zeroed_slab_bytes_ = end;
      if (first_fault.kind != fault_kind::none) detail::slab_size_has_no_value(first_fault, name(field));
      if (table()[field].in_row_pass == row_pass::reached_rows) {
        collect_ranges(field, evaluate);
        if (first_fault.kind != fault_kind::none) fail(field, first_fault);
      }
    }
    slab_bytes_ = cursor;
  }

  /// Of a gap in which there may be no memory only the guard zone, where `only_zones` says so.
  template <class Visit> constexpr void visit_between(const Visit& visit, bool only_zones) const {
    std::size_t behind = field_count;
    std::size_t begin = 0;
    for (const std::size_t field : detail::slab_order<Fields, Params>) {
      const field_layout& layout = layouts_[field];
      if (layout.bytes == 0) continue;
      for (std::size_t copy = 0; copy < layout.copies; ++copy) {
        const std::size_t start = layout.offset + copy * layout.stride;
        if (only_zones && behind == field_count) begin = start - guard_bytes_;
        visit(behind, begin, only_zones ? begin + guard_bytes_ : start);
        behind = field;
        begin = start + layout.bytes + layout.tail;
      }
    }
    if (behind != field_count) visit(behind, begin, slab_bytes_);
  }

  /// Fields are neighbours, whose padding passes run through, where nothing can ever lie between them: the
  /// one in front fills its place.
  template <class Room> constexpr void move_into(const Room& room) {
    std::size_t position = 0;
    bool room_in_front = false;
    for (const std::size_t field : detail::slab_order<Fields, Params>) {
      field_layout& layout = layouts_[field];
      if (layout.bytes == 0) {
        room_in_front = room_in_front || room.bytes(field) != 0;
        continue;
      }
      layout.offset = room.offset(field);
      layout.stride = room.stride(field);
      if (room_in_front) {
        ++position;
        holes_ = true;
      }
      layout.position = position++;
      room_in_front = layout.bytes != room.bytes(field);
      if (room_in_front && layout.copies > 1) holes_ = true;
      const std::size_t end = layout.offset + layout.extent();
      if (table()[field].cleared_by_zero_all) zeroed_slab_bytes_ = end;
      slab_bytes_ = end + layout.tail + guard_bytes_;
    }
    contiguous_ = guard_bytes_ == 0 && !holes_;
  }

  constexpr void place_field(std::size_t field, const detail::evaluator<Params>& evaluate,
                             detail::placed_node* out) const {
    const field_layout& layout = layouts_[field];
    const detail::content_node<Params>* node = table()[field].nodes;
    if (layout.state == field_state::present) {
      detail::placed_node* next = out;
      const detail::content_node<Params>* at = node;
      detail::place_content(at, next, 0, evaluate, true);
      // A size that was passed in can be smaller than the formula's: then there are fewer rows.
      if (layout.bytes < out->bytes && node->kind == detail::content_kind::tensor && node->rank > 0) {
        const std::size_t row_bytes =
            detail::bytes_of_elements(*node, detail::elements_of_row(*node, *out, evaluate), evaluate);
        if (row_bytes != 0 && out->extents[0] > layout.bytes / row_bytes)
          out->extents[0] = layout.bytes / row_bytes;
      }
    } else {
      for (std::uint32_t index = 0; index < node->length; ++index) out[index] = {};
    }
    out->bytes = layout.bytes;
  }

  constexpr void collect_ranges(std::size_t field, const detail::evaluator<Params>& evaluate) {
    nodes_type placed;
    place_field(field, evaluate, placed.data());
    row_field& entry = row_fields_[row_field_count_++];
    entry = {field, range_count_, range_count_, 0, true};
    if (layouts_[field].state == field_state::present) {
      detail::collect_row_ranges(
          table()[field].nodes, placed.data(), field, evaluate,
          [this](const detail::row_range<Params>& range) { ranges_[range_count_++] = range; });
    }
    entry.last = range_count_;
    for (std::size_t index = entry.first; index < entry.last; ++index) {
      if (ranges_[index].base != 0) entry.one_prefix = false;
    }
    if (entry.last != entry.first) entry.minimum = detail::floor_of_node(*table()[field].nodes, evaluate);
  }

  static constexpr std::size_t larger(std::size_t one, std::size_t other) {
    return one < other ? other : one;
  }

  static constexpr std::size_t rows_of(const detail::row_range<Params>& range,
                                       const detail::evaluator<Params>& evaluate) {
    if (range.simple.multiple != 0) {
      return evaluate.live ? range.simple.owned_by(evaluate.token_limit)
                           : range.simple.reached_by(evaluate.token_limit);
    }
    return range.leading == nullptr ? 0 : evaluate.value(range.leading);
  }

  template <class Visit>
  constexpr void visit_copies(std::size_t field, std::size_t begin, std::size_t end,
                              const Visit& visit) const {
    if (begin >= end) return;
    const field_layout& layout = layouts_[field];
    for (std::size_t copy = 0; copy < layout.copies; ++copy) {
      visit(field, copy * layout.stride + begin, copy * layout.stride + end);
    }
  }

  using byte_ranges = detail::byte_range_list<2 * detail::sizes_of_list<Fields, Params>.most_row_ranges + 1>;

  /// What a row pass clears of a field whose ranges begin at several places.
  STOWAGE_NOINLINE constexpr byte_ranges ranges_to_clear(const row_field& entry,
                                                         const detail::evaluator<Params>& reach,
                                                         const detail::evaluator<Params>& live,
                                                         bool without_live) const {
    const field_layout& layout = layouts_[entry.field];
    byte_ranges cleared;
    bool all_rows = true;
    for (std::size_t index = entry.first; index < entry.last; ++index) {
      const detail::row_range<Params>& range = ranges_[index];
      const std::size_t rows = rows_of(range, reach);
      const std::size_t bytes = rows * range.row_bytes;
      all_rows = all_rows && rows == range.rows;
      cleared.add(range.base, range.base + (bytes < range.minimum ? range.minimum : bytes));
    }
    cleared.add(0, all_rows ? layout.bytes : entry.minimum); // all rows: gaps and what lies behind them too
    if (without_live) {
      for (std::size_t index = entry.first; index < entry.last; ++index) {
        const detail::row_range<Params>& range = ranges_[index];
        cleared.remove(range.base, range.base + rows_of(range, live) * range.row_bytes);
      }
    }
    return cleared;
  }

  template <class Visit>
  constexpr void visit_row_field(const row_field& entry, std::size_t first,
                                 const detail::evaluator<Params>& reach,
                                 const detail::evaluator<Params>& live, const Visit& visit) const {
    const field_layout& layout = layouts_[entry.field];
    if (entry.last == entry.first) { // memory without rows: a placeholder
      if (first == 0) visit_copies(entry.field, 0, layout.bytes, visit);
      return;
    }
    if (entry.one_prefix) { // a tensor, or alternatives of tensors: everything begins at byte 0
      std::size_t begin = 0;
      std::size_t end = entry.minimum;
      bool every_row = true;
      for (std::size_t index = entry.first; index < entry.last; ++index) {
        const detail::row_range<Params>& range = ranges_[index];
        const std::size_t rows = rows_of(range, reach);
        every_row = every_row && rows == range.rows;
        end = larger(end, larger(rows * range.row_bytes, range.minimum));
        if (first != 0) begin = larger(begin, rows_of(range, live) * range.row_bytes);
      }
      // With every row goes what lies behind them too.
      if (every_row || end > layout.bytes) end = layout.bytes;
      visit_copies(entry.field, begin, end, visit);
      return;
    }
    for (const detail::byte_range& range : ranges_to_clear(entry, reach, live, first != 0)) {
      const std::size_t end = range.end < layout.bytes ? range.end : layout.bytes;
      visit_copies(entry.field, range.begin, end, visit);
    }
  }

  Params params_;
  std::array<field_layout, field_count> layouts_{};
  std::array<detail::row_range<Params>, row_range_count> ranges_{};
  std::array<row_field, field_count> row_fields_{};
  std::size_t range_count_ = 0;
  std::size_t row_field_count_ = 0;
  std::size_t total_bytes_ = 0;
  std::size_t slab_bytes_ = 0;
  std::size_t slab_alignment_ = 1;
  std::size_t zeroed_slab_bytes_ = 0;
  std::size_t guard_bytes_ = 0;
  bool holes_ = false;
  bool contiguous_ = true;
};

/// Plans a field list for given params: `constexpr auto plan = stowage::make_plan<decode_buffers>(params);`.
template <class Fields, class Params>
[[nodiscard]] constexpr plan<Fields, Params> make_plan(const Params& params) {
  return plan<Fields, Params>(params);
}

} // namespace stowage::inline v0_1
