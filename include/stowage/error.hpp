#pragma once

#include <stowage/detail/cold.hpp>
#include <stowage/text.hpp>

#include <cstddef>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

namespace stowage::inline v0_1 {

/// A size could not be computed: overflow, a result below zero, a division by zero, a negative input. The
/// message names the field, its formula and the operands.
class size_error : public std::overflow_error {
public:
  using std::overflow_error::overflow_error;
};

/// Something larger than its capacity was asked for: rows beyond a field, a name that no field has.
class bounds_error : public std::out_of_range {
public:
  using std::out_of_range::out_of_range;
};

/// A call that the state of the object does not allow: a pass on a released arena, an allocation during
/// capture.
class usage_error : public std::logic_error {
public:
  using std::logic_error::logic_error;
};

/// A backend's device call failed.
class backend_error : public std::runtime_error {
public:
  /// From a whole message and the native error code.
  explicit backend_error(const std::string& message, int code = 0)
      : std::runtime_error(message), code_(code) {}
  /// The native error code, 0 where the backend has none.
  [[nodiscard]] int code() const noexcept { return code_; }

private:
  int code_;
};

/// An allocation failed. Keeps its message in itself: there may be no memory for a string.
class out_of_memory : public std::bad_alloc {
public:
  /// `bytes` were wanted; `reason` says who refused them and why. Long reasons are cut.
  out_of_memory(std::size_t bytes, std::string_view reason) noexcept : bytes_(bytes) {
    text_writer writer{message_, sizeof(message_) - 1};
    writer << "stowage: out of memory: " << bytes << " bytes wanted: " << reason;
  }
  /// The message; cut at 255 characters.
  [[nodiscard]] const char* what() const noexcept override { return message_; }
  /// Bytes of the allocation that failed.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

private:
  char message_[256]{};
  std::size_t bytes_;
};

/// What failed, for operations that report by value. Holds no heap memory; the texts are static.
struct failure {
  /// The operation, such as "deallocate".
  std::string_view operation{};
  /// The field or resource it was done for; "slab" for the one allocation. Filled in by the arena.
  std::string_view subject{};
  /// Native error code and its name, 0 and empty where the backend has none.
  int code = 0;
  /// Name or text of the error.
  std::string_view reason{};
  /// Size of the memory concerned.
  std::size_t bytes = 0;
  /// The label of the resource in a teardown; empty outside.
  std::string_view label{};
  /// Nothing was done, since the moment does not allow it: the same call can be made later.
  bool refused = false;
};

/// The result of an operation that never throws: success, or the first failure.
class [[nodiscard]] status {
public:
  /// Success.
  constexpr status() = default;
  /// That failure.
  constexpr status(const failure& what) : failed_(true), failure_(what) {}

  /// Whether nothing failed.
  [[nodiscard]] constexpr bool ok() const noexcept { return !failed_; }
  /// The same.
  explicit constexpr operator bool() const noexcept { return ok(); }
  /// The failure; all fields empty on success.
  [[nodiscard]] constexpr const failure& error() const noexcept { return failure_; }

  /// Keeps the first failure of a series; names its subject when the failing operation did not.
  constexpr void merge(const status& later, std::string_view subject) noexcept {
    if (failed_ || !later.failed_) return;
    *this = later;
    if (failure_.subject.empty()) failure_.subject = subject;
  }

  /// The same result under the label of a resource.
  [[nodiscard]] constexpr status labelled(std::string_view label) const noexcept {
    status result = *this;
    if (failed_) result.failure_.label = label;
    return result;
  }

  /// A line for a log: what failed, for which field, how large, why.
  [[nodiscard]] STOWAGE_NOINLINE std::string message() const {
    if (ok()) return "ok";
    detail::message text;
    if (!failure_.label.empty()) text << failure_.label << ": ";
    text << failure_.operation;
    if (!failure_.subject.empty())
      text << " of '" << failure_.subject << "' (" << failure_.bytes << " bytes)";
    text << " failed";
    if (failure_.code < 0) text << " with code -" << std::size_t{0} - static_cast<std::size_t>(failure_.code);
    if (failure_.code > 0) text << " with code " << static_cast<std::size_t>(failure_.code);
    if (!failure_.reason.empty()) text << ": " << failure_.reason;
    return text.c_str();
  }

private:
  bool failed_ = false;
  failure failure_{};
};

} // namespace stowage::inline v0_1
