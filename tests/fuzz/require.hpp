#pragma once

#include <cstdio>
#include <cstdlib>

namespace fuzz {

/// Ends the program where something that must hold does not: the fuzzer then keeps the input.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

} // namespace fuzz
