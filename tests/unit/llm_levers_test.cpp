#include <stowage/llm/levers.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace {

using stowage::llm::levers;
using stowage::llm::levers_from_environment;
using stowage::llm::parse_splitk;
using stowage::llm::read_levers;
using stowage::llm::splitk_kind;
using stowage::llm::splitk_policy;

constexpr splitk_policy legacy{splitk_kind::legacy, 0};
constexpr splitk_policy automatic{splitk_kind::automatic, 0};
constexpr splitk_policy pinned(std::size_t splits) { return {splitk_kind::pinned, splits}; }
constexpr std::size_t largest = std::numeric_limits<std::size_t>::max();

// Words, trimmed, in any case. The declared policy is another one, so that keeping it would show.
static_assert(parse_splitk("legacy", automatic) == legacy);
static_assert(parse_splitk(" Legacy\t", automatic) == legacy);
static_assert(parse_splitk("LEGACY", pinned(3)) == legacy);
static_assert(parse_splitk("auto", legacy) == automatic);
static_assert(parse_splitk("\r\n\v\fAuTo \t", legacy) == automatic);

// One split, four spellings.
static_assert(parse_splitk("0", legacy) == pinned(1));
static_assert(parse_splitk("off", legacy) == pinned(1));
static_assert(parse_splitk("false", legacy) == pinned(1));
static_assert(parse_splitk("no", legacy) == pinned(1));
static_assert(parse_splitk(" OFF ", automatic) == pinned(1));
static_assert(parse_splitk(" False ", automatic) == pinned(1));
static_assert(parse_splitk("NO", pinned(8)) == pinned(1));

// Counts stay as spelled: clamping is the formula's business.
static_assert(parse_splitk("1", legacy) == pinned(1));
static_assert(parse_splitk("7", legacy) == pinned(7));
static_assert(parse_splitk(" 16\n", legacy) == pinned(16));
static_assert(parse_splitk("17", legacy) == pinned(17));
static_assert(parse_splitk("007", legacy) == pinned(7));
static_assert(parse_splitk("00", legacy) == pinned(0));
static_assert(parse_splitk("4294967296", legacy) == pinned(4294967296));
static_assert(parse_splitk("18446744073709551614", legacy) == pinned(18446744073709551614u));
static_assert(parse_splitk("18446744073709551615", legacy) == pinned(largest));
static_assert(parse_splitk("18446744073709551616", legacy) == pinned(largest));
static_assert(parse_splitk("18446744073709551620", legacy) == pinned(largest));
static_assert(parse_splitk("99999999999999999999999999999999", legacy) == pinned(largest));
static_assert(parse_splitk("100000000000000000000000000000000", legacy) == pinned(largest));

// Anything else keeps what was declared.
static_assert(parse_splitk("", automatic) == automatic);
static_assert(parse_splitk("   ", pinned(5)) == pinned(5));
static_assert(parse_splitk("yes", automatic) == automatic);
static_assert(parse_splitk("on", automatic) == automatic);
static_assert(parse_splitk("true", automatic) == automatic);
static_assert(parse_splitk("automatic", legacy) == legacy);
static_assert(parse_splitk("pinned", legacy) == legacy);
static_assert(parse_splitk("-3", automatic) == automatic);
static_assert(parse_splitk("+3", automatic) == automatic);
static_assert(parse_splitk("4x", automatic) == automatic);
static_assert(parse_splitk("x4", automatic) == automatic);
static_assert(parse_splitk("4 4", automatic) == automatic);
static_assert(parse_splitk("4.0", automatic) == automatic);
static_assert(parse_splitk("0x10", automatic) == automatic);
static_assert(parse_splitk("99999999999999999999999999999999x", automatic) == automatic);
static_assert(parse_splitk(std::string_view{"4\0", 2}, automatic) == automatic);
static_assert(parse_splitk("l\xC3\xA9gacy", automatic) == automatic);

static_assert(std::is_aggregate_v<levers> && std::is_aggregate_v<splitk_policy>);
static_assert(levers{} == levers{false, false, false, {splitk_kind::legacy, 0}});

constexpr const char* nothing_set(const char*) { return nullptr; }
constexpr const char* everything_one(const char*) { return "1"; }

