#!/usr/bin/env bash
# sanitize_python.sh asan|tsan: the Python tests of the loader with the engine built under that sanitizer, and
# tests/loader/stress_python.py, which runs only here. Python itself is not instrumented, so the sanitizer's runtime is
# loaded in front of it. Every process reports into a file of its own, and any report is a failure: a test need not see
# how its child processes end.
source "$(dirname "$0")/lib.sh"

preset="${1:?which preset: asan or tsan}"
package="$root/build/$preset/python"
compgen -G "$package/fullbore/data/_core*.so" >/dev/null ||
  die "the Python extension is not built for $preset" "scripts/setup.sh test, then scripts/build.sh $preset"

reports="$root/build/$preset/python-reports"
rm -rf "$reports"
mkdir -p "$reports"
options="log_path=$reports/report:exitcode=66"

case "$preset" in
  asan)
    runtime=libasan.so
    # Python's own allocator would hide overflows within its blocks. Leaks are looked for by the C++ tests: Python leaves
    # memory behind, and only stacks taken the slow way, ten times as slow, could tell that from ours. No forks: this
    # libasan's allocator may stay locked in the child of a process with threads.
    settings=(PYTHONMALLOC=malloc "ASAN_OPTIONS=$options:detect_leaks=0" "UBSAN_OPTIONS=$options:print_stacktrace=1")
    chosen=(-k "not fork")
    ;;
  tsan)
    runtime=libtsan.so
    settings=("TSAN_OPTIONS=$options:suppressions=$root/scripts/sanitizers/thread.supp:die_after_fork=0")
    chosen=()
    ;;
  *) die "no preset with a sanitizer: '$preset'" "asan or tsan" ;;
esac

# libstdc++ beside it: the runtime looks for __cxa_throw when it starts, and Python has none.
compiler="$(cxx_compiler)"
preload="$("$compiler" -print-file-name=$runtime) $("$compiler" -print-file-name=libstdc++.so)"

cd "$root"
status=0

# No faulthandler: it would take a crash before the sanitizer sees it.
env LD_PRELOAD="$preload" "${settings[@]}" FULLBORE_TEST_PACKAGE="$package" \
  FULLBORE_TEST_BINARY="$root/build/$preset/fullbore" \
  "$venv/bin/python3" -m pytest -q -p no:faulthandler "${chosen[@]}" \
  tests/loader/test_python_*.py tests/loader/stress_python.py </dev/null || status=1
if compgen -G "$reports/*" >/dev/null; then
  cat "$reports"/*
  say "the sanitizer's reports are in ${reports#"$root/"}"
  status=1
fi
exit $status
