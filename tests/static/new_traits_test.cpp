// copies, tail, min_bytes and pad_fill: what they do to a layout and to its hash.

#include <stowage/plan.hpp>
#include <stowage/regions.hpp>
#include <stowage/traits/align.hpp>
#include <stowage/traits/at_least.hpp>
#include <stowage/traits/copies.hpp>
#include <stowage/traits/min_bytes.hpp>
#include <stowage/traits/pad_fill.hpp>
#include <stowage/traits/tail.hpp>
#include <stowage/traits/when.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace {

using stowage::bf16;
using stowage::buffer;
using stowage::copies;
using stowage::make_plan;
using stowage::min_bytes;
using stowage::shape;
using stowage::tail;
using stowage::tokens;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  std::size_t hidden = 0;
  bool off = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};
inline constexpr stowage::dim<&params::off> off{};
constexpr params five{tokens{5}, 100};

// copies: 60 bytes each, 256 apart; bytes() are those of one.
struct copied {
  buffer<float, shape<M, 3>, zero::rows, copies<3>> states;
  buffer<float, shape<M>, zero::never> behind;
};
constexpr auto copied_plan = make_plan<copied>(five);
static_assert(copied_plan.bytes<&copied::states>() == 60);
static_assert(copied_plan.layout<&copied::states>().copies == 3);
static_assert(copied_plan.layout<&copied::states>().stride == 256);
static_assert(copied_plan.layout<&copied::states>().extent() == 2 * 256 + 60);
static_assert(copied_plan.layout<&copied::states>().allocated() == 2 * 256 + 60);
static_assert(copied_plan.offset<&copied::behind>() == 768); // 572, rounded up
static_assert(copied_plan.total_bytes() == 3 * 60 + 20);
static_assert(copied_plan.slab_bytes() == 768 + 20);
static_assert(copied_plan.zeroed_slab_bytes() == 572);
static_assert(copied_plan.zero_all_bytes() == 3 * 60);
static_assert(copied_plan.zero_rows_bytes(tokens{2}) == 3 * 24); // two rows of each

// Copies keep the field's own alignment.
struct copied_tightly {
  buffer<float, shape<M, 3>, zero::never, copies<2>, stowage::align<64>> states;
};
static_assert(make_plan<copied_tightly>(five).layout<&copied_tightly::states>().stride == 64);
static_assert(make_plan<copied_tightly>(five).slab_bytes() == 64 + 60);

// One copy is no copies: the handle is the plain one.
static_assert(
    std::is_same_v<buffer<float, shape<M>, zero::never, copies<1>>::definition::content_type::handle,
                   buffer<float, shape<M>, zero::never>::definition::content_type::handle>);
static_assert(sizeof(buffer<float, shape<M>, zero::never, copies<1>>) ==
              sizeof(buffer<float, shape<M>, zero::never>));
static_assert(buffer<float, shape<M>, zero::never, copies<3>>::copy_count == 3);

// tail: backing beyond the end that nothing counts.
struct tailed {
  buffer<float, shape<M, 3>, zero::rows, tail<300>> states;
  buffer<float, shape<M>, zero::never, tail<128>> last;
};
constexpr auto tailed_plan = make_plan<tailed>(five);
static_assert(tailed_plan.bytes<&tailed::states>() == 60);
static_assert(tailed_plan.layout<&tailed::states>().tail == 300);
static_assert(tailed_plan.layout<&tailed::states>().extent() == 60);
static_assert(tailed_plan.layout<&tailed::states>().allocated() == 360);
static_assert(tailed_plan.offset<&tailed::last>() == 512); // 360, rounded up
static_assert(tailed_plan.total_bytes() == 60 + 20);
static_assert(tailed_plan.slab_bytes() == 512 + 20 + 128);
static_assert(tailed_plan.zeroed_slab_bytes() == 60);
static_assert(tailed_plan.zero_all_bytes() == 60);
static_assert(tailed_plan.zero_rows_bytes(tokens{5}) == 60);

// Each copy has its own tail.
struct copied_and_tailed {
  buffer<float, shape<M, 3>, zero::never, copies<2>, tail<200>> states;
};
constexpr auto both_plan = make_plan<copied_and_tailed>(five);
static_assert(both_plan.layout<&copied_and_tailed::states>().stride == 512); // 260, rounded up
static_assert(both_plan.layout<&copied_and_tailed::states>().allocated() == 512 + 60 + 200);
static_assert(both_plan.slab_bytes() == 772);

