// What a buffer or part is declared with.
//
// case 1: no zero policy
// expect: stowage: a buffer has exactly one zero policy: zero::rows, zero::full or zero::never
// case 2: two zero policies
// expect: stowage: a buffer has exactly one zero policy: zero::rows, zero::full or zero::never
// case 3: a trait that is none
// expect: stowage: only traits follow the shape: zero::rows, when<...>
// case 4: a part with a zero policy
// expect: stowage: a part has no zero policy; the field that it is in has one
// case 5: align<3>
// expect-gcc: template constraint failure for .*is_power_of_two.*\(Bytes\) struct stowage::(\w+::)?align
// expect-clang: constraints not satisfied for class template 'align'
// expect-nvcc: template constraint not satisfied
// case 6: an alignment below that of the element
// expect: stowage: align<N> is smaller than the alignment of the element type; use a larger N
// case 7: a dim over a float
// expect-gcc: template constraint failure for .*dimension_member<Member> struct stowage::(\w+::)?dim
// expect-clang: constraints not satisfied for class template 'dim'
// expect-nvcc: template constraint not satisfied
// case 8: when<> over a number
// expect-gcc: template constraint failure for .*condition_operand.* struct stowage::(\w+::)?when
// expect-clang: constraints not satisfied for class template 'when'
// expect-nvcc: template constraint not satisfied
// case 9: when<> over a pointer to a member that is no bool
// expect-gcc: template constraint failure for .*member_pointer_to_flag.* struct stowage::(\w+::)?when
// expect-clang: constraints not satisfied for class template 'when'
// expect-nvcc: template constraint not satisfied
// case 10: an element that is not trivially copyable
// expect: stowage: a buffer or part begins with an element type and a shape<...>, or with regions<...> or alternatives<...>
// case 11: shape before element
// expect: stowage: a buffer or part begins with an element type and a shape<...>, or with regions<...> or alternatives<...>
// case 12: more than eight extents
// expect: stowage: a shape has at most 8 extents
// case 13: a floating-point extent
// expect-gcc: template constraint failure for .*struct stowage::(\w+::)?shape
// expect-clang: constraints not satisfied for class template 'shape'|template argument of type 'double' is not yet supported
// expect-nvcc: template constraint not satisfied
// case 14: a negative extent
// expect-gcc: a_negative_number_stands_in_a_formula
// expect-clang: program_of_shape<.*-1>.* must be initialized by a constant expression
// expect-nvcc: expression must have a constant value

#include <stowage/stowage.hpp>

#include <cstddef>
#include <string>

using namespace stowage;

struct params {
  tokens batch{};
  std::size_t hidden = 0;
  float ratio = 0;
  bool mamba = false;
};
inline constexpr dim<&params::batch> M{};
inline constexpr dim<&params::hidden> hidden{};

struct fields {
#if STOWAGE_MUST_NOT_COMPILE == 1
  buffer<bf16, shape<M, hidden>> member;
#elif STOWAGE_MUST_NOT_COMPILE == 2
  buffer<bf16, shape<M, hidden>, zero::rows, zero::never> member;
#elif STOWAGE_MUST_NOT_COMPILE == 3
  buffer<bf16, shape<M, hidden>, zero::rows, std::string> member;
#elif STOWAGE_MUST_NOT_COMPILE == 5
  buffer<bf16, shape<M, hidden>, zero::rows, align<3>> member;
#elif STOWAGE_MUST_NOT_COMPILE == 6
  buffer<double, shape<M, hidden>, zero::rows, align<4>> member;
#elif STOWAGE_MUST_NOT_COMPILE == 8
  buffer<bf16, shape<M, hidden>, zero::rows, when<hidden>> member;
#elif STOWAGE_MUST_NOT_COMPILE == 9
  buffer<bf16, shape<M, hidden>, zero::rows, when<&params::hidden>> member;
#elif STOWAGE_MUST_NOT_COMPILE == 10
  buffer<std::string, shape<M, hidden>, zero::rows> member;
#elif STOWAGE_MUST_NOT_COMPILE == 11
  buffer<shape<M, hidden>, bf16, zero::rows> member;
#elif STOWAGE_MUST_NOT_COMPILE == 12
  buffer<bf16, shape<M, 1, 2, 3, 4, 5, 6, 7, 8>, zero::rows> member;
#elif STOWAGE_MUST_NOT_COMPILE == 13
  buffer<bf16, shape<M, 1.5>, zero::rows> member;
#elif STOWAGE_MUST_NOT_COMPILE == 14
  buffer<bf16, shape<M, -1>, zero::rows> member;
#else
  buffer<bf16, shape<M, hidden>, zero::rows, align<16>, when<&params::mamba>, when<(hidden > 0)>> member;
#endif
};

#if STOWAGE_MUST_NOT_COMPILE == 4
using keys = part<bf16, shape<M>, zero::never>;
#else
using keys = part<bf16, shape<M>>;
#endif
inline constexpr keys value{};

#if STOWAGE_MUST_NOT_COMPILE == 7
inline constexpr dim<&params::ratio> ratio{};
#endif

inline constexpr auto plan = make_plan<fields>(params{});
