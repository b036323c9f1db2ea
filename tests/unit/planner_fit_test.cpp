#include <planner/bounds.hpp>
#include <planner/fit.hpp>
#include <planner/options.hpp>

#include <stowage/llm/forward_buffers.hpp>
#include <stowage/stowage.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace {

using planner::interval;
using planner::interval_evaluator;
using stowage::llm::forward_buffers;
using stowage::llm::forward_params;
using stowage::llm::forward_plan;

/// A search over a list of sizes, with bounds that are those of the list.
struct listed {
  std::vector<std::size_t> sizes; // of the values from 1 on

  std::size_t bytes(std::size_t value) const { return sizes[value - 1]; }
  std::size_t least(std::size_t first, std::size_t last) const {
    return *std::min_element(sizes.begin() + static_cast<std::ptrdiff_t>(first - 1),
                             sizes.begin() + static_cast<std::ptrdiff_t>(last));
  }
  std::optional<std::size_t> fit(std::size_t budget) const {
    return planner::largest_fit(
        1, sizes.size(), budget, [this](std::size_t value) { return bytes(value); },
        [this](std::size_t first, std::size_t last) { return least(first, last); });
  }
  std::size_t smallest() const {
    return planner::smallest_value(
        1, sizes.size(), [this](std::size_t value) { return bytes(value); },
        [this](std::size_t first, std::size_t last) { return least(first, last); });
  }
};

TEST_CASE("the largest value that fits, also where sizes go down again") {
  const listed rising{{1, 2, 4, 8, 16}};
  CHECK(rising.fit(8) == 4);
  CHECK(rising.fit(7) == 3);
  CHECK(rising.fit(100) == 5);
  CHECK(rising.fit(0) == std::nullopt);
  CHECK(rising.smallest() == 1);
  // A search by halves alone would say 1 for a budget of 5.
  const listed dented{{3, 9, 8, 7, 2, 9, 5, 10, 11}};
  CHECK(dented.fit(5) == 7);
  CHECK(dented.fit(2) == 5);
  CHECK(dented.fit(1) == std::nullopt);
  CHECK(dented.fit(9) == 7);
  CHECK(dented.fit(11) == 9);
  CHECK(dented.smallest() == 5);
}

struct numbers {
  stowage::tokens count;
  std::size_t other;
  bool flag;
};
inline constexpr stowage::dim<&numbers::count> count{};
inline constexpr stowage::dim<&numbers::other> other{};
inline constexpr stowage::dim<&numbers::flag> flag{};

/// The values of a formula while count lies in a range.
template <class Formula> interval over(const Formula& formula, std::size_t first, std::size_t last) {
  const numbers given{stowage::tokens{0}, 10, true};
  const auto program = stowage::detail::compile<numbers>(formula);
  return interval_evaluator<numbers>(given, "count", {first, last}).value(program.data());
}

TEST_CASE("bounds hold every value in between") {
  const auto check = [](const auto& formula) {
    for (std::size_t first = 0; first <= 40; ++first) {
      for (std::size_t last = first; last <= 40; last += 3) {
        const interval found = over(formula, first, last);
        for (std::size_t value = first; value <= last; ++value) {
          const std::size_t exact = stowage::evaluate(formula, numbers{stowage::tokens{value}, 10, true});
          REQUIRE(found.low <= exact);
          REQUIRE(exact <= found.high);
        }
      }
    }
  };
  check(count + other);
  check(count * other + 3);
  check(100 - count);
  check(count / 7);
  check(stowage::c<100> / (count + 1));
  check(stowage::cdiv(count, 7));
  check(stowage::cdiv(stowage::c<100>, count + 1));
  check(stowage::pad<16>(count));
  check(stowage::min(count, other));
  check(stowage::max(count, other));
  check(stowage::choose(count > other, 1, count));
  check(stowage::choose(count == other, 1000, 2));
  check(stowage::choose(count != other && flag, 5, count));
  check(stowage::choose(!(count >= other) || !flag, 50 - count, 3));
  check(stowage::next_rung<2, 8, 32>(count + 0));
}

forward_params small_params() {
  forward_params params{stowage::llm::model_config{.vocab_size = 50,
                                                   .hidden_size = 48,
                                                   .intermediate_size = 64,
                                                   .num_attention_heads = 4,
                                                   .num_key_value_heads = 2,
                                                   .head_dim = 12,
                                                   .mamba_num_heads = 3,
                                                   .mamba_head_dim = 8,
                                                   .n_groups = 1,
                                                   .ssm_state_size = 16,
                                                   .num_experts = 6,
                                                   .num_experts_per_tok = 2,
                                                   .moe_intermediate_size = 32}};
  params.max_batch_tokens = stowage::tokens{64};
  params.max_seq_len = 4096;
  params.kv_block_size = 16;
  params.max_batch_size = 32;
  params.sm_count = 132;
  params.pad_decode_rows = true;
  return params;
}

TEST_CASE(
    "bounds of the forward arena: at one value the slab itself, over a range no more than any slab in it") {
  const auto check = [](std::string_view name, std::size_t last, const auto& set) {
    std::vector<std::size_t> slabs;
    for (std::size_t value = 1; value <= last; ++value) {
      forward_params params = small_params();
      set(params, value);
      slabs.push_back(forward_plan{params}.slab_bytes());
      REQUIRE(planner::least_slab_bytes<forward_buffers>(small_params(), name, value, value) == slabs.back());
    }
    for (std::size_t first = 1; first <= last; first += 5) {
      std::size_t least = slabs[first - 1];
      for (std::size_t end = first; end <= last; ++end) {
        least = std::min(least, slabs[end - 1]);
        REQUIRE(planner::least_slab_bytes<forward_buffers>(small_params(), name, first, end) <= least);
      }
    }
  };
  check("max_batch_tokens", 200,
        [](forward_params& params, std::size_t value) { params.max_batch_tokens = stowage::tokens{value}; });
  check("max_seq_len", 200, [](forward_params& params, std::size_t value) {
    params.max_seq_len = static_cast<std::int64_t>(value);
  });
  check("max_batch_size", 128, [](forward_params& params, std::size_t value) {
    params.max_batch_size = static_cast<std::int64_t>(value);
  });
  CHECK(planner::least_slab_bytes<forward_buffers>(small_params(), "max_batch_size", 129, 200) ==
        18446744073709551615U);
}

} // namespace
