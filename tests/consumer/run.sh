#!/usr/bin/env bash
# Builds and runs main.cpp as users of the library do, each way in a clean folder: run.sh WAY...
#   installed         find_package(stowage CONFIG) of an installation
#   subdirectory      add_subdirectory
#   fetch_content     FetchContent from a git repository
#   pkg_config        pkg-config, from an installation that was moved
#   single_header     the header that scripts/single_header.py makes
#   conan             the Conan recipe, with the machine's Boost: that it gets Boost from a remote is not tested
#   vcpkg             the vcpkg port, by the stand-in for vcpkg in vcpkg_shim.cmake
#   installed_cuda, single_header_cuda    the same for main.cu; NVCC names the compiler
#   pkg_config_cuda                       a C++ program with the CUDA backend
# CMAKE and CXX name the programs to use. Ends with 77 where the tools for a way are missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
root=$(cd "$here/../.." && pwd -P)
cmake=${CMAKE:-cmake}
cxx=${CXX:-g++}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
work="$scratch/a path with spaces"
strict=(-std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)

skip() {
  echo "SKIPPED: $*"
  exit 77
}

# copy_of_tree FOLDER: the files of the source tree, without what was built in it.
copy_of_tree() {
  mkdir -p "$1"
  (cd "$root" && tar -c --exclude=./build --exclude=./.git .) | tar -x -C "$1"
}

# install_to PREFIX OPTION...: no tests, examples or benchmarks: an installation needs none of their packages.
install_to() {
  "$cmake" -S "$root" -B "$work/stowage" -DSTOWAGE_BUILD_TESTS=OFF -DSTOWAGE_BUILD_EXAMPLES=OFF \
    -DSTOWAGE_BUILD_BENCHMARKS=OFF "${@:2}"
  "$cmake" --install "$work/stowage" --prefix "$1"
}

# use PROJECT OPTION...: builds and runs one of the projects beside this script.
use() {
  local project=$work/$1
  mkdir -p "$work"
  cp -r "$here/$1" "$here/main.cpp" "$here/main.cu" "$work"
  "$cmake" -S "$project" -B "$project/build" "${@:2}"
  "$cmake" --build "$project/build"
  "$project/build/consumer"
}

need_nvcc() {
  [[ -n ${NVCC-} ]] || skip "no nvcc"
}

use_installed() {
  install_to "$work/prefix" -DSTOWAGE_CUDA=OFF
  use installed -DCMAKE_PREFIX_PATH="$work/prefix"
}

use_installed_cuda() {
  need_nvcc
  install_to "$work/prefix" -DSTOWAGE_CUDA=OFF # the CUDA part needs nothing of the installer's machine
  use installed_cuda -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CUDA_COMPILER="$NVCC"
}

use_subdirectory() {
  use subdirectory -DSTOWAGE_SOURCE="$root"
}

use_fetch_content() {
  command -v git >/dev/null || skip "no git"
  local git=(git -C "$work/repository" -c user.name=test -c user.email=test -c commit.gpgsign=false)
  copy_of_tree "$work/repository"
  "${git[@]}" init -q
  "${git[@]}" add -A
  "${git[@]}" commit -q -m "The tree under test"
  use fetch_content -DSTOWAGE_REPOSITORY="file://$work/repository" \
    -DSTOWAGE_TAG="$("${git[@]}" symbolic-ref --short HEAD)"
}

# flags_of PACKAGE: its compiler and linker options into the array `flags`. A shell reads them: folders have spaces.
flags=()
flags_of() {
  local text
  command -v pkg-config >/dev/null || skip "no pkg-config"
  text=$(PKG_CONFIG_PATH="$work/moved/share/pkgconfig" pkg-config --cflags --libs "$1")
  eval "flags=($text)"
}

use_pkg_config() {
  install_to "$work/prefix" -DSTOWAGE_CUDA=OFF
  mv "$work/prefix" "$work/moved"
  flags_of stowage
  "$cxx" "${strict[@]}" "$here/main.cpp" "${flags[@]}" -o "$work/consumer"
  "$work/consumer"
}

use_pkg_config_cuda() {
  need_nvcc
  install_to "$work/prefix" -DSTOWAGE_CUDA=ON
  mv "$work/prefix" "$work/moved"
  flags_of stowage-cuda
  cat >"$work/device.cpp" <<'CODE'
#include <stowage/cuda/backend.hpp>
int main() {
  try {
    stowage::cuda::backend device(0);
  } catch (const stowage::backend_error&) { // no GPU
  }
}
CODE
  "$cxx" -std=c++20 "$work/device.cpp" "${flags[@]}" -o "$work/consumer"
  LD_LIBRARY_PATH=$(PKG_CONFIG_PATH="$work/moved/share/pkgconfig" pkg-config --variable=cuda_libdir stowage-cuda) \
    "$work/consumer"
}

make_single_header() {
  python3 "$root/scripts/single_header.py" "$work/single"
  PYTHONHASHSEED=1 python3 "$root/scripts/single_header.py" "$work/again"
  diff -r "$work/single" "$work/again" # the same sources, the same bytes
}

use_single_header() {
  make_single_header
  "$cxx" "${strict[@]}" -DSINGLE_HEADER -I "$work/single" "$here/main.cpp" -o "$work/consumer"
  "$work/consumer"
  # The forward arena too.
  printf '#include "stowage-llm.hpp"\nstowage::llm::forward_params params;\nint main() {}\n' >"$work/llm.cpp"
  "$cxx" "${strict[@]}" -I "$work/single" -fsyntax-only "$work/llm.cpp"
}

use_single_header_cuda() {
  need_nvcc
  make_single_header
  "$NVCC" -std=c++20 -arch=sm_75 -Werror all-warnings -DSINGLE_HEADER -I "$work/single" "$here/main.cu" \
    -cudart shared -o "$work/consumer"
  "$work/consumer"
}

use_conan() {
  source "$root/scripts/packages.sh"
  local conan
  conan=$(want_conan "$root/build/conan") || skip "no conan, and none could be installed"
  copy_of_tree "$work/tree"
  export CONAN_HOME=$scratch/conan # nothing in the user's own
  CXX=$cxx CC="" "$conan" profile detect
  "$conan" create "$work/tree/packaging/conan" --no-remote -s compiler.cppstd=20 \
    -c tools.cmake.cmaketoolchain:generator=Ninja -o 'stowage/*:system_boost=True'
}

use_vcpkg() {
  mkdir -p "$work"
  "$cmake" -DPORT_FOLDER="$root/packaging/vcpkg/ports/stowage" -DCURRENT_PACKAGES_DIR="$work/packages" \
    -DBUILD_FOLDER="$work/build" -P "$here/vcpkg_shim.cmake"
  use installed -DCMAKE_PREFIX_PATH="$work/packages"
}

(($# > 0)) || set -- installed subdirectory fetch_content pkg_config single_header conan vcpkg \
  installed_cuda pkg_config_cuda single_header_cuda
for way in "$@"; do
  declare -F "use_$way" >/dev/null || {
    echo "run.sh: no way '$way'" >&2
    exit 2
  }
  "use_$way"
done
