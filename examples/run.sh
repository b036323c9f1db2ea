#!/usr/bin/env bash
# The planner. Without arguments it is the demo; with arguments, these go to the planner unchanged:
#   bash examples/run.sh --help
# Builds the planner where need be. Standard output is the planner's alone, and so is the exit status.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
build=$root/build/planner
planner=$build/examples/stowage
source "$root/scripts/packages.sh"

build_planner() {
  if ! is_configured "$build"; then
    configure "$build" -S "$root" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSTOWAGE_CUDA=OFF \
      -DSTOWAGE_BUILD_TESTS=OFF -DSTOWAGE_BUILD_BENCHMARKS=OFF -DSTOWAGE_WARNINGS_AS_ERRORS=OFF || return
  fi
  cmake --build "$build" --target stowage_planner_cli
}

if [[ ! -x $planner ]]; then
  need_packages "${planner_packages[@]}"
  echo "Building the planner" >&2
fi
mkdir -p "$build"
# One build at a time, where several of these start together.
if ! log=$({ ! command -v flock >/dev/null || flock 9; build_planner; } 9>"$build/lock" 2>&1 </dev/null); then
  printf '%s\n' "$log" "The planner could not be built." >&2
  exit 1
fi

if (($# == 0)); then
  cd "$root"
  set -- run examples/configs/qwen3-next-80b-a3b.json
  echo "\$ stowage $*" >&2
fi
exec "$planner" "$@"
