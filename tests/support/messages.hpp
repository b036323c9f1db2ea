#pragma once

// What an exception says, for tests of messages.

#include <string>
#include <string_view>

namespace test {

/// What `call` throws; empty where it throws nothing of that type.
template <class Error, class Call> std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

} // namespace test
