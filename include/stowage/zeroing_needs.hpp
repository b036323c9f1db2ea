#pragma once

#include <stowage/arena.hpp>
#include <stowage/backend/withholding.hpp>
#include <stowage/detail/cold.hpp>
#include <stowage/detail/zeroing_experiment.hpp>
#include <stowage/error.hpp>
#include <stowage/poison.hpp>
#include <stowage/zeroing_report.hpp>

#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

namespace stowage::inline v0_1 {

/// How the zeroing experiment runs.
template <class Stream> struct zeroing_options {
  /// The stream of the step. The experiment waits for it; a step that uses others waits for those itself.
  Stream stream{};
  /// What old content is played by. A leak that one pattern does not show, another may: NaN is lost in a
  /// maximum, a negative number in a ReLU.
  std::vector<poison_pattern> patterns{poisons::ones, poisons::signalling_nan, poisons::large_positive,
                                       poisons::large_negative};
  /// Numbers of the fields whose content is an input: plan.index_of<&fields::token_ids>().
  std::vector<std::size_t> keep{};
  /// Tests each field by itself too, after the bisection: finds a leak that shows only while another field
  /// holds zeros. A run for each field and pattern more.
  bool each_alone = false;
  /// Looks for the first and the last byte that leak, by bisection.
  bool locate = true;
};

namespace detail {

template <class Backend> inline constexpr bool withholds = false;
template <class Inner> inline constexpr bool withholds<withholding_backend<Inner>> = true;

} // namespace detail

/// Which zero policies a step needs, which are waste, and which `never` is a lie. Runs the step again and
/// again from memory that holds zeros but for some fields, which hold poison, and compares the outputs
/// bitwise with those of a run from zeros alone:
///
/// - with the zero passes as they are: what still changes the outputs is old content that leaks;
/// - with some of the cleared memory left out of the passes: what changes nothing is cleared in vain.
///
/// The fields are found by bisection; what was found is set aside and the rest is searched again, so that one
/// leak does not hide another. `step` is called as step(arena) and does what one step of the engine does, its
/// zero passes included; `outputs` are what it is for, in backend memory: handle.memory(), or
/// std::as_bytes(handle.rows(0, tokens)). Rows beyond the tokens are no outputs.
///
/// The arena is made on a withholding_backend, through which the passes go wherever in the step they are
/// called from. Graphs that were captured before do not go through it: run the step without graphs.
///
/// The fields in `options.keep`, and `never` fields with pad_fill or zero_at_construction, hold inputs: they
/// get their present content back before each run and at the end. All others hold zeros afterwards. The
/// verdicts are about this step with these inputs: run it with several token counts.
///
/// Throws usage_error where there is nothing to compare or no pattern, where a pattern is all zeros, where the
/// step releases or moves the arena, after release and while the stream captures; what the backend and the
/// step throw. Uses the heap.
template <class Fields, class Params, class Backend, class Step>
[[nodiscard]] zeroing_needs find_zeroing_needs(
    arena<Fields, Params, Backend>& arena, Step&& step,
    const std::vector<std::span<const std::byte>>& outputs,
    const zeroing_options<typename std::remove_reference_t<Backend>::stream_type>& options = {}) {
  static_assert(detail::withholds<std::remove_reference_t<Backend>>,
                "stowage: the zeroing experiment needs an arena on a withholding_backend, such as "
                "arena(plan, withholding_backend(cuda::backend{})), or the withholding_backend that an "
                "any_backend refers to");
  return detail::zeroing_experiment(arena, arena.backend(), step, outputs, options).run();
}

/// The same for an arena whose backend is not known to be a withholding_backend but passes on to `withholding`,
/// as an any_backend does: then the step need not be written for another type of arena.
template <class Fields, class Params, class Backend, backend Inner, class Step>
[[nodiscard]] zeroing_needs find_zeroing_needs(
    arena<Fields, Params, Backend>& arena, withholding_backend<Inner>& withholding, Step&& step,
    const std::vector<std::span<const std::byte>>& outputs,
    const zeroing_options<typename std::remove_reference_t<Backend>::stream_type>& options = {}) {
  return detail::zeroing_experiment(arena, withholding, step, outputs, options).run();
}

} // namespace stowage::inline v0_1
