// What a field list consists of.
//
// case 1: an int
// expect-gcc: member_is_neither_a_buffer_nor_a_group_nor_not_owned<.*"counter"}, int
// expect-clang: member_is_neither_a_buffer_nor_a_group_nor_not_owned<.*value\.counter}, int
// expect-nvcc: member_is_neither_a_buffer_nor_a_group_nor_not_owned<1UL, int
// case 2: a std::vector
// expect-gcc: member_is_neither_a_buffer_nor_a_group_nor_not_owned<.*"counter"}, std::vector<float
// expect-clang: member_is_neither_a_buffer_nor_a_group_nor_not_owned<.*value\.counter}, std::vector<float
// expect-nvcc: member_is_neither_a_buffer_nor_a_group_nor_not_owned<1UL, std::vector<float
// case 3: a C array of buffers, the last member
// expect-gcc: member_is_an_array_which_is_no_field<.*"counter"
// expect-clang: member_is_an_array_which_is_no_field<.*value\.counter
// expect-nvcc: core17_generated.*too many identifiers
// case 4: a C array of buffers between others
// expect-gcc: member_is_an_array_which_is_no_field<.*"counter"
// expect-clang: member_is_an_array_which_is_no_field<.*value\.counter
// expect-nvcc: core17_generated.*too many identifiers
// case 5: a base class
// expect: field_list_has_a_base_class<with_base>
// case 6: 101 members
// expect: field_list_has_more_than_100_members<fields>
// case 7: a private member
// expect: field_list_is_not_an_aggregate<fields>
// case 8: a constructor
// expect: field_list_is_not_an_aggregate<fields>
// case 9: no members
// expect: field_list_is_empty<nothing>
// case 10: no buffer, only what is not owned
// expect: stowage: a field list needs at least one buffer
// case 11: an int in a group
// expect-gcc: member_is_neither_a_buffer_nor_a_group_nor_not_owned<.*"number"}, int
// expect-clang: member_is_neither_a_buffer_nor_a_group_nor_not_owned<.*value\.number}, int
// expect-nvcc: member_is_neither_a_buffer_nor_a_group_nor_not_owned<0UL, int
// case 12: an empty struct as a member
// expect-gcc: member_is_neither_a_buffer_nor_a_group_nor_not_owned<.*"counter"}, nothing
// expect-clang: member_is_neither_a_buffer_nor_a_group_nor_not_owned<.*value\.counter}, nothing
// expect-nvcc: member_is_neither_a_buffer_nor_a_group_nor_not_owned<1UL, nothing
// case 13: a part
// expect-gcc: member_is_neither_a_buffer_nor_a_group_nor_not_owned<.*"counter"}, stowage::(\w+::)?part<
// expect-clang: member_is_neither_a_buffer_nor_a_group_nor_not_owned<.*value\.counter}, stowage::(\w+::)?part<
// expect-nvcc: member_is_neither_a_buffer_nor_a_group_nor_not_owned<1UL, stowage::(\w+::)?part<
// case 14: a raw pointer
// expect-gcc: member_is_neither_a_buffer_nor_a_group_nor_not_owned<.*"counter"}, float ?\*
// expect-clang: member_is_neither_a_buffer_nor_a_group_nor_not_owned<.*value\.counter}, float ?\*
// expect-nvcc: member_is_neither_a_buffer_nor_a_group_nor_not_owned<1UL, float ?\*

#include <stowage/stowage.hpp>

#include <cstddef>
#include <vector>

using namespace stowage;

struct params {
  tokens batch{};
};
inline constexpr dim<&params::batch> M{};
using row = buffer<bf16, shape<M>, zero::rows>;

struct base {
  row first;
};
struct nothing {};
struct nothing_owned {
  not_owned<int> other;
};
struct group {
#if STOWAGE_MUST_NOT_COMPILE == 11
  int number;
#endif
  row inner;
};

struct with_base : base {
  row states;
};

struct fields {
  row states;
#if STOWAGE_MUST_NOT_COMPILE == 1
  int counter;
#elif STOWAGE_MUST_NOT_COMPILE == 2
  std::vector<float> counter;
#elif STOWAGE_MUST_NOT_COMPILE == 4
  row counter[3];
#elif STOWAGE_MUST_NOT_COMPILE == 12
  nothing counter;
#elif STOWAGE_MUST_NOT_COMPILE == 13
  part<bf16, shape<M>> counter;
#elif STOWAGE_MUST_NOT_COMPILE == 14
  float* counter;
#endif
  not_owned<std::vector<float>> other;
  group nested;
#if STOWAGE_MUST_NOT_COMPILE == 7
private:
  row hidden;
#elif STOWAGE_MUST_NOT_COMPILE == 8
  fields() {}
#elif STOWAGE_MUST_NOT_COMPILE == 3
  row counter[3];
#elif STOWAGE_MUST_NOT_COMPILE == 6
  row a00, a01, a02, a03, a04, a05, a06, a07, a08, a09, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19;
  row a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39;
  row a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, a59;
  row a60, a61, a62, a63, a64, a65, a66, a67, a68, a69, a70, a71, a72, a73, a74, a75, a76, a77, a78, a79;
  row a80, a81, a82, a83, a84, a85, a86, a87, a88, a89, a90, a91, a92, a93, a94, a95, a96, a97;
#endif
};

std::size_t bytes(const params& values) {
#if STOWAGE_MUST_NOT_COMPILE == 5
  return make_plan<with_base>(values).total_bytes();
#elif STOWAGE_MUST_NOT_COMPILE == 9
  return make_plan<nothing>(values).total_bytes();
#elif STOWAGE_MUST_NOT_COMPILE == 10
  return make_plan<nothing_owned>(values).total_bytes();
#else
  return make_plan<fields>(values).total_bytes();
#endif
}
