#pragma once

#if !defined(__cpp_exceptions)
#include <cstdio>
#include <cstdlib>
#endif

namespace stowage::inline v0_1::detail {

/// Throws `Error(text)`. Plans alone compile without exceptions (-fno-exceptions): there this prints the text and
/// aborts. In a constant expression neither compiles.
template <class Error> [[noreturn]] inline void raise(const char* text) {
#if defined(__cpp_exceptions)
  throw Error(text);
#else
  std::fprintf(stderr, "%s\n", text);
  std::abort();
#endif
}

} // namespace stowage::inline v0_1::detail