// One variable with one text; the others are not set.
struct only {
  std::string_view variable;
  const char* text;
  constexpr const char* operator()(const char* name) const { return variable == name ? text : nullptr; }
};

constexpr levers all_on{true, true, true, {splitk_kind::pinned, 4}};

static_assert(read_levers(nothing_set) == levers{});
static_assert(read_levers(nothing_set, all_on) == all_on);
static_assert(read_levers(everything_one) == levers{true, true, true, {splitk_kind::pinned, 1}});

// Each name reaches its own lever and no other.
static_assert(read_levers(only{"METRALE_GGUF_NATIVE_Q2", "1"}) == levers{true, false, false, {}});
static_assert(read_levers(only{"METRALE_GGUF_NATIVE_Q2_MMQ", "1"}) == levers{false, true, false, {}});
static_assert(read_levers(only{"METRALE_FP8_ROWWISE", "1"}) == levers{false, false, true, {}});
static_assert(read_levers(only{"METRALE_ATTN_DECODE_SPLITK", "auto"}) ==
              levers{false, false, false, automatic});
static_assert(read_levers(only{"METRALE_ATTN_DECODE_SPLITK", "nonsense"}, all_on) == all_on);
static_assert(read_levers(only{"METRALE_ATTN_DECODE_SPLITK", ""}, all_on) == all_on);
static_assert(read_levers(only{"metrale_fp8_rowwise", "1"}) == levers{});

TEST_CASE("a switch is on only when its text is exactly 1") {
  for (const char* const text : {"", "0", "2", "01", "11", " 1", "1 ", "1\n", "true", "on", "yes", "one"}) {
    CAPTURE(text);
    CHECK_FALSE(read_levers(only{"METRALE_GGUF_NATIVE_Q2", text}).gguf_native_q2);
    CHECK_FALSE(read_levers(only{"METRALE_GGUF_NATIVE_Q2_MMQ", text}).gguf_native_q2_mmq);
    CHECK_FALSE(read_levers(only{"METRALE_FP8_ROWWISE", text}).fp8_rowwise);
    // What is set decides against what was declared.
    CHECK_FALSE(read_levers(only{"METRALE_FP8_ROWWISE", text}, all_on).fp8_rowwise);
  }
}

TEST_CASE("the lookup may be any callable and is asked for each name once") {
  std::string asked;
  const auto lookup = [&asked](const char* name) -> const char* {
    asked.append(name).append(1, ' ');
    return nullptr;
  };
  CHECK(read_levers(lookup) == levers{});
  CHECK(asked == "METRALE_GGUF_NATIVE_Q2 METRALE_GGUF_NATIVE_Q2_MMQ METRALE_FP8_ROWWISE "
                 "METRALE_ATTN_DECODE_SPLITK ");
}

// Sets a variable and puts back what was there.
class variable {
public:
  variable(const char* name, const char* text) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    set(text);
  }
  ~variable() { set(before_ ? before_->c_str() : nullptr); }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;

private:
  void set(const char* text) const { text != nullptr ? ::setenv(name_, text, 1) : ::unsetenv(name_); }

  const char* name_;
  std::optional<std::string> before_;
};

TEST_CASE("the environment is read on each call, over what is declared") {
  {
    const variable q2("METRALE_GGUF_NATIVE_Q2", "1");
    const variable q2_mmq("METRALE_GGUF_NATIVE_Q2_MMQ", "yes");
    const variable rowwise("METRALE_FP8_ROWWISE", nullptr);
    const variable splitk("METRALE_ATTN_DECODE_SPLITK", " 12 ");
    CHECK(levers_from_environment() == levers{true, false, false, pinned(12)});
    CHECK(levers_from_environment(all_on) == levers{true, false, true, pinned(12)});
  }
  const variable q2("METRALE_GGUF_NATIVE_Q2", nullptr);
  const variable q2_mmq("METRALE_GGUF_NATIVE_Q2_MMQ", nullptr);
  const variable rowwise("METRALE_FP8_ROWWISE", nullptr);
  const variable splitk("METRALE_ATTN_DECODE_SPLITK", nullptr);
  CHECK(levers_from_environment() == levers{});
  CHECK(levers_from_environment(all_on) == all_on);
}

} // namespace
