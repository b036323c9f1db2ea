// Reservations: the places of fields, and plans that are placed there.

#include <stowage/reservation.hpp>
#include <stowage/stowage.hpp>

#include <cstddef>
#include <cstdint>

namespace {

using stowage::buffer;
using stowage::shape;
using stowage::tokens;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  bool extra = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};

struct fields {
  buffer<float, shape<M>, zero::rows> scores;
  buffer<std::uint8_t, shape<M>, zero::rows, stowage::copies<3>, stowage::tail<16>> twins;
  buffer<std::uint8_t, shape<M>, zero::full, stowage::when<&params::extra>> extra;
  buffer<std::uint8_t, shape<M>, zero::never, stowage::align<1024>> kept;
};
using fields_plan = stowage::plan<fields, params>;

constexpr fields_plan make(std::size_t batch, bool extra = true) {
  return fields_plan({tokens{batch}, extra});
}

// A reservation for one plan has its fields where the plan has them.
constexpr fields_plan large = make(1000);
constexpr stowage::reservation<fields_plan> room = large;
static_assert(room.slab_bytes() == large.slab_bytes() && room.slab_alignment() == 1024);
static_assert(large.placed_in(room).hash() == large.hash());
static_assert(large.placed_in(room).is_contiguous() && !large.placed_in(room).has_holes());
static_assert(large.placed_in(room).zeroed_slab_bytes() == large.zeroed_slab_bytes());

// scores 4000 bytes; twins at 4096, three times 1000 and 16 with a stride of 1024; extra at 7168; kept at 8192.
static_assert(room.offset(0) == 0 && room.bytes(0) == 4000);
static_assert(room.offset(1) == 4096 && room.stride(1) == 1024);
static_assert(room.offset(2) == 7168 && room.offset(3) == 8192 && room.slab_bytes() == 9192);

// A smaller plan keeps its sizes and takes these places. No two neighbours, since every field leaves room.
constexpr fields_plan small = make(10).placed_in(room);
static_assert(small.bytes(1) == 10 && small.offset(1) == 4096 && small.layout(1).stride == 1024);
static_assert(small.offset(3) == 8192 && small.slab_bytes() == 8202);
static_assert(small.has_holes() && !small.is_contiguous());
static_assert(small.layout(0).position == 0 && small.layout(1).position == 2 &&
              small.layout(3).position == 6);
static_assert(small.total_bytes() == make(10).total_bytes() && small.zeroed_slab_bytes() == 7178);
static_assert(small.hash() != make(10).hash());

// A field that is absent leaves its place empty: what is behind it is no neighbour.
constexpr fields_plan without = make(1000, false).placed_in(room);
static_assert(without.offset(2) == 0 && without.bytes(2) == 0 && without.offset(3) == 8192);
static_assert(without.layout(1).position == 1 && without.layout(3).position == 3 && without.has_holes());
// At the end nothing is behind it.
static_assert(make(1000).placed_in(room).with_bytes<&fields::kept>(0).placed_in(room).is_contiguous());
// Placing again as any plan does takes the holes away.
static_assert(small.with_guards(0).hash() == make(10).hash() && small.with_guards(0).is_contiguous());

// Room for either of two plans.
constexpr auto either = stowage::reservation<fields_plan>(make(1000, false)).with(make(10));
static_assert(either.bytes(0) == 4000 && either.bytes(2) == 10 && either.offset(3) == 8192);

// Guard zones: as long as wanted where there is room for more, and next to their fields.
constexpr stowage::reservation<fields_plan> guarded = make(1000).with_guards(64);
static_assert(guarded.guard_bytes() == 64 && guarded.offset(0) == 256 && guarded.offset(1) == 4352);
constexpr std::size_t zone_bytes = [] {
  std::size_t bytes = 0;
  make(10).with_guards(64).placed_in(guarded).visit_guards(
      [&](std::size_t, std::size_t begin, std::size_t end) { bytes += end - begin; });
  return bytes;
}();
static_assert(zone_bytes == 7 * 64); // in front, behind scores, three of twins, extra, kept

} // namespace
