#include <stowage/count.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>

namespace {

TEST_CASE("count: a negative number throws, whatever its type") {
  const int zero = 0;
  CHECK_THROWS_AS(stowage::tokens{zero - 1}, std::out_of_range);
  CHECK_THROWS_AS(stowage::sequences{std::int8_t{-128}}, std::out_of_range);
  CHECK_THROWS_AS(stowage::pages{std::numeric_limits<std::int64_t>::min()}, std::out_of_range);
  CHECK_THROWS_WITH(stowage::tokens{zero - 1}, "stowage: a count was made from a negative number");
  CHECK(stowage::tokens{zero}.value == 0);
}

} // namespace
