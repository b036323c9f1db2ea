// What is asked of a plan and an arena.
//
// case 1: a row pass over sequences
// expect-gcc: no matching function for call to .*zero_rows
// expect-clang: no matching member function for call to 'zero_rows'
// expect-nvcc: no instance of overloaded function .*zero_rows
// case 2: a row pass over a number
// expect-gcc: no matching function for call to .*zero_rows
// expect-clang: no matching member function for call to 'zero_rows'
// expect-nvcc: no instance of overloaded function .*zero_rows
// case 3: a formula that reads another params struct
// expect: stowage: a formula reads another params struct than the one the plan is made for
// case 4: a member pointer of another struct
// expect: stowage: the member pointer is of another struct than the field list or group it is used for
// case 5: a copy of an arena
// expect-gcc: use of deleted function .*stowage::(\w+::)?arena<
// expect-clang: call to deleted constructor of .*arena<
// expect-nvcc: stowage::(\w+::)?arena<.* it is a deleted function
// case 6: rows of a field that is not token-major
// expect-gcc: no matching function for call to .*::rows\(int, int\)
// expect-clang: invalid reference to function 'rows': constraints not satisfied
// expect-nvcc: no instance of function .*tensor_handle<.*::rows
// case 7: a path that ends at a group
// expect: stowage: the member pointer leads to no buffer; give the path into the group as well
// case 8: a member that is not owned
// expect: stowage: the member pointer leads to no buffer; give the path into the group as well

#include <stowage/stowage.hpp>

#include <cstddef>
#include <utility>

using namespace stowage;

struct params {
  tokens batch{};
  std::size_t hidden = 0;
};
struct other_params {
  std::size_t hidden = 0;
};
inline constexpr dim<&params::batch> M{};
#if STOWAGE_MUST_NOT_COMPILE == 3
inline constexpr dim<&other_params::hidden> hidden{};
#else
inline constexpr dim<&params::hidden> hidden{};
#endif

struct group {
  buffer<bf16, shape<M>, zero::rows> keys;
};
struct fields {
  buffer<bf16, shape<M, hidden>, zero::rows> states;
  buffer<bf16, shape<hidden, M>, zero::never> turned;
  group nested;
  not_owned<int> layers;
};
struct other_fields {
  buffer<bf16, shape<M, hidden>, zero::rows> states;
};

std::size_t use(const params& values) {
  const auto plan = make_plan<fields>(values);
  arena memory(plan, host_backend{});
#if STOWAGE_MUST_NOT_COMPILE == 1
  memory.zero_rows({}, sequences{3});
#elif STOWAGE_MUST_NOT_COMPILE == 2
  memory.zero_rows({}, 3);
#elif STOWAGE_MUST_NOT_COMPILE == 4
  return plan.bytes<&other_fields::states>();
#elif STOWAGE_MUST_NOT_COMPILE == 5
  const auto copy = memory;
#elif STOWAGE_MUST_NOT_COMPILE == 6
  return memory->turned.rows(0, 1).size();
#elif STOWAGE_MUST_NOT_COMPILE == 7
  return plan.bytes<&fields::nested>();
#elif STOWAGE_MUST_NOT_COMPILE == 8
  return plan.bytes<&fields::layers>();
#else
  memory.zero_rows({}, tokens{3});
  const auto moved = std::move(memory);
#endif
  return plan.bytes<&fields::nested, &group::keys>();
}
