#include <stowage/condition.hpp>
#include <stowage/formula.hpp>
#include <stowage/traits/when.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace {

using stowage::holds;
using stowage::text;
using namespace std::string_view_literals;

struct params {
  std::int64_t experts = 0;
  std::int64_t ratio = 0;
  bool mamba = false;
  bool mrope = false;

  constexpr bool dense() const { return experts == 0; }
};

inline constexpr stowage::dim<&params::experts> experts{"experts"};
inline constexpr stowage::dim<&params::ratio> ratio{"ratio"};
inline constexpr stowage::dim<&params::mamba> mamba{"mamba"};
inline constexpr stowage::dim<&params::mrope> mrope{"mrope"};
inline constexpr stowage::dim<&params::dense> dense{"dense"};

inline constexpr params none{};
inline constexpr params some{.experts = 8, .ratio = 4, .mamba = true};

static_assert(!holds(experts > 0, none) && holds(experts > 0, some));
static_assert(holds(experts == 0, none) && !holds(experts == 0, some));
static_assert(holds(experts != 0, some) && holds(experts >= 8, some) && !holds(experts >= 9, some));
static_assert(holds(experts <= 8, some) && !holds(experts <= 7, some));
static_assert(holds(experts < 9, some) && !holds(experts < 8, some));
static_assert(holds(8 == experts, some) && holds(9 > experts, some));
static_assert(holds(experts == ratio * 2, some) && holds(ratio < experts, some));

static_assert(holds(mamba, some) && !holds(mamba, none));
static_assert(holds(!mamba, none) && !holds(!mamba, some));
static_assert(holds(dense, none) && !holds(dense, some));
static_assert(holds(mamba && experts > 0, some) && !holds(mamba && mrope, some));
static_assert(holds(mrope || experts > 0, some) && !holds(mrope || mamba, none));
static_assert(holds(!(mrope && mamba), some));
static_assert(holds(!!mamba, some));

// What the left side decides leaves the right one alone: it would divide by zero.
static_assert(!holds(ratio > 0 && experts / ratio > 1, none));
static_assert(holds(ratio == 0 || experts / ratio > 1, none));
static_assert(holds(ratio > 0 && experts / ratio > 1, some));

static_assert(text(experts > 0).view() == "experts > 0"sv);
static_assert(text(experts >= ratio).view() == "experts >= ratio"sv);
static_assert(text(experts != 1).view() == "experts != 1"sv);
static_assert(text(experts == 1).view() == "experts == 1"sv);
static_assert(text(experts <= 1).view() == "experts <= 1"sv);
static_assert(text(experts < 1).view() == "experts < 1"sv);
static_assert(text(experts > 0 && ratio > 0).view() == "experts > 0 && ratio > 0"sv);
static_assert(text(mamba && (mrope || experts > 0)).view() == "mamba && (mrope || experts > 0)"sv);
static_assert(text((mamba && mrope) || experts > 0).view() == "mamba && mrope || experts > 0"sv);
static_assert(text(!mamba).view() == "!mamba"sv);
static_assert(text(!(experts > 0)).view() == "!(experts > 0)"sv);
static_assert(text(experts + 1 > ratio * 2).view() == "experts + 1 > ratio*2"sv);

// As a trait: a pointer to a bool member, a flag or an expression.
static_assert(holds(stowage::when<&params::mamba>::presence_condition, some));
static_assert(holds(stowage::when<&params::dense>::presence_condition, none));
static_assert(holds(stowage::when<mamba>::presence_condition, some));
static_assert(holds(stowage::when<(experts > 0)>::presence_condition, some));
static_assert(std::is_same_v<stowage::when<(experts > 0)>, stowage::when<(experts > 0)>>);

} // namespace
