// Regions and alternatives, bound: pointers, types and bytes of each part.

#include <stowage/arena.hpp>
#include <stowage/backend/host.hpp>
#include <stowage/regions.hpp>
#include <stowage/traits/align.hpp>
#include <stowage/traits/placeholder.hpp>
#include <stowage/traits/starts_at.hpp>
#include <stowage/traits/when.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace {

using stowage::alternatives;
using stowage::bf16;
using stowage::buffer;
using stowage::part;
using stowage::regions;
using stowage::shape;
using stowage::tokens;
namespace zero = stowage::zero;

struct params {
  tokens batch{};
  std::size_t width = 0;
  bool extra = false;
  bool carved = true;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::width> width{};

struct key_values {
  part<bf16, shape<stowage::pad<16>(M), width>> keys;
  part<bf16, shape<stowage::pad<16>(M), width>, stowage::starts_at<M * width>> values;
};
struct metadata {
  part<std::uint8_t, shape<M>> flags;
  part<std::int64_t, shape<M>> slots;
  part<float, shape<2>, stowage::when<&params::extra>> scales;
  part<std::uint32_t, shape<1>, stowage::align<64>> count;
};
using wide = part<float, shape<M, 4>, stowage::when<&params::extra>>;
using halves = part<bf16, shape<M, width>>;
struct nested {
  part<regions<metadata>> inner;
  part<alternatives<wide, halves, key_values>> either;
};

struct fields {
  buffer<regions<key_values>, zero::rows> kv;
  buffer<regions<metadata>, zero::full, stowage::when<&params::carved>, stowage::placeholder<256>> meta;
  buffer<alternatives<wide, halves, key_values>, zero::rows> choice;
  buffer<alternatives<halves, part<bf16, shape<M>>>, zero::rows> same;
  buffer<regions<nested>, zero::never> deep;
};

std::ptrdiff_t distance(const void* from, const void* to) {
  return static_cast<const std::byte*>(to) - static_cast<const std::byte*>(from);
}

TEST_CASE("regions: every part under its name, at its place, with its own bytes") {
  const stowage::arena arena(stowage::make_plan<fields>(params{tokens{17}, 4}), stowage::host_backend{});
  const auto& kv = arena->kv;
  static_assert(std::is_same_v<decltype(kv.data()), std::byte*>);
  static_assert(std::is_same_v<decltype(kv.parts().keys.data()), bf16*>);
  CHECK(kv.bytes() == 17 * 4 * 2 + 32 * 4 * 2);
  CHECK(distance(kv.data(), kv.parts().keys.data()) == 0);
  CHECK(distance(kv.data(), kv.parts().values.data()) == 17 * 4 * 2);
  CHECK(kv->keys.bytes() == 32 * 4 * 2);
  CHECK(kv->values.bytes() == 32 * 4 * 2);
  CHECK(kv->values.extents() == std::array<std::size_t, 2>{32, 4});
  CHECK(kv->values.rows(1, 2).data() == kv->values.data() + 4);
  CHECK(kv.name() == "kv");
  CHECK(kv->values.name() == "values");

  // flags 17 bytes, slots from 24 for 136 to 160, no scales, count from 192.
  const auto& meta = arena->meta;
  static_assert(std::is_same_v<decltype(meta->slots.data()), std::int64_t*>);
  CHECK(meta.bytes() == 192 + 4);
  CHECK(distance(meta.data(), meta->flags.data()) == 0);
  CHECK(distance(meta.data(), meta->slots.data()) == 24);
  CHECK(meta->slots.bytes() == 17 * 8);
  CHECK(meta->scales.data() == nullptr);
  CHECK(meta->scales.bytes() == 0);
  CHECK(meta->scales.extents() == std::array<std::size_t, 1>{0});
  CHECK(distance(meta.data(), meta->count.data()) == 192);

  // 196 of inner, then either from 196: the first alternative is absent, the largest is 17 * 4 * 2 + 32 * 4 *
  // 2 = 392.
  const auto& deep = arena->deep;
  CHECK(deep.bytes() == 196 + 392);
  CHECK(distance(deep.data(), deep->inner->count.data()) == 192);
  CHECK(distance(deep.data(), deep->either.data()) == 196);
  CHECK(deep->either.as<wide>().data() == nullptr);
  CHECK(distance(deep.data(), deep->either.as<halves>().data()) == 196);
  CHECK(distance(deep.data(), deep->either.as<key_values>().values.data()) == 196 + 136);
}

TEST_CASE("regions: a part whose condition holds moves those behind it") {
  const stowage::arena arena(stowage::make_plan<fields>(params{tokens{20}, 4, true}),
                             stowage::host_backend{});
  // flags 20, slots from 24 to 184, scales to 192, count from 192.
  CHECK(distance(arena->meta.data(), arena->meta->scales.data()) == 184);
  CHECK(arena->meta->scales.bytes() == 8);
  CHECK(distance(arena->meta.data(), arena->meta->count.data()) == 192);
}

TEST_CASE("alternatives: all at one address, each with its type, extents and bytes") {
  const stowage::arena arena(stowage::make_plan<fields>(params{tokens{17}, 4, true}),
                             stowage::host_backend{});
  const auto& choice = arena->choice;
  static_assert(std::is_same_v<decltype(choice.data()), std::byte*>);
  static_assert(std::is_same_v<decltype(choice.as<wide>().data()), float*>);
  static_assert(std::is_same_v<decltype(choice.as<key_values>()), const key_values&>);
  CHECK(choice.bytes() == 392);
  CHECK(distance(choice.data(), choice.as<wide>().data()) == 0);
  CHECK(choice.as<wide>().bytes() == 17 * 4 * 4);
  CHECK(choice.as<wide>().extents() == std::array<std::size_t, 2>{17, 4});
  CHECK(distance(choice.data(), choice.as<halves>().data()) == 0);
  CHECK(choice.as<halves>().bytes() == 17 * 4 * 2);
  CHECK(distance(choice.data(), choice.as<key_values>().keys.data()) == 0);
  CHECK(distance(choice.data(), choice.as<key_values>().values.data()) == 136);
  CHECK_FALSE(choice.as<halves>().fits(17, 5));

  static_assert(std::is_same_v<decltype(arena->same.data()), bf16*>);
  CHECK(arena->same.bytes() == 17 * 4 * 2);
  CHECK(arena->same.data() == arena->same.as<halves>().data());
}

TEST_CASE("regions: an absent carved field keeps its placeholder, and null parts") {
  const stowage::arena arena(stowage::make_plan<fields>(params{tokens{17}, 4, false, false}),
                             stowage::host_backend{});
  CHECK(arena->meta.data() != nullptr);
  CHECK(arena->meta.bytes() == 256);
  CHECK(arena->meta->flags.data() == nullptr);
  CHECK(arena->meta->count.bytes() == 0);
}

TEST_CASE("regions: after release every part is null") {
  stowage::arena arena(stowage::make_plan<fields>(params{tokens{17}, 4, true}), stowage::host_backend{});
  CHECK(arena.release().ok());
  CHECK(arena->kv.data() == nullptr);
  CHECK(arena->kv->values.data() == nullptr);
  CHECK(arena->kv->values.bytes() == 0);
  CHECK(arena->choice.as<halves>().data() == nullptr);
  CHECK(arena->deep->either.as<key_values>().keys.data() == nullptr);
}

TEST_CASE("regions: rows beyond an alternative name the field, beyond a part the part") {
  const stowage::arena arena(stowage::make_plan<fields>(params{tokens{17}, 4, true}),
                             stowage::host_backend{});
  const auto message_of = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const stowage::bounds_error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message_of([&] { static_cast<void>(arena->choice.as<halves>().rows(0, 18)); }).find("'choice") !=
        std::string::npos);
  CHECK(message_of([&] { static_cast<void>(arena->kv->values.rows(0, 33)); }).find("'values'") !=
        std::string::npos);
}

} // namespace
