#!/usr/bin/env bash
# All tests: bash tests/run.sh [--quick]
# Every compiler on this machine builds and runs what its preset says, then come the checks of the sources.
# --quick: g++ only. Goes on after a failure; the last line counts steps and tests. Logs are in build/logs.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
source "$root/scripts/packages.sh"

quick=false
case ${1-} in
  "") ;;
  --quick) quick=true ;;
  *)
    echo "usage: bash tests/run.sh [--quick]" >&2
    exit 2
    ;;
esac

cd "$root" || exit 2
logs=$root/build/logs
mkdir -p "$logs" || exit 2

passed=0 failed=0 skipped=0
summary=()

# note STATE NAME DETAIL: counts a step and prints its line.
note() {
  local line
  printf -v line '%-8s %-24s %s' "$1" "$2" "$3"
  printf '%s\n' "$line"
  summary+=("$line")
}

# step NAME COMMAND...: runs a command; its output is shown if it fails.
step() {
  local name=$1 start=$SECONDS log
  shift
  log=$logs/${name// /-}.log
  if "$@" >"$log" 2>&1; then
    passed=$((passed + 1))
    note passed "$name" "$((SECONDS - start)) s"
  else
    failed=$((failed + 1))
    tail -n 200 "$log"
    note FAILED "$name" "$((SECONDS - start)) s; the whole output is in ${log#"$root"/}"
    return 1
  fi
}

skip() {
  skipped=$((skipped + 1))
  note skipped "$1" "$2"
}

build() {
  configure "$root/build/$1" -S "$root" --preset "$1" && cmake --build --preset "$1" -j "$(nproc)" -- -k 0
}

# ctest_preset PRESET: runs its tests and counts each.
ctest_preset() {
  local start=$SECONDS report=$logs/$1.xml status counts
  rm -f "$report"
  ctest --preset "$1" -j "$(nproc)" --output-junit "$report"
  status=$?
  if ! read -r -a counts < <(python3 scripts/junit_counts.py "$report") || ((${#counts[@]} != 3)); then
    counts=(0 0 0)
  fi
  # Whatever the report says, a failure of CTest itself is one.
  ((status != 0 && counts[1] == 0)) && counts[1]=1
  passed=$((passed + counts[0])) failed=$((failed + counts[1])) skipped=$((skipped + counts[2]))
  local state=passed
  ((counts[1] == 0)) || state=FAILED
  note $state "$1 tests" "$((SECONDS - start)) s; ${counts[0]} passed, ${counts[1]} failed, ${counts[2]} skipped"
}

# thread_tests: the tests with several threads, under ThreadSanitizer; none of the others.
thread_tests() {
  configure "$root/build/tsan" -S "$root" --preset tsan -DSTOWAGE_BUILD_EXAMPLES=OFF &&
    cmake --build --preset tsan -j "$(nproc)" --target stowage_thread_tests &&
    ctest --preset tsan -R '^threads$' --no-tests=error
}

# preset NAME: builds and tests a preset of CMakePresets.json.
preset() {
  step "$1 build" build "$1" && ctest_preset "$1"
}

# Sources in the format of .clang-format: what git knows or could add, or all where this is no clone.
check_format() {
  {
    git ls-files -z --cached --others --exclude-standard -- '*.hpp' '*.cpp' '*.cu' 2>/dev/null ||
      find . -path ./build -prune -o -type f \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' \) -print0
  } | while IFS= read -r -d '' file; do
    [[ ! -f $file ]] || printf '%s\0' "$file" # deleted, but not yet in the index
  done | xargs -0 -r clang-format-19 --dry-run -Werror 2>&1 | sed -n '/: error: \|^Error/p'
}

# The headers, all in one file, and the programs that instantiate them, against .clang-tidy. The headers of the CUDA
# part need the toolkit's.
check_tidy() {
  local all=$root/build/tidy/headers.cpp options=(-std=c++20 -I "$root/include") without=stowage/cuda toolkit source
  if [[ -n $nvcc ]]; then
    toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
    options+=(-isystem "$toolkit/include" -isystem "$toolkit/include/cccl")
    without=
  fi
  mkdir -p "$root/build/tidy"
  (cd include && find stowage -path "$without" -prune -o -name '*.hpp' -print) | LC_ALL=C sort |
    sed 's/.*/#include <&>/' >"$all"
  for source in "$all" tests/consumer/main.cpp examples/*.cpp; do
    [[ ! -e $source ]] || printf '%s\0' "$source"
  done | xargs -0 -P "$(nproc)" -I '{}' clang-tidy-19 --quiet '{}' -- "${options[@]}"
}

# The documentation: what is shown of code is compiled, pictures are as drawn and as the headers are, every public name
# has a comment, and no link leads nowhere.
check_docs() {
  python3 docs/check_snippets.py && python3 docs/images/make_diagrams.py --check || return 1
  rm -rf build/reference
  mkdir -p build
  doxygen docs/doxygen/Doxyfile && python3 docs/check_links.py build/reference/html
}

# README's demo command: it works, and prints something.
check_demo() {
  local output
  output=$(bash examples/run.sh) && printf '%s\n' "$output" && [[ -n $output ]]
}

if $quick; then
  need_packages "${gcc_packages[@]}"
else
  need_packages "${test_packages[@]}"
  want_packages "${browser_packages[@]}"
  want_packages "${counting_packages[@]}"
fi

preset gcc

if ! $quick; then
  preset clang-19
  preset clang-16
  preset asan
  step tsan thread_tests

  nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
  if [[ -n $nvcc ]]; then
    export CUDACXX=$nvcc
    preset cuda
    if [[ $("$nvcc" --version) == *"release 13.0,"* ]]; then
      step "embedded ptx" env NVCC="$nvcc" bash scripts/embed_ptx.sh --check
    else
      skip "embedded ptx" "SKIPPED: another release of nvcc than 13.0 writes other PTX"
    fi
  else
    skip cuda "SKIPPED: no nvcc"
  fi

  # What the presets leave out: other standards, levels of optimisation, a newer Boost, nvcc with clang.
  step toolchains python3 scripts/toolchains.py --quick
  step format check_format
  step tidy check_tidy
  step docs check_docs
  if [[ -f examples/planner/main.cpp ]]; then
    step demo check_demo
  else
    skip demo "SKIPPED: no planner"
  fi
fi

printf '\nSummary, %s s in all\n' "$SECONDS"
printf '%s\n' "${summary[@]}"
printf '\n%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
((failed == 0))
