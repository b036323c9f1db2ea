#pragma once

#include <stowage/arena.hpp>
#include <stowage/error.hpp>
#include <stowage/poison.hpp>
#include <stowage/segments.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stowage::inline v0_1::detail {

/// Bytes [begin, end) of one instance of a field.
struct zeroing_piece {
  std::size_t field = 0;
  std::size_t copy = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};
using zeroing_pieces = std::vector<zeroing_piece>;

/// Runs a step from memory whose content is known, and tells what came out.
template <class Arena, class Withholding, class Step, class Options> class zeroing_runs {
public:
  using outputs_type = std::vector<std::span<const std::byte>>;

  zeroing_runs(Arena& arena, Withholding& withholding, Step& step, const outputs_type& outputs,
               const Options& options)
      : arena_(arena), withholding_(withholding), step_(step), outputs_(outputs), options_(options),
        generation_(arena.generation()) {
    for (const std::span<const std::byte>& output : outputs_) output_bytes_ += output.size();
  }
  zeroing_runs(const zeroing_runs&) = delete;
  zeroing_runs& operator=(const zeroing_runs&) = delete;
  ~zeroing_runs() { // also when the step throws
    withholding_.withhold({});
    withholding_.forget();
  }

  /// Refuses what makes no experiment.
  void check() const {
    arena_.require_memory("find_zeroing_needs");
    if constexpr (capturing_backend<typename Arena::backend_type>) {
      if (arena_.backend().is_capturing(options_.stream))
        refuse_during_capture("the zeroing experiment, which waits for the stream,");
    }
    if (output_bytes_ == 0) {
      throw usage_error("stowage: the zeroing experiment has no output to compare: the list is empty, or its "
                        "fields take no memory");
    }
    if (options_.patterns.empty())
      throw usage_error("stowage: the zeroing experiment needs at least one pattern");
    for (const poison_pattern& pattern : options_.patterns) {
      if (pattern.byte == 0 || pattern.integer_value == 0) {
        throw usage_error(
            "stowage: a pattern of the zeroing experiment fills with zeros, which is what it is "
            "compared with; choose another byte or integer_value");
      }
      check_elements(pattern);
    }
  }

  /// The field holds zeros or poison before each run.
  void test(std::size_t field) {
    for_each_copy(field, [&](std::size_t copy, std::size_t bytes) {
      tested_.push_back({address_of(field, copy), bytes});
    });
  }
  /// The field holds what it holds now before each run.
  void keep(std::size_t field) {
    for_each_copy(field, [&](std::size_t copy, std::size_t bytes) {
      kept_.push_back({address_of(field, copy), read(address_of(field, copy), bytes)});
    });
  }

  [[nodiscard]] std::byte* address_of(std::size_t field, std::size_t copy) const {
    return arena_.address(field) + copy * arena_.plan().layout(field).stride;
  }
  /// Calls visit(copy, bytes) for each instance of a field; its tail is counted.
  template <class Visit> void for_each_copy(std::size_t field, const Visit& visit) const {
    const field_layout& layout = arena_.plan().layout(field);
    for (std::size_t copy = 0; copy < layout.copies; ++copy) visit(copy, layout.bytes + layout.tail);
  }
  /// Zeros, and the inputs as they were.
  void reset() {
    withholding_.withhold({});
    if (!tested_.empty()) arena_.backend().zero(options_.stream, std::span<const segment>(tested_));
    for (const kept_content& kept : kept_) {
      arena_.backend().copy_from_host(options_.stream, kept.address, kept.content.data(),
                                      kept.content.size());
    }
    arena_.backend().synchronize(options_.stream);
  }

  /// Runs the step from zeros but for `pieces`, which hold the pattern (zeros where it is null) and are left
  /// out of the passes where `withhold` says so. Returns the bytes of all outputs.
  std::vector<std::byte> outputs_after(const zeroing_pieces& pieces, const poison_pattern* pattern,
                                       bool withhold) {
    reset();
    std::vector<segment> left_out;
    for (const zeroing_piece& piece : pieces) {
      if (pattern != nullptr)
        poison_range(arena_, piece.field, piece.copy, piece.begin, piece.end, *pattern, options_.stream);
      if (withhold)
        left_out.push_back({address_of(piece.field, piece.copy) + piece.begin, piece.end - piece.begin});
    }
    withholding_.withhold(left_out);
    withholding_.forget();
    step_(arena_);
    ++runs_;
    if (arena_.generation() != generation_) { // the outputs are addresses in what is gone
      throw usage_error("stowage: the step of the zeroing experiment released, moved or made anew its arena; "
                        "it is to leave that as it is");
    }
    std::vector<std::byte> content(output_bytes_);
    std::size_t at = 0;
    for (const std::span<const std::byte>& output : outputs_) {
      if (output.empty()) continue;
      arena_.backend().copy_to_host(options_.stream, content.data() + at, output.data(), output.size());
      at += output.size();
    }
    arena_.backend().synchronize(options_.stream);
    return content;
  }

  /// What the zero passes of the last run asked to clear.
  [[nodiscard]] const std::vector<segment>& asked() const { return withholding_.asked(); }
  [[nodiscard]] std::size_t count() const { return runs_; }
  [[nodiscard]] std::size_t output_bytes() const { return output_bytes_; }

private:
  /// What fits into an integer of a byte can be zero in one of 4 bits.
  void check_elements(const poison_pattern& pattern) const {
    for (const auto& entry : Arena::plan_type::table()) {
      for (std::uint32_t node = 0; node < entry.nodes->length; ++node) {
        if (entry.nodes[node].kind == content_kind::tensor &&
            poison_of_element(entry.nodes[node].element, pattern).bytes == fill_pattern{}.bytes) {
          throw usage_error("stowage: an integer_value of the zeroing experiment is zero in the low 4 bits, "
                            "which are all that an i4 or u4 holds; choose another one");
        }
      }
    }
  }

  std::vector<std::byte> read(const std::byte* address, std::size_t bytes) {
    std::vector<std::byte> content(bytes);
    arena_.backend().copy_to_host(options_.stream, content.data(), address, bytes);
    arena_.backend().synchronize(options_.stream);
    return content;
  }

  struct kept_content {
    std::byte* address;
    std::vector<std::byte> content;
  };

  Arena& arena_;
  Withholding& withholding_;
  Step& step_;
  const outputs_type& outputs_;
  const Options& options_;
  std::uint64_t generation_;
  std::size_t output_bytes_ = 0;
  std::size_t runs_ = 0;
  std::vector<segment> tested_;
  std::vector<kept_content> kept_;
};

} // namespace stowage::inline v0_1::detail
