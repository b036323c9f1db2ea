#pragma once

#include <stowage/arena.hpp>
#include <stowage/detail/zeroing_runs.hpp>
#include <stowage/poison.hpp>
#include <stowage/segments.hpp>
#include <stowage/zeroing_report.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stowage::inline v0_1::detail {

/// What is poisoned as one: all that the passes of a step clear of a field, or all that they leave.
struct zeroing_part {
  std::size_t field = 0;
  bool cleared = false;
  zeroing_pieces pieces;
};

/// See find_zeroing_needs().
template <class Arena, class Withholding, class Step, class Options> class zeroing_experiment {
  using plan_type = typename Arena::plan_type;
  using outputs_type = std::vector<std::span<const std::byte>>;
  using part_numbers = std::vector<std::size_t>;

public:
  zeroing_experiment(Arena& arena, Withholding& withholding, Step& step, const outputs_type& outputs,
                     const Options& options)
      : arena_(arena), options_(options), runs_(arena, withholding, step, outputs, options) {}

  zeroing_needs run() {
    runs_.check();
    for (const std::size_t field : options_.keep) {
      if (field >= plan_type::field_count) field_index_out_of_range(field, plan_type::field_count);
    }
    list_fields();
    baseline_ = runs_.outputs_after({}, nullptr, false);
    make_parts();
    result_.deterministic = is_deterministic();
    if (result_.deterministic) try_parts();
    runs_.reset();
    result_.runs = runs_.count();
    return result_;
  }

private:
  void try_parts() {
    search(all_parts(), false);
    part_numbers cleared; // what leaks anyway tells nothing when it is left out as well
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      if (parts_[part].cleared && !leaking_[part]) cleared.push_back(part);
    }
    search(cleared, true);
    if (!result_.deterministic) return forget_verdicts();
    for (std::size_t field = 0; field < plan_type::field_count; ++field) judge(field);
  }

  void list_fields() {
    result_.patterns = options_.patterns.size();
    result_.output_bytes = runs_.output_bytes();
    constexpr auto set_at_construction = []<class... Types>(type_list<Types...>) {
      return std::array<bool, plan_type::field_count>{Types::definition::cleared_at_construction...};
    }(typename plan_type::field_types{});
    for (std::size_t field = 0; field < plan_type::field_count; ++field) {
      const field_layout& layout = arena_.plan().layout(field);
      const auto& entry = plan_type::table()[field];
      zeroing_need need{.name = plan_type::name(field), .policy = entry.policy};
      need.bytes = layout.bytes == 0 ? 0 : layout.copies * (layout.bytes + layout.tail);
      need.row_bytes = row_bytes(field);
      const bool given = !clears(field) && (set_at_construction[field] || entry.fill.size != 0);
      if (arena_.address(field) == nullptr) {
        need.verdict = zeroing_verdict::absent;
      } else if (given ||
                 std::find(options_.keep.begin(), options_.keep.end(), field) != options_.keep.end()) {
        need.verdict = zeroing_verdict::kept;
        runs_.keep(field);
      } else {
        runs_.test(field);
      }
      result_.fields.push_back(need);
    }
  }

  /// Whether the policy of a field has it cleared by any pass.
  static bool clears(std::size_t field) {
    const auto& entry = plan_type::table()[field];
    return entry.cleared_by_zero_all || entry.in_row_pass != row_pass::nothing;
  }

  [[nodiscard]] std::size_t row_bytes(std::size_t field) const {
    const auto* node = plan_type::table()[field].nodes;
    const field_layout& layout = arena_.plan().layout(field);
    if (node->kind != content_kind::tensor || node->rank == 0 || layout.copies != 1 || layout.bytes == 0)
      return 0;
    std::array<placed_node, plan_type::most_nodes> placed;
    arena_.plan().place_field(field, placed.data());
    std::size_t elements = 1;
    for (std::uint32_t axis = 1; axis < node->rank; ++axis) elements *= placed[0].extents[axis];
    return elements % node->elements_per_block != 0 ? 0
                                                    : elements / node->elements_per_block * node->block_bytes;
  }

  /// Splits the tested fields by what the passes of the run before cleared.
  void make_parts() {
    for (std::size_t field = 0; field < plan_type::field_count; ++field) {
      zeroing_need& need = result_.fields[field];
      if (need.verdict == zeroing_verdict::absent) continue;
      zeroing_part cleared{field, true, {}};
      zeroing_part left{field, false, {}};
      runs_.for_each_copy(field, [&](std::size_t copy, std::size_t bytes) {
        std::size_t done = 0;
        for (const zeroing_piece& piece : cleared_pieces(field, copy, bytes)) {
          if (done < piece.begin) left.pieces.push_back({field, copy, done, piece.begin});
          cleared.pieces.push_back(piece);
          need.cleared_bytes += piece.end - piece.begin;
          done = piece.end;
        }
        if (done < bytes) left.pieces.push_back({field, copy, done, bytes});
      });
      if (need.verdict == zeroing_verdict::kept) continue;
      if (!cleared.pieces.empty()) parts_.push_back(cleared);
      if (!left.pieces.empty()) parts_.push_back(left);
    }
    leaking_.assign(parts_.size(), false);
  }

  /// The bytes of one instance that passes cleared, sorted and merged.
  zeroing_pieces cleared_pieces(std::size_t field, std::size_t copy, std::size_t bytes) const {
    const auto start = reinterpret_cast<std::uintptr_t>(runs_.address_of(field, copy));
    zeroing_pieces pieces;
    for (const segment& range : runs_.asked()) {
      const auto begin = reinterpret_cast<std::uintptr_t>(range.address);
      const std::uintptr_t first = std::max(begin, start);
      const std::uintptr_t last = std::min(begin + range.bytes, start + bytes);
      if (first < last) pieces.push_back({field, copy, first - start, last - start});
    }
    std::sort(pieces.begin(), pieces.end(),
              [](const zeroing_piece& one, const zeroing_piece& other) { return one.begin < other.begin; });
    zeroing_pieces merged;
    for (const zeroing_piece& piece : pieces) {
      if (!merged.empty() && piece.begin <= merged.back().end) {
        merged.back().end = std::max(merged.back().end, piece.end);
      } else {
        merged.push_back(piece);
      }
    }
    return merged;
  }

  [[nodiscard]] part_numbers all_parts() const {
    part_numbers numbers(parts_.size());
    for (std::size_t part = 0; part < numbers.size(); ++part) numbers[part] = part;
    return numbers;
  }
  [[nodiscard]] zeroing_pieces pieces_of(const part_numbers& numbers) const {
    zeroing_pieces pieces;
    for (const std::size_t part : numbers)
      pieces.insert(pieces.end(), parts_[part].pieces.begin(), parts_[part].pieces.end());
    return pieces;
  }

  bool is_deterministic() {
    if (runs_.outputs_after({}, nullptr, false) != baseline_) return false;
    const zeroing_pieces everything = pieces_of(all_parts());
    for (const poison_pattern& pattern : options_.patterns) {
      if (runs_.outputs_after(everything, &pattern, false) !=
          runs_.outputs_after(everything, &pattern, false))
        return false;
    }
    return true;
  }

  /// Whether the outputs are others than the baseline. Such a run is repeated: a step that gives the same
  /// outputs most of the time must not accuse a field. Once one is caught, nothing leaks any more, which ends
  /// the search.
  bool differs(const zeroing_pieces& pieces, const poison_pattern* pattern, bool withhold) {
    if (!result_.deterministic) return false;
    const std::vector<std::byte> outputs = runs_.outputs_after(pieces, pattern, withhold);
    if (outputs == baseline_) return false;
    result_.deterministic = runs_.outputs_after(pieces, pattern, withhold) == outputs;
    return result_.deterministic;
  }

  void forget_verdicts() {
    for (zeroing_need& need : result_.fields)
      need.leaks = need.leaks_when_left_out = need.jointly = need.located = false;
  }

  bool leaks(const part_numbers& numbers, bool withhold) {
    const zeroing_pieces pieces = pieces_of(numbers);
    // Without a pass, what the step itself wrote earlier stays too.
    if (withhold && differs(pieces, nullptr, true)) return true;
    for (const poison_pattern& pattern : options_.patterns) {
      if (differs(pieces, &pattern, withhold)) return true;
    }
    return false;
  }

  /// Finds the parts that leak among the suspects.
  void search(part_numbers suspects, bool withhold) {
    const part_numbers all = suspects;
    part_numbers guilty;
    while (!suspects.empty() && leaks(suspects, withhold)) {
      const std::size_t before = guilty.size();
      bisect(suspects, withhold, guilty);
      // Without those found, the others are searched again: a leak can hide another one.
      for (std::size_t index = before; index < guilty.size(); ++index)
        suspects.erase(std::find(suspects.begin(), suspects.end(), guilty[index]));
    }
    if (!options_.each_alone) return;
    for (const std::size_t part : suspects) {
      if (leaks({part}, withhold)) report({part}, withhold, guilty);
    }
  }

  /// `set` leaks: adds one of its parts at least to `guilty`.
  void bisect(const part_numbers& set, bool withhold, part_numbers& guilty) {
    if (set.size() == 1) {
      report(set, withhold, guilty);
      return;
    }
    const auto middle = set.begin() + static_cast<std::ptrdiff_t>(set.size() / 2);
    const part_numbers first(set.begin(), middle);
    const part_numbers second(middle, set.end());
    const bool first_leaks = leaks(first, withhold);
    const bool second_leaks = leaks(second, withhold);
    if (first_leaks) bisect(first, withhold, guilty);
    if (second_leaks) bisect(second, withhold, guilty);
    if (first_leaks || second_leaks) return;
    // Only together: leave out one after the other as long as the rest leaks.
    part_numbers needed = set;
    for (const std::size_t part : set) {
      part_numbers without = needed;
      without.erase(std::find(without.begin(), without.end(), part));
      if (!without.empty() && leaks(without, withhold)) needed.swap(without);
    }
    report(needed, withhold, guilty);
  }

  void report(const part_numbers& found, bool withhold, part_numbers& guilty) {
    for (const std::size_t part : found) {
      guilty.push_back(part);
      zeroing_need& need = result_.fields[parts_[part].field];
      if (found.size() > 1) need.jointly = true;
      if (withhold) {
        need.leaks_when_left_out = true;
      } else {
        leaking_[part] = true;
        need.leaks = true;
        if (found.size() == 1 && options_.locate) locate(parts_[part], need);
      }
    }
  }

  /// Bytes [begin, end) of pieces laid end to end.
  static zeroing_pieces cut(const zeroing_pieces& pieces, std::size_t begin, std::size_t end) {
    zeroing_pieces result;
    std::size_t start = 0;
    for (const zeroing_piece& piece : pieces) {
      const std::size_t bytes = piece.end - piece.begin;
      const std::size_t first = std::max(begin, start);
      const std::size_t last = std::min(end, start + bytes);
      if (first < last)
        result.push_back(
            {piece.field, piece.copy, piece.begin + (first - start), piece.begin + (last - start)});
      start += bytes;
    }
    return result;
  }

  /// The smallest length in [1, longest] whose cut leaks; `longest` does.
  template <class Cut>
  std::size_t shortest_leak(std::size_t longest, const poison_pattern& pattern, const Cut& cut_of) {
    std::size_t smallest = 1;
    while (smallest < longest) {
      const std::size_t middle = smallest + (longest - smallest) / 2;
      if (runs_.outputs_after(cut_of(middle), &pattern, false) != baseline_) {
        longest = middle;
      } else {
        smallest = middle + 1;
      }
    }
    return smallest;
  }

  void locate(const zeroing_part& part, zeroing_need& need) {
    std::size_t total = 0;
    for (const zeroing_piece& piece : part.pieces) total += piece.end - piece.begin;
    for (const poison_pattern& pattern : options_.patterns) {
      if (runs_.outputs_after(part.pieces, &pattern, false) == baseline_) continue;
      // The last byte of the shortest beginning that leaks is the first one that does; likewise at the end.
      const std::size_t head =
          shortest_leak(total, pattern, [&](std::size_t length) { return cut(part.pieces, 0, length); });
      const std::size_t tail = shortest_leak(
          total, pattern, [&](std::size_t length) { return cut(part.pieces, total - length, total); });
      note_place(cut(part.pieces, head - 1, head).front(), need);
      note_place(cut(part.pieces, total - tail, total - tail + 1).front(), need);
    }
  }

  void note_place(const zeroing_piece& byte, zeroing_need& need) const {
    const std::size_t at = byte.copy * arena_.plan().layout(byte.field).stride + byte.begin;
    need.first_byte = need.located ? std::min(need.first_byte, at) : at;
    need.last_byte = need.located ? std::max(need.last_byte, at) : at;
    need.located = true;
  }

  void judge(std::size_t field) {
    zeroing_need& need = result_.fields[field];
    if (need.verdict == zeroing_verdict::absent || need.verdict == zeroing_verdict::kept) return;
    const bool cleared = clears(field) || need.cleared_bytes != 0;
    if (need.leaks) {
      need.verdict = cleared ? zeroing_verdict::too_little : zeroing_verdict::lie;
    } else if (need.leaks_when_left_out) {
      need.verdict = zeroing_verdict::needed;
    } else {
      need.verdict = cleared ? zeroing_verdict::waste : zeroing_verdict::not_needed;
    }
  }

  Arena& arena_;
  const Options& options_;
  zeroing_runs<Arena, Withholding, Step, Options> runs_;
  std::vector<std::byte> baseline_;
  std::vector<zeroing_part> parts_;
  std::vector<bool> leaking_;
  zeroing_needs result_;
};
template <class Arena, class Withholding, class Step, class Options>
zeroing_experiment(Arena&, Withholding&, Step&, const std::vector<std::span<const std::byte>>&,
                   const Options&) -> zeroing_experiment<Arena, Withholding, Step, Options>;

} // namespace stowage::inline v0_1::detail
