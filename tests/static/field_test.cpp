#include <stowage/buffer.hpp>
#include <stowage/condition.hpp>
#include <stowage/field.hpp>
#include <stowage/traits/align.hpp>
#include <stowage/traits/at_least.hpp>
#include <stowage/traits/placeholder.hpp>
#include <stowage/traits/starts_at.hpp>
#include <stowage/traits/tag.hpp>
#include <stowage/traits/when.hpp>
#include <stowage/traits/zero.hpp>
#include <stowage/traits/zero_at_construction.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace {

using stowage::bf16;
using stowage::buffer;
using stowage::part;
using stowage::shape;
namespace zero = stowage::zero;

struct params {
  stowage::tokens batch{};
  std::size_t hidden = 0;
  bool mamba = false;
};
inline constexpr stowage::dim<&params::batch> M{"M"};
inline constexpr stowage::dim<&params::hidden> hidden{};

struct first_tag;
struct second_tag;

template <class Buffer> using definition = typename Buffer::definition;

// Exactly the traits, and one zero policy among them.
static_assert(stowage::trait<zero::rows> && stowage::zero_policy<zero::rows>);
static_assert(stowage::zero_policy<zero::full> && stowage::zero_policy<zero::never>);
static_assert(stowage::trait<stowage::align<16>> && !stowage::zero_policy<stowage::align<16>>);
static_assert(stowage::trait<stowage::at_least<1>>);
static_assert(stowage::trait<stowage::placeholder<1>>);
static_assert(stowage::trait<stowage::starts_at<M>>);
static_assert(stowage::trait<stowage::tag<first_tag>>);
static_assert(stowage::trait<stowage::when<&params::mamba>>);
static_assert(stowage::trait<stowage::zero_at_construction>);
static_assert(!stowage::trait<int> && !stowage::trait<bf16> && !stowage::trait<shape<M>>);
static_assert(stowage::content<stowage::tensor<bf16, shape<M>>>);
static_assert(!stowage::content<bf16> && !stowage::content<shape<M>>);

// What is no buffer or part is refused in words, by static_assert:
// tests/must_not_compile/buffer_arguments.cpp.
template <class... Arguments>
concept makes_buffer = requires { typename buffer<Arguments...>; };
template <class... Arguments>
concept makes_part = requires { typename part<Arguments...>; };

static_assert(makes_buffer<bf16, shape<M>, zero::rows>);
static_assert(makes_buffer<bf16, shape<M>, stowage::align<16>, zero::rows, stowage::tag<first_tag>>);
static_assert(makes_buffer<stowage::tensor<bf16, shape<M>>, zero::full>);
static_assert(makes_part<bf16, shape<M>>);
static_assert(makes_part<bf16, shape<M>, stowage::align<16>, stowage::starts_at<M>>);

// What the traits say, wherever they stand.
using plain = definition<buffer<bf16, shape<M, hidden>, zero::rows>>;
static_assert(std::is_same_v<plain::policy, zero::rows>);
static_assert(plain::token_major && !plain::has_condition && !plain::cleared_at_construction);
static_assert(plain::explicit_alignment == 0 && plain::alignment(256) == 256 && plain::alignment(1) == 2);
static_assert(plain::minimum_bytes == 0 && plain::absent_bytes == 0);
static_assert(!plain::has_tag<first_tag>);

using rich =
    definition<buffer<float, shape<hidden, M>, stowage::when<&params::mamba>, stowage::tag<first_tag>,
                      stowage::at_least<512>, stowage::placeholder<64>, zero::never, stowage::align<4096>,
                      stowage::zero_at_construction, stowage::tag<second_tag>, stowage::when<(hidden > 3)>>>;
static_assert(std::is_same_v<rich::policy, zero::never>);
static_assert(!rich::token_major && rich::has_condition && rich::cleared_at_construction);
static_assert(rich::explicit_alignment == 4096 && rich::alignment(256) == 4096);
static_assert(rich::minimum_bytes == 512 && rich::absent_bytes == 64);
static_assert(rich::has_tag<first_tag> && rich::has_tag<second_tag> && !rich::has_tag<params>);
static_assert(!rich::explicitly_placed);

// An element stricter than the default wins; align<N> may be below the default.
struct alignas(1024) wide {
  std::byte bytes[1024];
};
static_assert(definition<buffer<wide, shape<M>, zero::never>>::alignment(256) == 1024);
static_assert(definition<buffer<float, shape<M>, zero::never, stowage::align<4>>>::alignment(256) == 4);
static_assert(definition<part<float, shape<M>, stowage::starts_at<M * 2>>>::explicitly_placed);

// The policies: the order of the slab and what the passes do.
static_assert(zero::rows::slab_group < zero::full::slab_group &&
              zero::full::slab_group < zero::never::slab_group);
static_assert(zero::rows::cleared_by_zero_all && zero::full::cleared_by_zero_all);
static_assert(!zero::never::cleared_by_zero_all);
static_assert(zero::rows::in_row_pass == stowage::row_pass::reached_rows);
static_assert(zero::full::in_row_pass == stowage::row_pass::whole);
static_assert(zero::never::in_row_pass == stowage::row_pass::nothing);
static_assert(zero::rows::name == "rows" && zero::full::name == "full" && zero::never::name == "never");

// A handle can be passed to a kernel by value, and starts out null.
using handle = buffer<bf16, shape<M, hidden>, zero::rows>;
static_assert(std::is_trivially_copyable_v<handle>);
static_assert(std::is_same_v<decltype(handle{}.data()), bf16*>);
static_assert(std::is_same_v<decltype(handle{}.extents()), std::array<std::size_t, 2>>);
static_assert(handle{}.bytes() == 0 && handle{}.size() == 0 && !handle{} && handle{}.name().empty());
static_assert(handle{}.extents() == std::array<std::size_t, 2>{0, 0} && handle{}.extent(1) == 0);
static_assert(handle{}.row_count() == 0 && handle{}.row_elements() == 0);
static_assert(!handle{}.fits(0) && !handle{}.fits(1, 1));

// rows() is there for token-major fields only.
template <class Handle>
concept has_rows = requires(Handle handle) { handle.rows(0, 0); };
static_assert(has_rows<handle>);
static_assert(has_rows<buffer<bf16, shape<stowage::pad<16>(M)>, zero::never>>);
static_assert(!has_rows<buffer<bf16, shape<hidden, M>, zero::never>>);
static_assert(!has_rows<buffer<bf16, shape<hidden>, zero::never>>);

// not_owned hands its value through.
static_assert(*stowage::not_owned<int>{7} == 7);
static_assert(stowage::not_owned<int>{}.value == 0);
static_assert(stowage::not_owned<params> { {.hidden = 3} } -> hidden == 3);

} // namespace
