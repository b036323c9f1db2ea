// A row policy needs a token-major field: the leading extent grows with the tokens, no other depends on them.
//
// case 1: tokens in an inner extent
// expect-gcc: row_policy_on_a_field_that_is_not_token_major<.*"scales"
// expect-clang: row_policy_on_a_field_that_is_not_token_major<.*value\.scales}
// expect-nvcc: row_policy_on_a_field_that_is_not_token_major<1UL
// case 2: tokens in the leading and an inner extent
// expect-gcc: row_policy_on_a_field_that_is_not_token_major<.*"scales"
// expect-clang: row_policy_on_a_field_that_is_not_token_major<.*value\.scales}
// expect-nvcc: row_policy_on_a_field_that_is_not_token_major<1UL
// case 3: a leading extent that is a difference
// expect-gcc: row_policy_on_a_field_that_is_not_token_major<.*"scales"
// expect-clang: row_policy_on_a_field_that_is_not_token_major<.*value\.scales}
// expect-nvcc: row_policy_on_a_field_that_is_not_token_major<1UL
// case 4: no tokens at all
// expect-gcc: row_policy_on_a_field_that_is_not_token_major<.*"scales"
// expect-clang: row_policy_on_a_field_that_is_not_token_major<.*value\.scales}
// expect-nvcc: row_policy_on_a_field_that_is_not_token_major<1UL
// case 5: a scalar
// expect-gcc: row_policy_on_a_field_that_is_not_token_major<.*"scales"
// expect-clang: row_policy_on_a_field_that_is_not_token_major<.*value\.scales}
// expect-nvcc: row_policy_on_a_field_that_is_not_token_major<1UL
// case 6: one alternative of two
// expect-gcc: row_policy_on_a_field_that_is_not_token_major<.*"scales"
// expect-clang: row_policy_on_a_field_that_is_not_token_major<.*value\.scales}
// expect-nvcc: row_policy_on_a_field_that_is_not_token_major<1UL
// case 7: in a group
// expect-gcc: row_policy_on_a_field_that_is_not_token_major<.*"keys"
// expect-clang: row_policy_on_a_field_that_is_not_token_major<.*value\.keys}
// expect-nvcc: row_policy_on_a_field_that_is_not_token_major<0UL
// case 8: a count of sequences
// expect-gcc: row_policy_on_a_field_that_is_not_token_major<.*"scales"
// expect-clang: row_policy_on_a_field_that_is_not_token_major<.*value\.scales}
// expect-nvcc: row_policy_on_a_field_that_is_not_token_major<1UL

#include <stowage/stowage.hpp>

#include <cstddef>

using namespace stowage;

struct params {
  tokens batch{};
  sequences streams{};
  std::size_t hidden = 0;
};
inline constexpr dim<&params::batch> M{};
inline constexpr dim<&params::streams> streams{};
inline constexpr dim<&params::hidden> hidden{};

struct group {
#if STOWAGE_MUST_NOT_COMPILE == 7
  buffer<bf16, shape<hidden>, zero::rows> keys;
#else
  buffer<bf16, shape<M>, zero::rows> keys;
#endif
};

struct fields {
  buffer<bf16, shape<M, hidden>, zero::rows> states;
#if STOWAGE_MUST_NOT_COMPILE == 1
  buffer<bf16, shape<hidden, M>, zero::rows> scales;
#elif STOWAGE_MUST_NOT_COMPILE == 2
  buffer<bf16, shape<M, pad<16>(M)>, zero::rows> scales;
#elif STOWAGE_MUST_NOT_COMPILE == 3
  buffer<bf16, shape<M - 3, hidden>, zero::rows> scales;
#elif STOWAGE_MUST_NOT_COMPILE == 4
  buffer<bf16, shape<hidden>, zero::rows> scales;
#elif STOWAGE_MUST_NOT_COMPILE == 5
  buffer<bf16, shape<>, zero::rows> scales;
#elif STOWAGE_MUST_NOT_COMPILE == 6
  buffer<alternatives<part<bf16, shape<M>>, part<bf16, shape<hidden, M>>>, zero::rows> scales;
#elif STOWAGE_MUST_NOT_COMPILE == 8
  buffer<bf16, shape<streams, hidden>, zero::rows> scales;
#else
  buffer<bf16, shape<hidden, M>, zero::never> scales;
#endif
  group nested;
};

std::size_t bytes(const params& values) { return make_plan<fields>(values).total_bytes(); }
