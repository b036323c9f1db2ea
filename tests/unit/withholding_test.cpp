// The backend that leaves memory out of zero passes.

#include <stowage/backend/recording.hpp>
#include <stowage/backend/withholding.hpp>

#include <array>
#include <cstddef>
#include <cstring>
#include <doctest/doctest.h>
#include <vector>

namespace {

using stowage::segment;

struct host_memory {
  alignas(8) std::array<std::byte, 64> bytes{};
  segment at(std::size_t begin, std::size_t end) { return {bytes.data() + begin, end - begin}; }
};

using withholding = stowage::withholding_backend<stowage::recording_backend<>>;
static_assert(stowage::backend<withholding>);
static_assert(!stowage::capturing_backend<withholding>);

TEST_CASE("withholding: without a list, passes go on as they are") {
  host_memory memory;
  withholding backend;
  const std::array<segment, 2> pass{memory.at(0, 8), memory.at(16, 24)};
  backend.zero({}, pass);
  REQUIRE(backend.inner().calls().size() == 1);
  CHECK(backend.inner().calls()[0].segments == std::vector<segment>{memory.at(0, 8), memory.at(16, 24)});
  CHECK(backend.asked() == std::vector<segment>{memory.at(0, 8), memory.at(16, 24)});
  backend.forget();
  CHECK(backend.asked().empty());
}

TEST_CASE("withholding: what is withheld is cut out, wherever it lies") {
  host_memory memory;
  std::memset(memory.bytes.data(), 0x5b, memory.bytes.size());
  withholding backend;
  // Out of order, touching each other, over an end, over a start, and outside.
  const std::array<segment, 5> withheld{memory.at(40, 50), memory.at(4, 8), memory.at(8, 10),
                                        memory.at(20, 28), memory.at(60, 64)};
  backend.withhold(withheld);
  const std::array<segment, 3> pass{memory.at(0, 24), memory.at(26, 44), memory.at(44, 48)};
  backend.zero({}, pass);
  REQUIRE(backend.inner().calls().size() == 1);
  CHECK(backend.inner().calls()[0].segments ==
        std::vector<segment>{memory.at(0, 4), memory.at(10, 20), memory.at(28, 40)});
  std::size_t left = 0;
  for (const std::byte byte : memory.bytes) left += byte == std::byte{0x5b} ? 1 : 0;
  CHECK(left == 64 - 4 - 10 - 12);
  CHECK(backend.asked() == std::vector<segment>{memory.at(0, 24), memory.at(26, 44), memory.at(44, 48)});
}

TEST_CASE("withholding: a pass of which nothing is left is not passed on, and the list can be taken back") {
  host_memory memory;
  withholding backend;
  const std::array<segment, 1> all{memory.at(0, 64)};
  const std::array<segment, 1> pass{memory.at(8, 16)};
  backend.withhold(all);
  backend.zero({}, pass);
  CHECK(backend.inner().calls().empty());
  backend.withhold({});
  backend.zero({}, pass);
  CHECK(backend.inner().calls().size() == 1);
}

} // namespace
