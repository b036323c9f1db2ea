// A constexpr plan whose sizes have no value. clang names the field in a note below the first line.
//
// case 1: a product that does not fit
// expect-gcc: size_of_field_has_no_value.*"states"
// expect-clang: constexpr variable 'plan' must be initialized by a constant expression
// expect-nvcc: expression must have a constant value
// case 2: a negative member
// expect-gcc: size_of_field_has_no_value.*"gates"
// expect-clang: constexpr variable 'plan' must be initialized by a constant expression
// expect-nvcc: expression must have a constant value
// case 3: a difference below zero
// expect-gcc: size_of_field_has_no_value.*"rest"
// expect-clang: constexpr variable 'plan' must be initialized by a constant expression
// expect-nvcc: expression must have a constant value
// case 4: the sum of all fields does not fit
// expect-gcc: slab_size_has_no_value
// expect-clang: constexpr variable 'plan' must be initialized by a constant expression
// expect-nvcc: expression must have a constant value
// case 5: a field in a group
// expect-gcc: size_of_field_has_no_value.*"keys"
// expect-clang: constexpr variable 'plan' must be initialized by a constant expression
// expect-nvcc: expression must have a constant value
// case 6: a count made from a negative number
// expect-gcc: a_count_was_made_from_a_negative_number
// expect-clang: constexpr variable 'plan' must be initialized by a constant expression
// expect-nvcc: expression must have a constant value
// case 7: a formula evaluated by itself
// expect-gcc: formula_has_no_value
// expect-clang: constexpr variable 'value' must be initialized by a constant expression
// expect-nvcc: expression must have a constant value

#include <stowage/stowage.hpp>

#include <cstddef>
#include <cstdint>

using namespace stowage;

struct params {
  tokens batch{};
  std::size_t hidden = 0;
  std::int64_t heads = 0;
};
inline constexpr dim<&params::batch> M{};
inline constexpr dim<&params::hidden> hidden{};
inline constexpr dim<&params::heads> heads{};

struct group {
  buffer<bf16, shape<heads + 1, hidden>, zero::never> keys;
};
struct fields {
  buffer<bf16, shape<M, hidden>, zero::rows> states;
  buffer<bf16, shape<M, heads>, zero::rows> gates;
  buffer<bf16, shape<hidden - 2>, zero::never> rest;
  group nested;
};

#if STOWAGE_MUST_NOT_COMPILE == 1
inline constexpr auto plan = make_plan<fields>(params{tokens{4}, std::size_t{1} << 62, 1});
#elif STOWAGE_MUST_NOT_COMPILE == 2
inline constexpr auto plan = make_plan<fields>(params{tokens{4}, 8, -1});
#elif STOWAGE_MUST_NOT_COMPILE == 3
inline constexpr auto plan = make_plan<fields>(params{tokens{4}, 1, 1});
#elif STOWAGE_MUST_NOT_COMPILE == 4
inline constexpr auto plan = make_plan<fields>(params{tokens{4}, std::size_t{1} << 60, 3});
#elif STOWAGE_MUST_NOT_COMPILE == 5
inline constexpr auto plan = make_plan<fields>(params{tokens{0}, std::size_t{1} << 61, 7});
#elif STOWAGE_MUST_NOT_COMPILE == 6
inline constexpr auto plan = make_plan<fields>(params{tokens{-1}, 8, 1});
#elif STOWAGE_MUST_NOT_COMPILE == 7
inline constexpr auto value = evaluate(hidden * 8, params{tokens{4}, std::size_t{1} << 62, 1});
#else
inline constexpr auto plan = make_plan<fields>(params{tokens{4}, 8, 1});
#endif
