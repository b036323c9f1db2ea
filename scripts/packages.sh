# shellcheck shell=bash
# Sourced by the project's scripts: the Debian packages they need, and a build folder's configuration. Messages go to
# standard error.

# What building and running the planner takes.
planner_packages=(g++ cmake ninja-build libboost1.81-dev nlohmann-json3-dev libcli11-dev)

# What the engine example takes, without its tests.
# shellcheck disable=SC2034
engine_packages=(g++ cmake ninja-build libboost1.81-dev libopenblas-dev python3 python3-pip)

# What the tests with g++ take.
gcc_packages=("${planner_packages[@]}" libopenblas-dev python3 python3-numpy python3-venv git pkg-config doctest-dev
  libbenchmark-dev libdlpack-dev)

# What the memory map is looked at with, where it can be had: 132 MB to load, 18 s. Its tests skip themselves without.
# shellcheck disable=SC2034
browser_packages=(chromium chromium-driver python3-selenium)

# What executed instructions are counted with, where it can be had. Its tests skip themselves without.
# shellcheck disable=SC2034
counting_packages=(valgrind)

# What all tests take.
# shellcheck disable=SC2034
test_packages=("${gcc_packages[@]}" clang-16 clang-19 libclang-rt-19-dev clang-format-19 clang-tidy-19 doxygen)

# compiles CODE: whether g++ takes it.
compiles() {
  g++ -x c++ -std=c++20 -fsyntax-only - <<<"$1" 2>/dev/null
}

# has_numpy: whether one of the Pythons that the tests look at has numpy.
has_numpy() {
  python3 -c 'import numpy' 2>/dev/null || /usr/bin/python3 -c 'import numpy' 2>/dev/null
}

# has_package PACKAGE: whether what a package brings is there, wherever it came from.
has_package() {
  case $1 in
    ninja-build) command -v ninja ;;
    clang-16 | clang-19) command -v "clang++-${1#clang-}" ;;
    libboost1.81-dev)
      compiles $'#include <boost/pfr/core.hpp>\n#include <boost/version.hpp>\nstatic_assert(BOOST_VERSION >= 108100);' ;;
    nlohmann-json3-dev) compiles '#include <nlohmann/json_fwd.hpp>' ;;
    libcli11-dev) compiles '#include <CLI/Version.hpp>' ;;
    doctest-dev) compiles '#include <doctest/doctest.h>' ;;
    libbenchmark-dev) compiles '#include <benchmark/benchmark.h>' ;;
    libdlpack-dev) compiles '#include <dlpack/dlpack.h>' ;;
    libopenblas-dev) compiles '#include <cblas.h>' ;;
    python3-numpy) has_numpy ;;
    python3-venv) python3 -c 'import ensurepip, venv' 2>/dev/null ;;
    python3-pip) python3 -m pip --version ;;
    chromium-driver) command -v chromedriver ;;
    python3-selenium) /usr/bin/python3 -c 'import selenium' 2>/dev/null ;;
    libclang-rt-19-dev)
      clang++-19 -x c++ -fsanitize=address,undefined -o /dev/null - <<<'int main() {}' 2>/dev/null ;;
    *) command -v "$1" ;;
  esac >/dev/null
}

# missing_packages PACKAGE...: those of them that are not there, one a line.
missing_packages() {
  local package
  for package in "$@"; do
    has_package "$package" || printf '%s\n' "$package"
  done
}

# need_packages PACKAGE...: installs what is missing where it can; otherwise says what to install and ends the
# script with status 2.
need_packages() {
  local missing package log as_root=()
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]} == 0)) && return

  if [[ $EUID -ne 0 ]] && command -v sudo >/dev/null; then
    as_root=(sudo)
    [[ -t 0 ]] || as_root+=(-n) # nobody is there to type a password
  fi
  if command -v apt-get >/dev/null && { [[ $EUID -eq 0 ]] || "${as_root[@]:-false}" true 2>/dev/null; }; then
    echo "Installing ${missing[*]}" >&2
    log=$(mktemp)
    as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300)
    # An unreachable list of another package source is no reason to stop, nor a package that this release calls
    # otherwise; what is missing in the end is.
    {
      "${as_root[@]}" update
      "${as_root[@]}" install -y --no-install-recommends "${missing[@]}" ||
        for package in "${missing[@]/#libboost1.81-dev/libboost-dev}"; do
          "${as_root[@]}" install -y --no-install-recommends "$package"
        done
    } >"$log" 2>&1 </dev/null || true
    mapfile -t missing < <(missing_packages "$@")
    ((${#missing[@]} == 0)) || tail -n 20 "$log" >&2
    rm -f "$log"
  fi
  ((${#missing[@]} == 0)) && return
  echo "These packages (Debian's names) are missing, or others that bring the same: ${missing[*]}" >&2
  exit 2
}

# want_packages PACKAGE...: the same for what can be done without: what cannot be had stays away.
want_packages() {
  (need_packages "$@") 2>/dev/null || true
}

# want_conan FOLDER: prints the path of a Conan 2: the machine's, or one that pip installs into FOLDER. Fails where none
# can be had.
want_conan() {
  local conan
  if conan=$(command -v conan) && [[ $("$conan" --version) == *" version 2."* ]]; then
    printf '%s\n' "$conan"
    return
  fi
  if [[ ! -x $1/bin/conan ]]; then
    {
      python3 -m venv "$1" || return
      "$1/bin/pip" install --disable-pip-version-check "conan>=2,<3" || return
    } >&2
  fi
  printf '%s\n' "$1/bin/conan"
}

# is_configured FOLDER: whether a build folder was configured, and where it is now.
is_configured() {
  [[ -f $1/build.ninja ]] && grep -qxF "CMAKE_CACHEFILE_DIR:INTERNAL=$1" "$1/CMakeCache.txt" 2>/dev/null
}

# configure FOLDER OPTION...: runs cmake for a build folder. One that was configured in another place, because the
# tree was copied or mounted elsewhere, starts afresh.
configure() {
  local folder=$1 fresh=()
  shift
  is_configured "$folder" || fresh=(--fresh)
  cmake "${fresh[@]}" -B "$folder" "$@"
}
