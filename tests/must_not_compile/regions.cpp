// Parts and alternatives.
//
// case 1: a member that is no part
// expect-gcc: member_is_not_a_part<.*"number"
// expect-clang: member_is_not_a_part<.*value\.number}
// expect-nvcc: member_is_not_a_part<1UL
// case 2: a buffer among the parts
// expect-gcc: member_is_not_a_part<.*"values"
// expect-clang: member_is_not_a_part<.*value\.values}
// expect-nvcc: member_is_not_a_part<1UL
// case 3: a parts struct with a base class
// expect: stowage: a parts struct cannot have a base class
// case 4: a C array of parts
// expect-gcc: stowage: a C array cannot be a part
// expect-clang: stowage: a C array cannot be a part
// expect-nvcc: core17_generated.*too many identifiers
// case 5: an empty parts struct
// expect: stowage: a parts struct needs at least one part
// case 6: as<> of a type that is no alternative
// expect: stowage: as<T>\(\) names no alternative of this field, or one that is listed twice
// case 7: as<> of a type that is two alternatives
// expect: stowage: as<T>\(\) names no alternative of this field, or one that is listed twice

#include <stowage/stowage.hpp>

#include <cstddef>

using namespace stowage;

struct params {
  tokens batch{};
};
inline constexpr dim<&params::batch> M{};

struct base {
  part<bf16, shape<M>> first;
};
struct nothing {};
struct with_base : base {
  part<bf16, shape<M>> keys;
};

struct parts {
  part<bf16, shape<M>> keys;
#if STOWAGE_MUST_NOT_COMPILE == 1
  int number;
#elif STOWAGE_MUST_NOT_COMPILE == 2
  buffer<bf16, shape<M>, zero::rows> values;
#elif STOWAGE_MUST_NOT_COMPILE == 4
  part<bf16, shape<M>> values[2];
#endif
};

using halves = part<bf16, shape<M>>;
using floats = part<float, shape<M>>;
#if STOWAGE_MUST_NOT_COMPILE == 7
using kinds = alternatives<halves, floats, halves>;
#else
using kinds = alternatives<halves, floats>;
#endif

struct fields {
#if STOWAGE_MUST_NOT_COMPILE == 3
  buffer<regions<with_base>, zero::full> carved;
#elif STOWAGE_MUST_NOT_COMPILE == 5
  buffer<regions<nothing>, zero::full> carved;
#else
  buffer<regions<parts>, zero::full> carved;
#endif
  buffer<kinds, zero::rows> either;
};

const void* use(const params& values) {
  const arena memory(make_plan<fields>(values), host_backend{});
#if STOWAGE_MUST_NOT_COMPILE == 6
  return memory->either.as<part<double, shape<M>>>().data();
#else
  return memory->either.as<halves>().data();
#endif
}
