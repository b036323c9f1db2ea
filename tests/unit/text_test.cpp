#include <stowage/text.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace {

template <std::size_t Capacity> constexpr stowage::fixed_text<Capacity> kept(std::string_view text) {
  return stowage::write_text<Capacity>([text](stowage::text_writer& writer) { writer << text; });
}

static_assert(kept<8>("12345678").view() == "12345678");
static_assert(kept<8>("123456789").view() == "12345...");
static_assert(kept<2>("123456789").view() == "..");
static_assert(kept<8>("").view().empty());

TEST_CASE("text: what is cut says so") {
  stowage::detail::message text;
  for (int count = 0; count < 1023; ++count) text << 'x';
  CHECK(std::string_view{text.c_str()} == std::string(1023, 'x'));
  text << "yz";
  CHECK(std::string_view{text.c_str()} == std::string(1020, 'x') + "...");
}

} // namespace
