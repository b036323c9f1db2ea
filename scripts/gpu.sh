#!/usr/bin/env bash
# The tests, the examples and the benchmarks on a GPU.
#   bash scripts/gpu.sh --build   builds them into build/gpu (optimised, for compute capability 9.0, and PTX for others);
#                                 needs nvcc, no GPU
#   bash scripts/gpu.sh --run     runs what is in build/gpu/bin: the tests, the tests again under compute-sanitizer, the
#                                 benchmark; needs a GPU, no compiler. build/gpu/bin can be built on another machine
#   bash scripts/gpu.sh           both
# Logs, zero_passes.csv, zero_passes.json and elastic.json go to $OUT, or else to ./gpu-logs. The last lines are a table.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
build=$root/build/gpu
bin=$build/bin
programs=(stowage_cuda_tests_cpp stowage_cuda_tests_cu example_cuda_graph_decode_loop example_cuda_zeroing_experiment
  example_cuda_take_turns stowage_dlpack_cuda_library bench_cuda_zero_passes bench_cuda_elastic example_cuda_kernels)

build_programs() {
  local nvcc library
  nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) || {
    echo "gpu.sh: no nvcc" >&2
    return 2
  }
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CUDA_COMPILER="$nvcc" "-DCMAKE_CUDA_ARCHITECTURES=90-real;75-virtual" \
    -DCMAKE_CUDA_RUNTIME_LIBRARY=Static -DCMAKE_RUNTIME_OUTPUT_DIRECTORY="$bin" -DCMAKE_LIBRARY_OUTPUT_DIRECTORY="$bin" -DSTOWAGE_CUDA=ON \
    -DSTOWAGE_BUILD_EXAMPLES=ON -DSTOWAGE_BUILD_BENCHMARKS=ON >"$build.log" 2>&1 || {
    cat "$build.log" >&2
    return 1
  }
  cmake --build "$build" -j "${JOBS:-$(nproc)}" --target "${programs[@]}" || return
  # Google Benchmark goes along where it is a shared library.
  library=$(ldd "$bin/bench_cuda_zero_passes" | awk '$1 ~ /^libbenchmark\./ { print $3 }')
  if [[ -f $library ]]; then cp -L "$library" "$bin/"; fi
  du -sh "$bin"
}

failed=0
table=()

note() {
  local line
  printf -v line '%-8s %-28s %s' "$1" "$2" "$3"
  table+=("$line")
  printf '%s\n' "$line"
}

# step NAME SECONDS COMMAND...: runs a command with a limit of time; its output goes to a log and, if it fails, here.
step() {
  local name=$1 limit=$2 log start status last
  shift 2
  log=$logs/${name// /-}.log
  start=$(date +%s.%N)
  timeout "$limit" "$@" >"$log" 2>&1
  status=$?
  local took
  took=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f s", b - a }')
  last=$(grep -a -E 'test cases:|ERROR SUMMARY|RACECHECK SUMMARY|^(right|wrong)$' "$log" | tail -n 2 | tr -s ' ' |
    paste -sd ';' | cut -c1-150)
  if grep -q 'Device not supported' "$log"; then
    note skipped "$name" "$took  compute-sanitizer: Device not supported"
    return
  fi
  case $status in
    0) note passed "$name" "$took  $last" ;;
    77) note skipped "$name" "$took  $(tail -n 1 "$log")" ;;
    *)
      failed=$((failed + 1))
      [[ $status -ne 124 ]] || last="ran longer than $limit s; $last"
      note FAILED "$name" "$took  status $status  $last"
      grep -a -n -E 'ERROR|WRONG|SKIPPED|=========|is NOT correct' "$log" | head -n 40
      tail -n 20 "$log"
      ;;
  esac
}

