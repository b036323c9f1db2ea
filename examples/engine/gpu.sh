#!/usr/bin/env bash
# The engine on a machine with a GPU, which may have neither a network nor this project's packages.
#   bash examples/engine/gpu.sh --build            builds tests, program and benchmark into build/engine-gpu/bin; needs nvcc,
#                                                  no GPU. The programs run on any x86-64 of the last ten years
#   bash examples/engine/gpu.sh --split FILE DIR   cuts a model into DIR/model.part-aa, -ab, ... of 48 MiB, for transfers
#                                                  that are limited; --join DIR FILE puts them together and checks the sum
#   bash examples/engine/gpu.sh --run [FILE]       runs the tests with the small random model, then tests, text and
#                                                  benchmark with FILE, or with what STOWAGE_ENGINE_MODEL names
# Output of each step goes to $OUT, or else to ./gpu-logs; the last lines are a summary.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
build=$root/build/engine-gpu
bin=$build/bin

build_programs() {
  local nvcc
  nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) || {
    echo "gpu.sh: no nvcc" >&2
    return 2
  }
  cmake -S "$root" -B "$build/stowage" -G Ninja -DSTOWAGE_BUILD_TESTS=OFF -DSTOWAGE_BUILD_EXAMPLES=OFF \
    -DSTOWAGE_BUILD_BENCHMARKS=OFF >/dev/null &&
    cmake --install "$build/stowage" --prefix "$build/prefix" >/dev/null &&
    cmake -S "$root/examples/engine" -B "$build/engine" -G Ninja -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_PREFIX_PATH="$build/prefix" -DSTOWAGE_ENGINE_CPU=OFF -DSTOWAGE_ENGINE_CUDA=ON \
      -DSTOWAGE_ENGINE_MARCH=x86-64-v3 -DCMAKE_CUDA_COMPILER="$nvcc" "-DCMAKE_CUDA_ARCHITECTURES=90-real;75-virtual" \
      -DCMAKE_CUDA_RUNTIME_LIBRARY=Static -DCMAKE_RUNTIME_OUTPUT_DIRECTORY="$bin" >/dev/null &&
    cmake --build "$build/engine" -j "${JOBS:-$(nproc)}" &&
    cp "$build/engine/tests/tiny.gguf" "$bin/" &&
    cp "$root"/examples/engine/tests/reference*.py "$bin/" && du -sh "$bin"
}

# cuBLAS, where it is not on the loader's path: the toolkit's, or that of a Python package.
find_cublas() {
  local folder
  ldconfig -p 2>/dev/null | grep -q libcublas.so.13 && return
  for folder in /usr/local/cuda/lib64 /usr/local/cuda-13*/lib64 \
    $(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"] + "/nvidia/cu13/lib")' 2>/dev/null); do
    if [[ -e $folder/libcublas.so.13 ]]; then
      export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
      return
    fi
  done
  echo "gpu.sh: libcublas.so.13 was not found; put its folder in LD_LIBRARY_PATH" >&2
}

failed=0 summary=()
# step NAME COMMAND...: runs a command of at most two minutes; its output goes to a log, and its end here.
step() {
  local name=$1 start=$SECONDS status
  shift
  timeout 120 "$@" >"$logs/engine-$name.log" 2>&1
  status=$?
  ((status == 0)) || failed=$((failed + 1))
  summary+=("$(printf '%-18s %-8s %s s' "$name" "$( ((status == 0)) && echo passed || echo "status $status")" $((SECONDS - start)))")
  echo "--- $name"
  tail -n "${lines:-12}" "$logs/engine-$name.log"
}

run_programs() {
  logs=${OUT:-$PWD/gpu-logs}
  mkdir -p "$logs"
  find_cublas
  local model=${1:-${STOWAGE_ENGINE_MODEL-}}
  lines=40 STOWAGE_ENGINE_MODEL=$bin/tiny.gguf step tiny-tests "$bin/stowage_engine_cuda_tests"
  step tiny-reference python3 "$bin/reference_test.py" "$bin/stowage-engine-cuda" "$bin/tiny.gguf" --cuda
  if command -v compute-sanitizer >/dev/null; then
    STOWAGE_ENGINE_MODEL=$bin/tiny.gguf step memcheck compute-sanitizer --error-exitcode 1 \
      "$bin/stowage_engine_cuda_tests" "--test-case=the same prompt*"
  fi
  if [[ -n $model ]]; then
    export STOWAGE_ENGINE_MODEL=$model
    step reference python3 "$bin/reference_test.py" "$bin/stowage-engine-cuda" "$model" --cuda
    step text "$bin/stowage-engine-cuda" --tokens 100 "Write a short story about a robot who learns to paint."
    lines=60 step bench "$bin/stowage-engine-bench-cuda"
    lines=40 step tests "$bin/stowage_engine_cuda_tests"
  fi
  printf '\n'
  printf '%s\n' "${summary[@]}"
  ((failed == 0))
}

case ${1-} in
  --build) build_programs ;;
  --split) mkdir -p "$3" && split -b 48M "$2" "$3/model.part-" && (cd "$3" && sha256sum <"$2" >model.sum && ls -l) ;;
  --join) cat "$2"/model.part-* >"$3" && sha256sum <"$3" | diff - "$2/model.sum" && echo "$3 is whole" ;;
  --run) run_programs "${2-}" ;;
  *)
    echo "usage: bash examples/engine/gpu.sh --build | --split FILE DIR | --join DIR FILE | --run [FILE]" >&2
    exit 2
    ;;
esac
