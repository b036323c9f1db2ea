#include <stowage/plan.hpp>
#include <stowage/traits/align.hpp>
#include <stowage/traits/at_least.hpp>
#include <stowage/traits/placeholder.hpp>
#include <stowage/traits/tag.hpp>
#include <stowage/traits/when.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace {

using stowage::bf16;
using stowage::buffer;
using stowage::field_state;
using stowage::shape;
using stowage::tokens;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  std::size_t hidden = 0;
  bool mamba = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};

struct attention {
  buffer<bf16, shape<M, 8>, zero::rows> keys;
  stowage::not_owned<int> heads;
  buffer<bf16, shape<M, 8>, zero::full> values;
};

struct fields {
  buffer<bf16, shape<M, hidden>, zero::full> logits;
  buffer<bf16, shape<M, hidden>, zero::rows> states;
  stowage::not_owned<std::vector<int>> layers;
  buffer<bf16, shape<stowage::pad<16>(M), 3 * hidden>, zero::rows> padded;
  buffer<float, shape<stowage::cdiv(M, 64), hidden>, zero::never, stowage::when<&params::mamba>> scratch;
  buffer<std::uint8_t, shape<hidden>, zero::never, stowage::align<16>> flags;
  buffer<std::uint64_t, shape<1>, zero::never, stowage::align<4096>> counter;
  attention heads;
  buffer<float, shape<M>, zero::never, stowage::when<&params::mamba>, stowage::placeholder<256>> held;
  buffer<std::uint32_t, shape<M>, zero::rows, stowage::at_least<256>> floored;
  buffer<bf16, shape<0, hidden>, zero::never> nothing;
};

inline constexpr auto plan = stowage::make_plan<fields>(params{tokens{17}, 40, false});
using plan_type = stowage::plan<fields, params>;

static_assert(plan_type::field_count == 11);
static_assert(plan.params().hidden == 40);

static_assert(plan.bytes<&fields::logits>() == 17 * 40 * 2);
static_assert(plan.bytes<&fields::states>() == 17 * 40 * 2);
static_assert(plan.bytes<&fields::padded>() == 32 * 120 * 2);
static_assert(plan.bytes<&fields::scratch>() == 0);
static_assert(plan.bytes<&fields::flags>() == 40);
static_assert(plan.bytes<&fields::counter>() == 8);
static_assert(plan.bytes<&fields::heads, &attention::keys>() == 17 * 8 * 2);
static_assert(plan.bytes<&fields::heads, &attention::values>() == 17 * 8 * 2);
static_assert(plan.bytes<&fields::held>() == 256);
static_assert(plan.bytes<&fields::floored>() == 256); // 17 * 4 = 68
static_assert(plan.bytes<&fields::nothing>() == 0);

// Rows, then full, then never, each in declaration order.
static_assert(plan.offset<&fields::states>() == 0);                           // to 1360
static_assert(plan.offset<&fields::padded>() == 6 * 256);                     // to 1536 + 7680 = 9216
static_assert(plan.offset<&fields::heads, &attention::keys>() == 36 * 256);   // to 9216 + 272 = 9488
static_assert(plan.offset<&fields::floored>() == 38 * 256);                   // to 9728 + 256 = 9984
static_assert(plan.offset<&fields::logits>() == 39 * 256);                    // to 9984 + 1360 = 11344
static_assert(plan.offset<&fields::heads, &attention::values>() == 45 * 256); // to 11520 + 272 = 11792
static_assert(plan.offset<&fields::flags>() == 737 * 16);                     // to 11792 + 40 = 11832
static_assert(plan.offset<&fields::counter>() == 3 * 4096);                   // to 12288 + 8 = 12296
static_assert(plan.offset<&fields::held>() == 49 * 256);                      // to 12544 + 256 = 12800
static_assert(plan.slab_bytes() == 12800);
static_assert(plan.slab_alignment() == 4096);
static_assert(plan.zeroed_slab_bytes() == 11792);
static_assert(plan.total_bytes() == 2 * 1360 + 7680 + 40 + 8 + 2 * 272 + 256 + 256);

