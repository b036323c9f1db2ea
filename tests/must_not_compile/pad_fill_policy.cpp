// pad_fill where a pass would undo it, or where there is no such number.
//
// case 1: on a field that row passes clear
// expect: stowage: pad_fill needs zero::never, since a zero pass would undo it
// case 2: on a field that is cleared whole
// expect: stowage: pad_fill needs zero::never, since a zero pass would undo it
// case 3: on regions
// expect: stowage: pad_fill is for tensors
// case 4: a value that the format does not have
// expect-gcc: the_element_type_has_no_such_number
// expect-clang: must be initialized by a constant expression
// expect-nvcc: expression must have a constant value
// case 5: a fraction in integers
// expect-gcc: the_element_type_has_no_such_number
// expect-clang: must be initialized by a constant expression
// expect-nvcc: expression must have a constant value
// case 8: a third in f32
// expect-gcc: the_element_type_has_no_such_number
// expect-clang: must be initialized by a constant expression
// expect-nvcc: expression must have a constant value
// case 9: a negative number in unsigned integers
// expect-gcc: the_element_type_has_no_such_number
// expect-clang: must be initialized by a constant expression
// expect-nvcc: expression must have a constant value
// case 6: an element of the engine's own
// expect: stowage: pad_fill knows integers, floats, bf16, f16 and fp8; fill other elements yourself
// case 7: by zero
// expect-gcc: template constraint failure.*Denominator != 0.*pad_fill
// expect-clang: constraints not satisfied for class template 'pad_fill'
// expect-nvcc: template constraint not satisfied

#include <stowage/stowage.hpp>
#include <stowage/traits/pad_fill.hpp>

#include <cstdint>

using namespace stowage;

struct params {
  tokens batch{};
};
inline constexpr dim<&params::batch> M{};

struct scales {
  part<float, shape<M>> first;
};
struct two_floats {
  float one, other;
};

#if STOWAGE_MUST_NOT_COMPILE == 1
using policy = zero::rows;
#elif STOWAGE_MUST_NOT_COMPILE == 2
using policy = zero::full;
#else
using policy = zero::never;
#endif

struct fields {
#if STOWAGE_MUST_NOT_COMPILE == 3
  buffer<regions<scales>, policy, pad_fill<1>> field;
#elif STOWAGE_MUST_NOT_COMPILE == 4
  buffer<fp8_e4m3, shape<M>, policy, pad_fill<17>> field; // 16 and 18 are numbers of the format
#elif STOWAGE_MUST_NOT_COMPILE == 5
  buffer<std::int32_t, shape<M>, policy, pad_fill<1, 2>> field;
#elif STOWAGE_MUST_NOT_COMPILE == 8
  buffer<float, shape<M>, policy, pad_fill<1, 3>> field;
#elif STOWAGE_MUST_NOT_COMPILE == 9
  buffer<std::uint64_t, shape<M>, policy, pad_fill<-1>> field;
#elif STOWAGE_MUST_NOT_COMPILE == 6
  buffer<two_floats, shape<M>, policy, pad_fill<1>> field;
#elif STOWAGE_MUST_NOT_COMPILE == 7
  buffer<float, shape<M>, policy, pad_fill<1, 0>> field;
#else
  buffer<float, shape<M>, policy, pad_fill<1>> field;
#endif
};

std::size_t bytes_of(const params& values) { return make_plan<fields>(values).total_bytes(); }