// What is absent or empty has neither.
struct absent {
  buffer<float, shape<M>, zero::never, copies<4>, tail<4096>, stowage::when<off>> never_there;
};
static_assert(make_plan<absent>(five).slab_bytes() == 0);
static_assert(make_plan<absent>(five).total_bytes() == 0);
static_assert(make_plan<absent>(params{tokens{0}, 0, true}).slab_bytes() == 0);

// min_bytes: a floor that is a formula, of what is present.
struct floored {
  buffer<float, shape<M>, zero::never, min_bytes<2 * hidden>> workspace;
  buffer<float, shape<M>, zero::never, min_bytes<hidden>, stowage::at_least<150>> either;
  buffer<float, shape<M>, zero::never, min_bytes<64>> constant;
  buffer<float, shape<M>, zero::never, min_bytes<hidden>, stowage::when<off>> never_there;
};
constexpr auto floored_plan = make_plan<floored>(five);
static_assert(floored_plan.bytes<&floored::workspace>() == 200);
static_assert(floored_plan.bytes<&floored::either>() == 150);
static_assert(floored_plan.bytes<&floored::constant>() == 64);
static_assert(floored_plan.bytes<&floored::never_there>() == 0);
constexpr auto above_the_floor = make_plan<floored>(params{tokens{60}, 100});
static_assert(above_the_floor.bytes<&floored::workspace>() == 240);
static_assert(above_the_floor.bytes<&floored::either>() == 240);
static_assert(make_plan<floored>(params{tokens{5}, 1000}).bytes<&floored::either>() == 1000);

// A row pass clears the floor at least, because rows that lie in it cannot be told apart.
struct floored_rows {
  buffer<float, shape<M, 2>, zero::rows, min_bytes<hidden>> rows;
};
static_assert(make_plan<floored_rows>(five).bytes<&floored_rows::rows>() == 100);
static_assert(make_plan<floored_rows>(five).zero_rows_bytes(tokens{1}) == 100);
static_assert(make_plan<floored_rows>(params{tokens{20}, 100}).zero_rows_bytes(tokens{1}) == 100);
static_assert(make_plan<floored_rows>(params{tokens{20}, 100}).zero_rows_bytes(tokens{15}) == 120);

// pad_fill takes no bytes and no place.
struct filled {
  buffer<float, shape<M, 3>, zero::never, stowage::pad_fill<1>> scales;
};
struct unfilled {
  buffer<float, shape<M, 3>, zero::never> scales;
};
static_assert(make_plan<filled>(five).slab_bytes() == 60);
static_assert(make_plan<filled>(five).hash() == make_plan<unfilled>(five).hash());

// The hash tells layouts apart that differ in these traits alone, even at the same number of bytes.
template <class... Traits> struct one_field {
  buffer<float, shape<M, 3>, zero::never, Traits...> states;
};
template <class... Traits> constexpr std::uint64_t hash_of() {
  return make_plan<one_field<Traits...>>(five).hash();
}
static_assert(hash_of<>() == hash_of<copies<1>>());
static_assert(hash_of<>() == hash_of<min_bytes<60>>()); // the floor that is no floor
static_assert(hash_of<>() != hash_of<copies<2>>());
static_assert(hash_of<>() != hash_of<tail<4>>());
static_assert(hash_of<>() != hash_of<min_bytes<64>>());
static_assert(hash_of<copies<2>>() != hash_of<copies<3>>());
static_assert(hash_of<tail<4>>() != hash_of<tail<8>>());
static_assert(hash_of<copies<2>, tail<4>>() != hash_of<copies<2>, tail<8>>()); // the stride is the same
static_assert(hash_of<tail<4>>() != hash_of<min_bytes<64>>());                 // so is the slab

// Fill values at the edges of the small floats (OCP OFP8: e4m3 ends at 448 and has 2^-9 as its smallest
// number).
constexpr unsigned bits_of(const stowage::detail::fill_pattern& pattern) {
  unsigned bits = 0;
  for (std::size_t byte = pattern.size; byte-- != 0;) bits = bits * 256 + pattern.bytes[byte];
  return bits;
}
static_assert(bits_of(stowage::detail::pattern_of<stowage::fp8_e4m3>(448, 1)) == 0x7e);
static_assert(bits_of(stowage::detail::pattern_of<stowage::fp8_e4m3>(-1, 512)) == 0x81);
static_assert(bits_of(stowage::detail::pattern_of<stowage::fp8_e5m2>(57344, 1)) == 0x7b);
static_assert(bits_of(stowage::detail::pattern_of<stowage::f16>(65504, 1)) == 0x7bff);
static_assert(bits_of(stowage::detail::pattern_of<bf16>(1, 1)) == 0x3f80);

} // namespace
