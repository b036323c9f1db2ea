// visit_exhaustive: every field has exactly one handler. What does not compile: tests/must_not_compile.

#include <stowage/arena.hpp>
#include <stowage/backend/host.hpp>
#include <stowage/exhaustive.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <type_traits>

namespace {

using stowage::buffer;
using stowage::on;
using stowage::shape;
using stowage::visit_exhaustive;
namespace zero = stowage::zero;

struct params {
  stowage::tokens batch{};
};
inline constexpr stowage::dim<&params::batch> M{"M"};

struct attention {
  buffer<float, shape<M>, zero::rows> queries;
  buffer<float, shape<M, 2>, zero::rows> keys;
};
struct fields {
  buffer<float, shape<M>, zero::rows> states;
  stowage::not_owned<int> number;
  attention heads;
  buffer<int, shape<M>, zero::never> ids;
};
constexpr auto plan = stowage::make_plan<fields>(params{stowage::tokens{3}});

TEST_CASE("visit_exhaustive: each handler gets its field, in the order of the handlers") {
  stowage::arena arena(plan, stowage::host_backend{});
  std::string order;
  visit_exhaustive(arena.fields(), on<&fields::ids>([&](auto& field) {
                     static_assert(!std::is_const_v<std::remove_reference_t<decltype(field)>>);
                     order += std::string(field.name()) + ' ';
                     field.data()[0] = 4;
                   }),
                   on<&fields::heads, &attention::keys>([&](auto& field) {
                     order += std::string(field.name()) + ' ';
                     CHECK(field.extent(1) == 2);
                   }),
                   on<&fields::states>([&](const auto& field) { order += std::string(field.name()) + ' '; }),
                   on<&fields::heads, &attention::queries>(
                       [&](const buffer<float, shape<M>, zero::rows>& field) { order += field.name(); }));
  CHECK(order == "ids heads.keys states heads.queries");
  CHECK(arena->ids.data()[0] == 4);
}

TEST_CASE("visit_exhaustive: the fields of a const arena") {
  const stowage::arena arena(plan, stowage::host_backend{});
  std::size_t bytes = 0;
  const auto add = [&](const auto& field) {
    static_assert(std::is_const_v<std::remove_reference_t<decltype(field)>>);
    bytes += field.bytes();
  };
  visit_exhaustive(arena.fields(), on<&fields::states>(add), on<&fields::heads, &attention::queries>(add),
                   on<&fields::heads, &attention::keys>(add), on<&fields::ids>(add));
  CHECK(bytes == 12 + 12 + 24 + 12);
  CHECK(bytes == plan.total_bytes());
}

TEST_CASE("visit_exhaustive: what a handler throws leaves it") {
  stowage::arena arena(plan, stowage::host_backend{});
  int called = 0;
  const auto count = [&](const auto&) { ++called; };
  CHECK_THROWS_AS(visit_exhaustive(arena.fields(), on<&fields::states>(count),
                                   on<&fields::heads, &attention::queries>([](const auto&) { throw 7; }),
                                   on<&fields::heads, &attention::keys>(count), on<&fields::ids>(count)),
                  int);
  CHECK(called == 1);
}

// A handler with a state of its own, which is changed.
TEST_CASE("visit_exhaustive: handlers may be mutable, and a pass may be a constant expression") {
  struct one {
    buffer<float, shape<M>, zero::never> only;
  };
  one list{};
  int seen = 0;
  visit_exhaustive(list, on<&one::only>([count = 0, &seen](auto&) mutable { seen = ++count; }));
  CHECK(seen == 1);

  constexpr std::size_t bytes = [] {
    const one unbound{};
    std::size_t result = 1;
    visit_exhaustive(unbound, on<&one::only>([&](const auto& field) { result = field.bytes(); }));
    return result;
  }();
  static_assert(bytes == 0);
}

} // namespace
