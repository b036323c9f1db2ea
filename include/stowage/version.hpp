#pragma once

// The version of the library, for the preprocessor and for code.

// NOLINTBEGIN(modernize-macro-to-enum): the preprocessor knows no enumerations
/// First number of the version.
#define STOWAGE_VERSION_MAJOR 0
/// Second number.
#define STOWAGE_VERSION_MINOR 1
/// Third number.
#define STOWAGE_VERSION_PATCH 0
// NOLINTEND(modernize-macro-to-enum)

/// The version as one number, to compare in `#if`: major * 10000 + minor * 100 + patch.
#define STOWAGE_VERSION (STOWAGE_VERSION_MAJOR * 10000 + STOWAGE_VERSION_MINOR * 100 + STOWAGE_VERSION_PATCH)

// Every name lives in an inline namespace that carries the first two numbers, so that two translation units that
// include different minor versions fail to link instead of disagreeing about a layout in silence.
namespace stowage::inline v0_1 {

/// The three numbers of a version.
struct version_numbers {
  /// Changes with every break from 1.0 on.
  int major;
  /// Before 1.0, changes with every break.
  int minor;
  /// Changes with every other release.
  int patch;
};

/// The version of these headers.
inline constexpr version_numbers version{STOWAGE_VERSION_MAJOR, STOWAGE_VERSION_MINOR, STOWAGE_VERSION_PATCH};

} // namespace stowage::inline v0_1