// What is null takes neither memory nor a place.
static_assert(plan.offset<&fields::scratch>() == 0 && plan.offset<&fields::nothing>() == 0);
static_assert(!plan.present<&fields::scratch>() && !plan.present<&fields::nothing>());
static_assert(plan.present<&fields::held>() && plan.present<&fields::logits>());
static_assert(plan.layout<&fields::scratch>().state == field_state::absent);
static_assert(plan.layout<&fields::nothing>().state == field_state::empty);
static_assert(plan.layout<&fields::held>().state == field_state::placeholder);
static_assert(plan.layout<&fields::logits>().state == field_state::present);
static_assert(plan.layout<&fields::states>().position == 0 && plan.layout<&fields::padded>().position == 1);
static_assert(plan.layout<&fields::logits>().position == 4 && plan.layout<&fields::held>().position == 8);
static_assert(plan.layout<&fields::flags>().alignment == 16 &&
              plan.layout<&fields::counter>().alignment == 4096);
static_assert(plan.layout<&fields::logits>().alignment == 256);
static_assert(!plan.layout<&fields::logits>().overridden);

// By number in declaration order, groups opened, not_owned left out.
static_assert(plan_type::index_of<&fields::logits>() == 0);
static_assert(plan_type::index_of<&fields::padded>() == 2);
static_assert(plan_type::index_of<&fields::heads, &attention::keys>() == 6);
static_assert(plan_type::index_of<&fields::heads, &attention::values>() == 7);
static_assert(plan_type::index_of<&fields::nothing>() == 10);
static_assert(plan.bytes(2) == 7680 && plan.offset(2) == 1536 && plan.present(2));
static_assert(plan.layout(7).bytes == 272 && !plan.present(3));

#if !defined(__CUDACC__)
static_assert(plan_type::name(0) == "logits");
static_assert(plan_type::name(6) == "heads.keys");
static_assert(plan_type::name(10) == "nothing");
static_assert(plan_type::index_of("heads.values") == 7);
static_assert(plan.bytes("padded") == 7680 && plan.offset("padded") == 1536 && plan.present("padded"));
static_assert(plan.layout("held").state == field_state::placeholder);
#endif

// The row pass, field by field and together.
static_assert(plan.zero_bytes<&fields::states>(tokens{1}) == 1 * 40 * 2);
static_assert(plan.zero_bytes<&fields::padded>(tokens{1}) == 16 * 120 * 2);
static_assert(plan.zero_bytes<&fields::padded>(tokens{15}) == 16 * 120 * 2);
static_assert(plan.zero_bytes<&fields::padded>(tokens{16}) == 16 * 120 * 2);
static_assert(plan.zero_bytes<&fields::padded>(tokens{17}) == 32 * 120 * 2);
static_assert(plan.zero_bytes<&fields::floored>(tokens{1}) == 256);
static_assert(plan.zero_bytes<&fields::floored>(tokens{0}) == 0);
static_assert(plan.zero_bytes<&fields::logits>(tokens{0}) == 17 * 40 * 2);
static_assert(plan.zero_bytes<&fields::flags>(tokens{17}) == 0);
static_assert(plan.zero_bytes<&fields::heads, &attention::keys>(tokens{3}) == 3 * 8 * 2);
static_assert(plan.zero_bytes(2, tokens{1}) == 16 * 120 * 2);
static_assert(plan.zero_rows_bytes(tokens{0}) == 1360 + 272);
static_assert(plan.zero_rows_bytes(tokens{1}) == 80 + 3840 + 16 + 256 + 1360 + 272);
static_assert(plan.zero_rows_bytes(tokens{16}) == 1280 + 3840 + 256 + 256 + 1360 + 272);
static_assert(plan.zero_rows_bytes(tokens{17}) == 1360 + 7680 + 272 + 256 + 1360 + 272);
static_assert(plan.zero_rows_bytes(tokens{1000}) == 1360 + 7680 + 272 + 256 + 1360 + 272);
static_assert(plan.zero_all_bytes() == 1360 + 7680 + 272 + 256 + 1360 + 272);

