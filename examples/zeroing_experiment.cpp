// Which buffers need zeroing at all? A small engine step with four mistakes: a matrix multiplication that
// reads stale rows, a `never` that is a lie, and two policies that clear in vain. The experiment finds them.

#include <stowage/backend/withholding.hpp>
#include <stowage/stowage.hpp>
#include <stowage/zeroing_needs.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string_view>

struct params {
  stowage::tokens max_tokens;
  std::size_t hidden, vocabulary, experts;
  bool trace;
};
inline constexpr stowage::dim<&params::max_tokens> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};
inline constexpr stowage::dim<&params::vocabulary> vocabulary{};
inline constexpr stowage::dim<&params::experts> experts{};

// [buffers]
struct expert_buffers {
  /// Tokens that each expert got in this step.
  stowage::buffer<std::uint32_t, stowage::shape<experts>, stowage::zero::never> load;
  /// Router scores, all of them written before one is read.
  stowage::buffer<float, stowage::shape<M, experts>, stowage::zero::full> scores;
};
struct buffers {
  /// The tokens of the batch, written by the scheduler.
  stowage::buffer<std::uint32_t, stowage::shape<M>, stowage::zero::never> token_ids;
  stowage::buffer<float, stowage::shape<M, hidden>, stowage::zero::rows> hidden_states;
  /// Input of the matrix multiplication, which works on tiles of 16 rows.
  stowage::buffer<float, stowage::shape<M, hidden>, stowage::zero::rows> normalised;
  /// The halves of the split-K multiplication are added up here.
  stowage::buffer<float, stowage::shape<M, vocabulary>, stowage::zero::rows> partial_sums;
  expert_buffers moe;
  stowage::buffer<float, stowage::shape<M, hidden>, stowage::zero::never, stowage::when<&params::trace>>
      trace;
  stowage::buffer<float, stowage::shape<M, vocabulary>, stowage::zero::never> logits;
};
// [buffers]

/// The same with what the experiment says put right.
struct repaired_expert_buffers {
  stowage::buffer<std::uint32_t, stowage::shape<experts>, stowage::zero::full> load;
  stowage::buffer<float, stowage::shape<M, experts>, stowage::zero::never> scores;
};
struct repaired_buffers {
  stowage::buffer<std::uint32_t, stowage::shape<M>, stowage::zero::never> token_ids;
  stowage::buffer<float, stowage::shape<M, hidden>, stowage::zero::never> hidden_states;
  stowage::buffer<float, stowage::shape<stowage::pad<16>(M), hidden>, stowage::zero::rows> normalised;
  stowage::buffer<float, stowage::shape<M, vocabulary>, stowage::zero::rows> partial_sums;
  repaired_expert_buffers moe;
  stowage::buffer<float, stowage::shape<M, hidden>, stowage::zero::never, stowage::when<&params::trace>>
      trace;
  stowage::buffer<float, stowage::shape<M, vocabulary>, stowage::zero::never> logits;
};