run_programs() {
  local sanitizer kind tests
  logs=${OUT:-$PWD/gpu-logs}
  mkdir -p "$logs" || return 2
  export LD_LIBRARY_PATH=$bin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  nvidia-smi --query-gpu=index,name,driver_version,memory.total --format=csv,noheader 2>/dev/null

  for kind in cpp cu; do
    tests=$bin/stowage_cuda_tests_$kind
    step "tests $kind" 240 "$tests"
    # In a process of its own, so that nothing before it has loaded the kernel.
    step "first capture $kind" 60 "$tests" "--test-case=graph first*"
  done
  step "decode loop" 60 "$bin/example_cuda_graph_decode_loop"
  step "dlpack torch" 60 python3 "$root/tests/cuda/python/dlpack_torch.py" "$bin/libstowage_dlpack_cuda_library.so"
  step "zeroing experiment" 60 "$bin/example_cuda_zeroing_experiment"
  step "take turns" 60 "$bin/example_cuda_take_turns"
  step "kernels" 60 "$bin/example_cuda_kernels"

  sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
  if [[ -z $sanitizer ]]; then
    note skipped "compute-sanitizer" "SKIPPED: not installed"
  else
    # Errors of calls are the subject of some tests, so they are no errors of the program. Fewer replays: each is slow.
    local check=(env STOWAGE_CUDA_REPLAYS=50 "$sanitizer" --report-api-errors no --error-exitcode 1)
    for kind in cpp cu; do
      tests=$bin/stowage_cuda_tests_$kind
      step "memcheck $kind" 100 "${check[@]}" --tool memcheck "$tests" \
        "--test-case-exclude=*beyond 4 GiB*,*fails once on the device*,*other processes*,*guard zones on the device*"
      step "racecheck $kind" 60 "${check[@]}" --tool racecheck "$tests" \
        "--test-case-exclude=*beyond 4 GiB*,*1 to 300 segments*,*thousands of replays*,elastic:*"
    done
    # Only kernels that read can read what was never written; these tests have them.
    step "initcheck cu" 60 "${check[@]}" --tool initcheck "$bin/stowage_cuda_tests_cu" "--test-case=views in kernels*"
    step "memcheck decode loop" 60 "${check[@]}" --tool memcheck "$bin/example_cuda_graph_decode_loop"
  fi

  step "benchmark" 120 "$bin/bench_cuda_zero_passes" --csv="$logs/zero_passes.csv" \
    --benchmark_out="$logs/zero_passes.json" --benchmark_out_format=json

  step "benchmark elastic" 200 "$bin/bench_cuda_elastic" \
    --benchmark_out="$logs/elastic.json" --benchmark_out_format=json
  grep -a -E '^(sleep|resize|passes)' "$logs/benchmark-elastic.log" | tr -s ' '

  if [[ -f $logs/zero_passes.csv ]]; then
    printf '\n'
    highlights "$logs/zero_passes.csv"
  fi
  printf '\n'
  printf '%s\n' "${table[@]}"
  printf '%s failed; logs in %s\n' "$failed" "$logs"
  ((failed == 0))
}

# highlights CSV: what the benchmark's table says of M = 4096, in a few lines; the log has all of it.
highlights() {
  awk -F, '
    NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i
              printf "%-14s %-7s %-6s %8s %10s %10s %10s %10s %11s %6s\n", "model", "mode", "calls", "tokens", "MB",
                     "hand us", "ours us", "memset us", "hand/ours", "TB/s"; next }
    $column["capacity"] == 4096 && ($column["tokens"] == 8 || $column["tokens"] == 128 || $column["tokens"] == 4096) {
      hand = $column["hand_us"]; ours = $column["ours_us"]
      printf "%-14s %-7s %-6s %8s %10.2f %10.2f %10.2f %10.2f %11.2f %6.2f  ours/memset %.3f\n", $column["model"],
             $column["mode"], $column["calls"], $column["tokens"], $column["bytes"] / 1e6, hand, ours,
             $column["memset_us"], hand / ours, $column["bytes"] / ours / 1e6, ours / $column["memset_us"] }
  ' "$1"
  grep -a -E '^(allocation|enqueue)' "${1%.csv}.notes" 2>/dev/null
}

case ${1-} in
  --build) build_programs ;;
  --run) run_programs ;;
  "") build_programs && run_programs ;;
  *)
    echo "usage: bash scripts/gpu.sh [--build | --run]" >&2
    exit 2
    ;;
esac