// Other params: everything is there, or nothing.
inline constexpr auto mamba = stowage::make_plan<fields>(params{tokens{17}, 40, true});
static_assert(mamba.bytes<&fields::scratch>() == 1 * 40 * 4);
static_assert(mamba.bytes<&fields::held>() == 17 * 4);
static_assert(mamba.layout<&fields::held>().state == field_state::present);
static_assert(mamba.total_bytes() == plan.total_bytes() + 160 + 68 - 256);
inline constexpr auto none = stowage::make_plan<fields>(params{});
static_assert(none.bytes<&fields::states>() == 0 && none.bytes<&fields::counter>() == 8);
static_assert(none.layout<&fields::states>().state == field_state::empty);
static_assert(none.bytes<&fields::floored>() == 256 && none.zero_rows_bytes(tokens{1}) == 256);
static_assert(none.total_bytes() == 256 + 8 + 256);

// A size that is passed in: present whatever the condition says, or null.
inline constexpr auto larger = plan.with_bytes<&fields::scratch>(1000);
static_assert(larger.bytes<&fields::scratch>() == 1000 && larger.layout<&fields::scratch>().overridden);
static_assert(larger.offset<&fields::scratch>() == 11792 + 240); // 47 * 256 = 12032, to 13032
static_assert(larger.offset<&fields::flags>() == 13040);         // 815 * 16
static_assert(larger.offset<&fields::logits>() == plan.offset<&fields::logits>());
static_assert(larger.total_bytes() == plan.total_bytes() + 1000);
inline constexpr auto dropped = plan.with_bytes<&fields::padded>(0);
static_assert(dropped.bytes<&fields::padded>() == 0 && !dropped.present<&fields::padded>());
static_assert(dropped.offset<&fields::heads, &attention::keys>() == 6 * 256);
static_assert(dropped.zero_rows_bytes(tokens{1}) == 80 + 16 + 256 + 1360 + 272);
// Fewer bytes than the formula gives: fewer rows. 10 rows of 240 bytes.
inline constexpr auto shorter = plan.with_bytes<&fields::padded>(2400);
static_assert(shorter.zero_bytes<&fields::padded>(tokens{1}) == 2400);
static_assert(shorter.zero_bytes<&fields::states>(tokens{1}) == 80);

// With a field that its condition leaves out.
inline constexpr auto armed = plan.with<&fields::scratch>();
static_assert(armed.bytes<&fields::scratch>() == 160 &&
              armed.layout<&fields::scratch>().state == field_state::present);
static_assert(armed.layout<&fields::scratch>().overridden && armed.bytes<&fields::held>() == 256);
static_assert(armed.with<&fields::held>().bytes<&fields::held>() == 68);
static_assert(armed.with_bytes<&fields::scratch>(0).total_bytes() == plan.total_bytes());
static_assert(
    plan.with_bytes<&fields::heads, &attention::values>(1).bytes<&fields::heads, &attention::values>() == 1);

// The hash follows the layout.
static_assert(plan.hash() == stowage::make_plan<fields>(params{tokens{17}, 40, false}).hash());
static_assert(plan.hash() != mamba.hash());
static_assert(plan.hash() != none.hash());
static_assert(plan.hash() != larger.hash());
static_assert(plan.hash() != stowage::make_plan<fields>(params{tokens{18}, 40, false}).hash());
static_assert(plan.hash() == larger.with_bytes<&fields::scratch>(0).hash());
// And is the same number with every compiler.
static_assert(plan.hash() == 6203817522036575908u);