namespace {

constexpr params limits{
    .max_tokens = stowage::tokens{32}, .hidden = 8, .vocabulary = 4, .experts = 2, .trace = false};
constexpr std::size_t batch = 7;

int failures = 0;

void check(bool right, const char* what) {
  if (right) return;
  std::printf("WRONG: %s\n", what);
  ++failures;
}

/// Weights: numbers between -1 and 1, the same on every machine.
float weight(std::size_t row, std::size_t column) {
  return static_cast<float>((row * 7 + column * 5 + 3) % 17) / 8.5F - 1.0F;
}

// [step]
/// One step of the engine, as it runs in production: a template over the arena, so that the experiment can
/// give it one on another backend.
template <class Arena> void decode_step(Arena& arena) {
  arena.zero_rows({}, stowage::tokens{batch});

  for (std::size_t token = 0; token < batch; ++token) { // embedding: writes every row that it reaches
    for (std::size_t column = 0; column < limits.hidden; ++column)
      arena->hidden_states.data()[token * limits.hidden + column] =
          weight(arena->token_ids.data()[token], column);
  }
  for (std::size_t token = 0; token < batch; ++token) { // normalisation
    for (std::size_t column = 0; column < limits.hidden; ++column) {
      const std::size_t at = token * limits.hidden + column;
      arena->normalised.data()[at] = arena->hidden_states.data()[at] / 2.0F;
    }
  }
  // The multiplication scales its input by the largest magnitude in it. It looks at whole tiles: at 16 rows,
  // of which 7 were written.
  float largest = 0.0F;
  for (std::size_t at = 0; at < 16 * limits.hidden; ++at)
    largest = std::max(largest, std::abs(arena->normalised.data()[at]));
  for (std::size_t half = 0; half < 2; ++half) { // split-K: each half adds what it has
    for (std::size_t token = 0; token < batch; ++token) {
      for (std::size_t column = 0; column < limits.vocabulary; ++column) {
        for (std::size_t k = half * limits.hidden / 2; k < (half + 1) * limits.hidden / 2; ++k) {
          arena->partial_sums.data()[token * limits.vocabulary + column] +=
              std::round(arena->normalised.data()[token * limits.hidden + k] / largest * 127.0F) *
              weight(k, column);
        }
      }
    }
  }
  for (std::size_t token = 0; token < batch; ++token) { // the router counts the tokens of each expert
    for (std::size_t expert = 0; expert < limits.experts; ++expert)
      arena->moe.scores.data()[token * limits.experts + expert] = weight(token, expert);
    const float* scores = arena->moe.scores.data() + token * limits.experts;
    ++arena->moe.load.data()[scores[0] < scores[1] ? 1 : 0];
  }
  for (std::size_t token = 0; token < batch; ++token) {
    const auto busiest = static_cast<float>(std::max(arena->moe.load.data()[0], arena->moe.load.data()[1]));
    for (std::size_t column = 0; column < limits.vocabulary; ++column) {
      const std::size_t at = token * limits.vocabulary + column;
      arena->logits.data()[at] = arena->partial_sums.data()[at] / busiest;
    }
  }
}
// [step]

template <class Fields> stowage::zeroing_needs examine() {
  // [experiment]
  const auto plan = stowage::make_plan<Fields>(limits);
  stowage::arena arena(plan, stowage::withholding_backend(stowage::host_backend{}));
  for (std::size_t token = 0; token < batch; ++token) // the inputs of the step
    arena->token_ids.data()[token] = static_cast<std::uint32_t>(token * token);

  const stowage::zeroing_needs needs = stowage::find_zeroing_needs(
      arena, [](auto& each) { decode_step(each); }, {std::as_bytes(arena->logits.rows(0, batch))},
      {.keep = {plan.template index_of<&Fields::token_ids>()}});
  std::printf("%s", needs.text().c_str());
  // [experiment]
  return needs;
}

bool says(const stowage::zeroing_needs& needs, std::string_view field, stowage::zeroing_verdict verdict) {
  const stowage::zeroing_need* need = needs.find(field);
  return need != nullptr && need->verdict == verdict;
}

} // namespace

int main() {
  using verdict = stowage::zeroing_verdict;
  const stowage::zeroing_needs first = examine<buffers>();
  check(first.deterministic, "the step is deterministic");
  check(says(first, "token_ids", verdict::kept), "the tokens are an input");
  check(says(first, "hidden_states", verdict::waste), "every row of the hidden states is written");
  check(says(first, "normalised", verdict::too_little), "the multiplication reads stale rows");
  check(first.find("normalised")->first_byte / (std::size_t{8} * 4) == 7, "from row 7 on");
  check(first.find("normalised")->last_byte / (std::size_t{8} * 4) == 15, "up to row 15");
  check(says(first, "partial_sums", verdict::needed), "split-K adds into zeros");
  check(says(first, "moe.load", verdict::lie), "the experts' load is added up and never cleared");
  check(says(first, "moe.scores", verdict::waste), "the scores are written before they are read");
  check(says(first, "trace", verdict::absent), "there is no trace");
  check(says(first, "logits", verdict::not_needed), "the logits are written");

  std::puts("\nand put right:");
  const stowage::zeroing_needs second = examine<repaired_buffers>();
  check(second.clean() && second.wasted_bytes() == 0, "no leak is left, and nothing is cleared in vain");
  check(says(second, "normalised", verdict::needed), "16 rows are cleared now");
  std::puts(failures == 0 ? "right" : "wrong");
  return failures == 0 ? 0 : 1;
}
