#include <stowage/error.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace {

using namespace std::string_literals;

template <class Base, class Error> bool caught_as(const Error& error) {
  try {
    throw error;
  } catch (const Base& base) {
    return base.what() == std::string_view{error.what()};
  } catch (...) {
    return false;
  }
}

TEST_CASE("error: each type is caught by its standard base, with its message") {
  CHECK(caught_as<std::overflow_error>(stowage::size_error("stowage: a")));
  CHECK(caught_as<std::runtime_error>(stowage::size_error("stowage: a")));
  CHECK(caught_as<std::out_of_range>(stowage::bounds_error("stowage: b")));
  CHECK(caught_as<std::logic_error>(stowage::bounds_error("stowage: b")));
  CHECK(caught_as<std::logic_error>(stowage::usage_error("stowage: c")));
  CHECK(caught_as<std::runtime_error>(stowage::backend_error("stowage: d", 7)));
  CHECK(caught_as<std::bad_alloc>(stowage::out_of_memory(1, "e")));
  CHECK(caught_as<std::exception>(stowage::out_of_memory(1, "e")));
  CHECK_FALSE(caught_as<std::runtime_error>(stowage::usage_error("stowage: c")));
  static_assert(std::is_nothrow_copy_constructible_v<stowage::out_of_memory>);
}

TEST_CASE("error: a backend error carries the native code") {
  CHECK(stowage::backend_error("stowage: d", 719).code() == 719);
  CHECK(stowage::backend_error("stowage: d").code() == 0);
}

TEST_CASE("error: out of memory says how much was wanted, and cuts a long reason") {
  const stowage::out_of_memory error(1048576, "the device has 4096 bytes left");
  CHECK(error.bytes() == 1048576);
  CHECK(error.what() == "stowage: out of memory: 1048576 bytes wanted: the device has 4096 bytes left"s);

  const stowage::out_of_memory cut(18446744073709551615u, std::string(1000, 'x'));
  CHECK(std::strlen(cut.what()) == 255);
  CHECK(std::string_view{cut.what()}.substr(0, 62) ==
        "stowage: out of memory: 18446744073709551615 bytes wanted: xxx");
}

TEST_CASE("status: success, and the first failure of a series") {
  stowage::status result;
  CHECK(result.ok());
  CHECK(result);
  CHECK(result.message() == "ok");
  CHECK(result.error().operation.empty());

  result.merge({}, "keys");
  CHECK(result.ok());
  result.merge(stowage::failure{"deallocate", "", 719, "made to fail", 512}, "values");
  CHECK_FALSE(result.ok());
  CHECK(result.error().subject == "values");
  CHECK(result.message() == "deallocate of 'values' (512 bytes) failed with code 719: made to fail");

  result.merge(stowage::failure{"zero", "", 1, "later", 1}, "states");
  CHECK(result.error().subject == "values");
  CHECK(result.error().code == 719);

  stowage::status named;
  named.merge(stowage::failure{"unmap", "heap", 0, "", 4096}, "values");
  CHECK(named.message() == "unmap of 'heap' (4096 bytes) failed");
}

} // namespace