// Rows of another width in as many bytes are another layout: a row pass clears other bytes.
struct wide_rows {
  buffer<bf16, shape<M, hidden>, zero::rows> states;
};
static_assert(stowage::make_plan<wide_rows>(params{tokens{16}, 32, false}).bytes<&wide_rows::states>() ==
              stowage::make_plan<wide_rows>(params{tokens{32}, 16, false}).bytes<&wide_rows::states>());
static_assert(stowage::make_plan<wide_rows>(params{tokens{16}, 32, false}).hash() !=
              stowage::make_plan<wide_rows>(params{tokens{32}, 16, false}).hash());

struct other_list {
  buffer<bf16, shape<M>, zero::full> a;
};
struct same_bytes_other_policy {
  buffer<bf16, shape<M>, zero::never> a;
};
static_assert(stowage::make_plan<other_list>(params{tokens{4}}).hash() !=
              stowage::make_plan<same_bytes_other_policy>(params{tokens{4}}).hash());

// More than a hundred buffers, through groups.
struct forty {
  using row = buffer<std::uint8_t, shape<M>, zero::rows>;
  row a00, a01, a02, a03, a04, a05, a06, a07, a08, a09, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19;
  row a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39;
};
struct many {
  forty first;
  forty second;
  buffer<std::uint8_t, shape<1>, zero::never> between;
  forty third;
};
inline constexpr auto large = stowage::make_plan<many>(params{tokens{17}});
static_assert(large.field_count == 121);
static_assert(large.total_bytes() == 120 * 17 + 1);
static_assert(large.slab_bytes() == 120 * 256 + 1);
static_assert(large.offset<&many::third, &forty::a39>() == 119 * 256);
static_assert(large.index_of<&many::third, &forty::a00>() == 81);
static_assert(large.offset<&many::between>() == 120 * 256);
static_assert(large.zero_rows_bytes(tokens{2}) == 120 * 2);
#if !defined(__CUDACC__)
static_assert(large.name(0) == "first.a00" && large.name(120) == "third.a39");
static_assert(large.index_of("second.a17") == 57);
#endif

// As many members as one struct can have.
struct hundred {
  using row = buffer<std::uint8_t, shape<1>, zero::never>;
  row a00, a01, a02, a03, a04, a05, a06, a07, a08, a09, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19;
  row a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39;
  row a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, a59;
  row a60, a61, a62, a63, a64, a65, a66, a67, a68, a69, a70, a71, a72, a73, a74, a75, a76, a77, a78, a79;
  row a80, a81, a82, a83, a84, a85, a86, a87, a88, a89, a90, a91, a92, a93, a94, a95, a96, a97, a98, a99;
};
static_assert(stowage::plan<hundred, params>::field_count == 100);
static_assert(stowage::make_plan<hundred>(params{}).offset<&hundred::a99>() == 99 * 256);

// Private params, nested field lists.
struct engine {
  struct options {
    tokens most{};
  };
  static constexpr stowage::dim<&options::most> rows{"rows"};
  struct buffers {
    buffer<float, shape<rows, 3>, zero::rows> inner;
  };
};
static_assert(stowage::make_plan<engine::buffers>(engine::options{tokens{5}}).total_bytes() == 5 * 3 * 4);
#if !defined(__CUDACC__)
static_assert(stowage::plan<engine::buffers, engine::options>::name(0) == "inner");
#endif

} // namespace

// Outside of the anonymous namespace, in one of its own.
namespace serving::decode {
struct limits {
  stowage::tokens most{};
};
inline constexpr stowage::dim<&limits::most> most{};
struct list {
  stowage::buffer<float, stowage::shape<most>, stowage::zero::rows> sums;
  stowage::buffer<float, stowage::shape<most, 2>, stowage::zero::rows> pairs;
};
inline constexpr auto plan = stowage::make_plan<list>(limits{stowage::tokens{64}});
static_assert(plan.total_bytes() == 64 * 4 + 64 * 2 * 4);
static_assert(plan.offset<&list::pairs>() == 256);
#if !defined(__CUDACC__)
static_assert(plan.name(1) == "pairs");
#endif
} // namespace serving::decode
