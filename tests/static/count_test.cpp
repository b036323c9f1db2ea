#include <stowage/count.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace {

using stowage::pages;
using stowage::sequences;
using stowage::tokens;

static_assert(tokens{}.value == 0);
static_assert(tokens{7}.value == 7);
static_assert(tokens{std::int8_t{127}}.value == 127);
static_assert(tokens{std::uint8_t{255}}.value == 255);
static_assert(tokens{std::int64_t{0}}.value == 0);
static_assert(tokens{std::numeric_limits<std::int64_t>::max()}.value == 9223372036854775807u);
static_assert(tokens{std::numeric_limits<std::uint64_t>::max()}.value == 18446744073709551615u);
static_assert(sequences{32u}.value == 32);
static_assert(pages{257L}.value == 257);

// Ordered among their own kind.
static_assert(tokens{7} == tokens{7u});
static_assert(tokens{7} != tokens{8});
static_assert(tokens{7} < tokens{8});
static_assert(tokens{9} >= tokens{9});

// Never mixed, never made by accident.
static_assert(!std::convertible_to<int, tokens>);
static_assert(!std::convertible_to<std::size_t, tokens>);
static_assert(!std::convertible_to<tokens, std::size_t>);
static_assert(!std::constructible_from<tokens, sequences>);
static_assert(!std::constructible_from<sequences, tokens>);
static_assert(!std::constructible_from<pages, tokens>);
static_assert(!std::constructible_from<tokens, bool>);
static_assert(!std::constructible_from<tokens, double>);
static_assert(!std::constructible_from<tokens, const char*>);
static_assert(!std::equality_comparable_with<tokens, sequences>);
static_assert(!std::equality_comparable_with<tokens, int>);

// A kind of the user's.
struct experts_tag;
using experts = stowage::count<experts_tag>;
static_assert(experts{8}.value == 8);
static_assert(!std::constructible_from<experts, tokens>);

static_assert(sizeof(tokens) == sizeof(std::size_t));
static_assert(std::is_trivially_copyable_v<tokens>);
static_assert(std::is_nothrow_default_constructible_v<tokens>);

} // namespace
