#!/usr/bin/env bash
# Builds the fuzz targets of tests/fuzz and runs them. Fails on any crash or leak, or if an input takes more than 10 s or
# 2 GB; that input is kept in build/fuzz/findings.
#
#   fuzz.sh [SECONDS [TARGET...]]        runs each target that long (default 60), starting from fresh seeds and what
#                                        earlier runs found; 0 runs each existing input once
#   fuzz.sh --inputs COUNT [TARGET...]   runs COUNT inputs, from the seeds alone and the same every time: the tests do
#                                        this to get the same result every day
#   fuzz.sh --build                      only builds the targets and their seeds
#   fuzz.sh --check                      only says whether fuzzing can run here
#
# Several may run at once, as long as no two fuzz the same target.
source "$(dirname "$0")/lib.sh"

# Prints a clang++ that can link libFuzzer, or nothing.
fuzzing_compiler() {
  local candidate
  for candidate in clang++ clang++-{19..14}; do
    command -v "$candidate" >/dev/null || continue
    if printf 'extern "C" int LLVMFuzzerTestOneInput(const char*, long) { return 0; }' |
      "$candidate" -x c++ -fsanitize=fuzzer,address - -o /dev/null 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
}

compiler="$(fuzzing_compiler)"
[ -n "$compiler" ] || die "no clang++ with libFuzzer" "apt-get install clang libclang-rt-14-dev"
[ "${1:-}" != --check ] || exit 0

# Builds the targets and writes their seeds, while nobody else does.
build() {
  mkdir -p build
  exec {lock}>build/fuzz.lock
  flock "$lock"
  [ -f build/fuzz/build.ninja ] ||
    "$(cmake_directory)/cmake" --preset fuzz -DCMAKE_CXX_COMPILER="$compiler" >/dev/null
  "$(cmake_directory)/cmake" --build --preset fuzz -- ${JOBS:+-j "$JOBS"} >build/fuzz/build.log 2>&1 || {
    cat build/fuzz/build.log >&2
    die "the fuzz targets do not build"
  }
  if [ "$programs/fuzz_seeds" -nt build/fuzz/seeds.written ]; then
    "$programs/fuzz_seeds" build/fuzz/seeds
    touch build/fuzz/seeds.written
  fi
  exec {lock}>&-
}

cd "$root"
programs=build/fuzz/tests/fuzz
[ "${1:-}" != --build ] || {
  build
  exit 0
}

inputs=
if [ "${1:-}" = --inputs ]; then
  inputs="${2:-}"
  [[ "$inputs" =~ ^[0-9]+$ ]] || die "fuzz.sh --inputs takes a number, not '$inputs'" "scripts/fuzz.sh --inputs 1000 tar"
  shift 2
  set -- 0 "$@"
fi
seconds="${1:-60}"
[[ "$seconds" =~ ^[0-9]+$ ]] || die "fuzz.sh takes seconds, not '$seconds'" "scripts/fuzz.sh 60 kineto"
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(kineto bytes nsys memory run run_rows facts columns channel jpeg png webp npy s3_list http_headers cache
  cgroup mcp tar tar_index tfrecord list hdf5)

build
mkdir -p build/fuzz/findings
status=0
for target in "${targets[@]}"; do
  [ -x "$programs/${target}_fuzz" ] || die "no fuzz target '$target'" "one of tests/fuzz/*_fuzz.cc"
  found="build/fuzz/corpus/$target"
  at=()
  if [ -n "$inputs" ]; then
    say "fuzzing $target with $inputs inputs"
    found="build/fuzz/same/$target"
    rm -rf "$found"
    ! setarch -R true 2>/dev/null || at=(setarch -R)  # which inputs count as new depends on addresses
    limit=(-runs="$inputs" -seed=1 -reload=0 -timeout=300)  # a hang, on any machine
  else
    say "fuzzing $target for $seconds s"
    limit=(-max_total_time="$seconds" -timeout=10)
    [ "$seconds" != 0 ] || limit=(-runs=0 -timeout=10)
  fi
  mkdir -p "$found"
  "${at[@]}" "$programs/${target}_fuzz" "${limit[@]}" -rss_limit_mb=2048 -max_len=65536 -print_funcs=0 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/findings/$target-" \
    "$found" "build/fuzz/seeds/$target" >"build/fuzz/$target.log" 2>&1 || {
    tail -n 40 "build/fuzz/$target.log" >&2
    say "$target failed; its input is in build/fuzz/findings, its output in build/fuzz/$target.log"
    status=1
  }
  sed -n 's/^stat::number_of_executed_units: */  inputs tried: /p' "build/fuzz/$target.log"
done
exit $status
