#include <stowage/condition.hpp>
#include <stowage/shape.hpp>

#include <cstddef>

namespace {

using stowage::pad;
using stowage::shape;

struct params {
  stowage::tokens batch{};
  std::size_t hidden = 0;
};

inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};

static_assert(shape<>::rank == 0);
static_assert(shape<M>::rank == 1);
static_assert(shape<M, hidden>::rank == 2);
static_assert(shape<M, 2, hidden, 4, 5, 6, 7, 8>::rank == 8);

// Token-major: the leading extent grows with the tokens and no other knows them.
static_assert(shape<M>::token_major);
static_assert(shape<M, hidden>::token_major);
static_assert(shape<pad<16>(M), hidden>::token_major);
static_assert(shape<stowage::cdiv(M, 64), 64, hidden>::token_major);
static_assert(shape<hidden * M, 3>::token_major);
static_assert(shape<stowage::min(M, 160), hidden>::token_major);
static_assert(!shape<>::token_major);
static_assert(!shape<hidden>::token_major);
static_assert(!shape<16, hidden>::token_major);
static_assert(!shape<hidden, M>::token_major);
static_assert(!shape<M, M>::token_major);
static_assert(!shape<M, 2, pad<16>(M)>::token_major);
static_assert(!shape<M - 3, hidden>::token_major);
static_assert(!shape<hidden / M, 4>::token_major);

static_assert(!shape<>::uses_tokens);
static_assert(!shape<hidden, 3>::uses_tokens);
static_assert(shape<hidden, M>::uses_tokens);
static_assert(shape<M - 3>::uses_tokens);

} // namespace
