#!/usr/bin/env bash
# Builds and runs two small projects that use the library as its users do: found where it is installed, and as a
# subdirectory. CMAKE and CXX name the programs to use.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
root=$(cd "$here/../.." && pwd -P)
cmake=${CMAKE:-cmake}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
work="$scratch/a path with spaces"

# No tests, examples or benchmarks: an installation needs none of their packages.
"$cmake" -S "$root" -B "$work/stowage" -DSTOWAGE_BUILD_TESTS=OFF -DSTOWAGE_BUILD_EXAMPLES=OFF \
  -DSTOWAGE_BUILD_BENCHMARKS=OFF
"$cmake" --install "$work/stowage" --prefix "$work/prefix"

# use PROJECT OPTION...: builds and runs one of them.
use() {
  local project=$work/$1
  cp -r "$here/$1" "$project"
  "$cmake" -S "$project" -B "$project/build" "${@:2}"
  "$cmake" --build "$project/build"
  "$project/build/consumer"
}

use installed -DCMAKE_PREFIX_PATH="$work/prefix"
use subdirectory -DSTOWAGE_SOURCE="$root"
