// Resources with labels, released in reverse order.

#include <stowage/arena.hpp>
#include <stowage/backend/failing.hpp>
#include <stowage/teardown.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using stowage::failure;
using stowage::status;
using stowage::teardown;

static_assert(!std::is_copy_constructible_v<teardown> && !std::is_move_constructible_v<teardown>);
static_assert(noexcept(std::declval<teardown&>().release()));

TEST_CASE("teardown: the last one first") {
  std::vector<std::string> released;
  teardown all;
  all.add("context", [&] { released.push_back("context"); });
  all.add("stream", [&]() -> status {
    released.push_back("stream");
    return {};
  });
  all.add("arena", [&] { released.push_back("arena"); });
  CHECK(all.size() == 3);
  CHECK(all.release().ok());
  CHECK(released == std::vector<std::string>{"arena", "stream", "context"});
  CHECK(all.size() == 0);

  // Once.
  CHECK(all.release().ok());
  CHECK(released.size() == 3);
}

TEST_CASE("teardown: one failure does not stop the rest, and the first one names its label") {
  std::vector<std::string> released;
  const auto fails = [&](const char* name, int code) {
    return [&released, name, code]() -> status {
      released.push_back(name);
      return failure{"destroy", "handle", code, "it is in use", 8};
    };
  };
  teardown all;
  all.add("first", [&] { released.push_back("first"); });
  all.add("cuBLAS", fails("cuBLAS", 3));
  all.add("middle", [&] { released.push_back("middle"); });
  all.add("NCCL", fails("NCCL", 5));
  all.add("last", [&] { released.push_back("last"); });
  const status result = all.release();
  CHECK(released == std::vector<std::string>{"last", "NCCL", "middle", "cuBLAS", "first"});
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().label == "NCCL");
  CHECK(result.error().code == 5);
  CHECK(result.message() == "NCCL: destroy of 'handle' (8 bytes) failed with code 5: it is in use");
  CHECK(all.release().ok()); // the failure was told
}

TEST_CASE("teardown: an action that throws is a failure like others") {
  int released = 0;
  teardown all;
  all.add("below", [&] { ++released; });
  all.add("throws", [] { throw std::runtime_error("no"); });
  all.add("throws with a status", []() -> status { throw 1; });
  all.add("above", [&] { ++released; });
  const status result = all.release();
  CHECK(released == 2);
  CHECK(result.error().label == "throws with a status");
  CHECK(result.message() == "throws with a status: teardown failed: the action threw");
}

TEST_CASE("teardown: the destructor releases what is left, failures and all") {
  std::vector<int> released;
  {
    teardown all;
    all.add("one", [&] { released.push_back(1); });
    all.add("two", [] { throw 1; });
    all.add("three", [&] { released.push_back(3); });
  }
  CHECK(released == std::vector<int>{3, 1});
  {
    teardown all;
    all.add("four", [&] { released.push_back(4); });
    CHECK(all.release().ok());
  }
  CHECK(released == std::vector<int>{3, 1, 4});
}

TEST_CASE("teardown: what an action owns goes with it, before the next one") {
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = owned;
  bool gone = false;
  teardown all;
  all.add("below", [&] { gone = watched.expired(); });
  all.add("owner", [held = std::make_unique<std::shared_ptr<int>>(std::move(owned))] {}); // move-only
  CHECK_FALSE(watched.expired());
  CHECK(all.release().ok());
  CHECK(gone);
}

TEST_CASE("teardown: resources can be added after a release, and by an action") {
  std::vector<int> released;
  teardown all;
  all.add("one", [&] { released.push_back(1); });
  CHECK(all.release().ok());
  all.add("two", [&] { released.push_back(2); });
  all.add("three", [&] {
    released.push_back(3);
    all.add("four", [&] { released.push_back(4); });
  });
  CHECK(all.size() == 2);
  CHECK(all.release().ok());
  CHECK(released == std::vector<int>{1, 3, 4, 2});
  CHECK(all.size() == 0);
}

TEST_CASE("teardown: labels of failures stay valid, also after more is added") {
  teardown all;
  all.add(std::string(100, 'a'), [] { throw 1; });
  const status result = all.release();
  for (int number = 0; number < 100; ++number) all.add("more", [] {});
  CHECK(result.error().label == std::string(100, 'a'));
}

struct params {
  stowage::tokens batch{};
};
inline constexpr stowage::dim<&params::batch> M{"M"};
struct fields {
  stowage::buffer<float, stowage::shape<M>, stowage::zero::rows> first;
  stowage::buffer<float, stowage::shape<M>, stowage::zero::rows> second;
};
constexpr auto plan = stowage::make_plan<fields>(params{stowage::tokens{3}});

TEST_CASE("teardown: an arena registers itself by one call") {
  stowage::failing_backend<> backend;
  stowage::arena weights(plan, backend);
  stowage::arena step(plan, backend, {.where = stowage::placement::separate});
  teardown all;
  all.add("weights arena", weights);
  all.add("step arena", step);
  backend.fail(stowage::operation::deallocate, 1);
  const status result = all.release();
  CHECK(result.message() ==
        "step arena: deallocate of 'second' (12 bytes) failed with code 719: made to fail");
  CHECK(weights.released());
  CHECK(step.released());
  CHECK(backend.outstanding() == 0);
  CHECK(all.release().ok());
}

TEST_CASE("teardown: an arena that is released by hand is no failure") {
  stowage::arena arena(plan, stowage::host_backend{});
  teardown all;
  all.add("arena", arena);
  CHECK(arena.release().ok());
  CHECK(all.release().ok());
}

TEST_CASE("teardown: every release fails once, everything is released") {
  for (std::size_t k = 1; k <= 4; ++k) {
    stowage::failing_backend<> backend;
    stowage::arena slab(plan, backend);
    stowage::arena apart(plan, backend, {.where = stowage::placement::separate});
    stowage::arena last(plan, backend);
    teardown all;
    all.add("slab", slab);
    all.add("apart", apart);
    all.add("last", last);
    backend.fail(stowage::operation::deallocate, k);
    const status result = all.release();
    CHECK(result.error().label == (k == 1 ? "last" : k == 4 ? "slab" : "apart"));
    CHECK(backend.outstanding() == 0);
  }
}

TEST_CASE("teardown: one can be released by another") {
  std::vector<int> released;
  teardown inner;
  inner.add("inner", [&] {
    released.push_back(1);
    throw 1;
  });
  teardown outer;
  outer.add("engine", inner);
  outer.add("last", [&] { released.push_back(2); });
  CHECK(outer.release().error().label == "engine");
  CHECK(released == std::vector<int>{2, 1});
}

} // namespace
