#include <stowage/condition.hpp>
#include <stowage/formula.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

namespace {

using stowage::c;
using stowage::cdiv;
using stowage::choose;
using stowage::evaluate;
using stowage::pad;
using stowage::text;
using namespace std::string_view_literals;

enum class layout_kind : std::uint8_t { rows = 3, tiles = 5 };

struct params {
  stowage::tokens batch{};
  stowage::sequences streams{};
  std::size_t hidden = 0;
  std::int32_t heads = 0;
  std::uint8_t small = 0;
  layout_kind layout = layout_kind::rows;
  bool gated = false;

  constexpr std::size_t width() const { return hidden * 2; }
  constexpr stowage::tokens bucket() const noexcept { return batch; }
  constexpr const std::int32_t& head_count() const { return heads; }
};

inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::streams> streams{};
inline constexpr stowage::dim<&params::hidden> hidden{};
inline constexpr stowage::dim<&params::heads> heads{};
inline constexpr stowage::dim<&params::small> small{};
inline constexpr stowage::dim<&params::layout> layout{};
inline constexpr stowage::dim<&params::gated> gated{};
inline constexpr stowage::dim<&params::width> width{};
inline constexpr stowage::dim<&params::bucket> bucket{};
inline constexpr stowage::dim<&params::head_count> head_count{};

inline constexpr params p{.batch = stowage::tokens{17},
                          .streams = stowage::sequences{5},
                          .hidden = 40,
                          .heads = 6,
                          .small = 200,
                          .layout = layout_kind::tiles,
                          .gated = true};

// Members of every kind.
static_assert(evaluate(M, p) == 17);
static_assert(evaluate(streams, p) == 5);
static_assert(evaluate(hidden, p) == 40);
static_assert(evaluate(heads, p) == 6);
static_assert(evaluate(small, p) == 200);
static_assert(evaluate(layout, p) == 5);
static_assert(evaluate(gated, p) == 1);
static_assert(evaluate(width, p) == 80);
static_assert(evaluate(bucket, p) == 17);
static_assert(evaluate(head_count, p) == 6);

// Arithmetic, with integers of every type on either side.
static_assert(evaluate(hidden + heads, p) == 46);
static_assert(evaluate(hidden + 1, p) == 41);
static_assert(evaluate(1u + hidden, p) == 41);
static_assert(evaluate(hidden - heads, p) == 34);
static_assert(evaluate(hidden - 40, p) == 0);
static_assert(evaluate(hidden * heads, p) == 240);
static_assert(evaluate(std::size_t{2} * hidden, p) == 80);
static_assert(evaluate(hidden / heads, p) == 6);
static_assert(evaluate(cdiv(hidden, heads), p) == 7);
static_assert(evaluate(cdiv(hidden, 40), p) == 1);
static_assert(evaluate(cdiv(0 * hidden, 40), p) == 0);
static_assert(evaluate(cdiv(41, hidden), p) == 2);
static_assert(evaluate(cdiv(c<64>, c<16>), p) == 4);
static_assert(evaluate(c<64> - c<16>, p) == 48);
static_assert(evaluate(pad<16>(M), p) == 32);
static_assert(evaluate(pad<17>(M), p) == 17);
static_assert(evaluate(pad<1>(M), p) == 17);
static_assert(evaluate(pad<16>(0 * M), p) == 0);
static_assert(evaluate(stowage::min(M, 160), p) == 17);
static_assert(evaluate(stowage::min(M, 3), p) == 3);
static_assert(evaluate(stowage::max(M, 3), p) == 17);
static_assert(evaluate(stowage::max(3, M), p) == 17);
static_assert(evaluate(stowage::max(hidden, heads, 99, M), p) == 99);
static_assert(evaluate(stowage::min(hidden, heads, 99, M), p) == 6);
static_assert(evaluate((heads * choose(gated, 2, 1) + 2 * small) * hidden, p) == (6 * 2 + 2 * 200) * 40);
static_assert(evaluate(stowage::at_most<17>(M), p) == 17);

// The other branch of a choice is not evaluated.
static_assert(evaluate(choose(gated, hidden, hidden - 1000), p) == 40);
static_assert(evaluate(choose(!gated, hidden / (heads - 6), 7), p) == 7);
static_assert(evaluate(choose(hidden > 30, choose(heads > 6, 1, 2), 3), p) == 2);

// A params struct by inheritance reads the members of its base.
struct larger_params : params {
  std::size_t extra = 0;
};
inline constexpr stowage::dim<&larger_params::extra> extra{};
static_assert(evaluate(hidden + extra, larger_params{p, 2}) == 42);

// The largest values that are still representable.
inline constexpr std::size_t largest = std::numeric_limits<std::size_t>::max();
inline constexpr params huge{.hidden = largest};
static_assert(evaluate(hidden, huge) == largest);
static_assert(evaluate(hidden * 1, huge) == largest);
static_assert(evaluate(hidden + 0, huge) == largest);
static_assert(evaluate(0 * hidden, huge) == 0);
static_assert(evaluate(cdiv(hidden, 2), huge) == 9223372036854775808u);
static_assert(evaluate(hidden - hidden, huge) == 0);
static_assert(evaluate(pad<largest>(hidden), huge) == largest);
static_assert(evaluate(hidden * 3, params{.hidden = 6148914691236517205u}) == largest); // (2^64 - 1) / 3

// A name of its own.
struct qkv_definition {
  static constexpr std::string_view name = "qkv";
  static constexpr auto formula = (heads + 2 * small) * hidden;
};
inline constexpr stowage::derived<qkv_definition> qkv{};
struct padded_batch_definition {
  static constexpr std::string_view name = "MP";
  static constexpr auto formula = pad<16>(M);
};
inline constexpr stowage::derived<padded_batch_definition> padded_batch{};
static_assert(evaluate(qkv, p) == (6 + 2 * 200) * 40);
static_assert(evaluate(qkv + 1, p) == (6 + 2 * 200) * 40 + 1);
static_assert(evaluate(padded_batch * 2, p) == 64);
static_assert(text(padded_batch * qkv).view() == "MP*qkv"sv);

// What depends on tokens, and what grows with them.
static_assert(decltype(M)::uses_tokens && decltype(M)::grows_with_tokens);
static_assert(decltype(bucket)::uses_tokens);
static_assert(!decltype(streams)::uses_tokens);
static_assert(!decltype(hidden)::uses_tokens);
static_assert(decltype(2 * M + hidden)::grows_with_tokens);
static_assert(decltype(pad<16>(M))::grows_with_tokens);
static_assert(decltype(stowage::min(M, 160))::grows_with_tokens);
static_assert(decltype(cdiv(M, 64))::grows_with_tokens);
static_assert(!decltype(M / 2)::grows_with_tokens); // leaves the last tokens without a row; cdiv does not
static_assert(!decltype(M - 3)::grows_with_tokens);
static_assert(!decltype(100 - M)::grows_with_tokens);
static_assert(!decltype(hidden / M)::grows_with_tokens);
static_assert(!decltype(cdiv(hidden, M))::grows_with_tokens);
static_assert(!decltype(choose(M > 8, 2, 1))::grows_with_tokens);
static_assert(decltype(choose(gated, M, 2 * M))::grows_with_tokens);
static_assert(decltype(padded_batch)::uses_tokens && decltype(padded_batch)::grows_with_tokens);
static_assert(!decltype(qkv)::uses_tokens);
static_assert(decltype((hidden - 1) * M)::grows_with_tokens);

// Text, with no more parentheses than the meaning needs.
static_assert(text(M).view() == "M"sv);
static_assert(text(c<64>).view() == "64"sv);
static_assert(text(2 * M).view() == "2*M"sv);
static_assert(text(pad<16>(M) * 2).view() == "ceil16(M)*2"sv);
static_assert(text(cdiv(M, 64) + 1).view() == "cdiv(M, 64) + 1"sv);
static_assert(text(stowage::min(M, 160)).view() == "min(M, 160)"sv);
static_assert(text(stowage::max(M, 3, 4)).view() == "max(max(M, 3), 4)"sv);
static_assert(text((M + 1) * 2).view() == "(M + 1)*2"sv);
static_assert(text(M * 2 + 1).view() == "M*2 + 1"sv);
static_assert(text(1 + M * 2).view() == "1 + M*2"sv);
static_assert(text(M - (M - 1)).view() == "M - (M - 1)"sv);
static_assert(text((M - 1) - M).view() == "M - 1 - M"sv);
static_assert(text(M / (M * 2)).view() == "M/(M*2)"sv);
static_assert(text(M / 2 * 3).view() == "M/2*3"sv);
static_assert(text(stowage::at_most<128>(M) + 1).view() == "M + 1"sv);
#if !defined(__CUDACC__)
static_assert(text(hidden * heads).view() == "hidden*heads"sv);
static_assert(text(width).view() == "width"sv);
static_assert(text(head_count).view() == "head_count"sv);
static_assert(text(choose(gated, 2, 1) * hidden).view() == "(gated ? 2 : 1)*hidden"sv);
#endif

// Structural: a formula can be a template argument, and equal formulas are one type.
template <auto Formula> struct holder {};
static_assert(std::is_same_v<holder<2 * M + hidden>, holder<2 * M + hidden>>);
static_assert(!std::is_same_v<holder<2 * M + hidden>, holder<3 * M + hidden>>);

// What is a formula, and what a dim can read.
static_assert(stowage::formula<decltype(M)>);
static_assert(stowage::formula<decltype(c<3>)>);
static_assert(stowage::formula<decltype(2 * M)>);
static_assert(!stowage::formula<int>);
static_assert(!stowage::formula<decltype(M > 3)>);
static_assert(stowage::condition<decltype(M > 3)>);

struct odd_members {
  float ratio;
  double* pointer;
  std::string_view name;
  int change() { return 0; }
  int of(int) const { return 0; }
};
static_assert(!stowage::dimension_member<&odd_members::ratio>);
static_assert(!stowage::dimension_member<&odd_members::pointer>);
static_assert(!stowage::dimension_member<&odd_members::name>);
static_assert(!stowage::dimension_member<&odd_members::change>);
static_assert(!stowage::dimension_member<&odd_members::of>);

} // namespace

// Params structs in other places than this file's own namespace.
namespace engine::config {
struct model {
  struct limits {
    stowage::tokens most{};
  };
  std::int64_t rows = 0;
};
inline constexpr stowage::dim<&model::rows> rows{};
inline constexpr stowage::dim<&model::limits::most> most{};
static_assert(evaluate(rows * 2, model{.rows = 21}) == 42);
static_assert(stowage::evaluate(most, model::limits{stowage::tokens{3}}) == 3);
#if !defined(__CUDACC__)
static_assert(stowage::text(rows + 1).view() == "rows + 1");
static_assert(stowage::text(most).view() == "most");
#endif
} // namespace engine::config
