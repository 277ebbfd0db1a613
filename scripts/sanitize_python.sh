#!/usr/bin/env bash
# sanitize_python.sh asan|tsan: runs the loader's Python tests with the engine built under that sanitizer, and
# tests/loader/stress_python.py, which runs only here; and the tests of the hook's extension. Python itself is not
# instrumented, so the sanitizer's runtime is preloaded. Every process writes its own report file, and any report is a
# failure, even if a test does not notice how its child process ended.
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
    # Python's own allocator would hide overflows within its blocks. The C++ tests look for leaks: Python leaks memory
    # at exit, and only slow stack unwinding, ten times slower, could tell that from ours. No forks: this libasan's
    # allocator may stay locked in the child of a process with threads.
    settings=(PYTHONMALLOC=malloc "ASAN_OPTIONS=$options:detect_leaks=0" "UBSAN_OPTIONS=$options:print_stacktrace=1")
    chosen=(-k "not fork")
    of_hook=("${chosen[@]}")
    ;;
  tsan)
    runtime=libtsan.so
    settings=("TSAN_OPTIONS=$options:suppressions=$root/scripts/sanitizers/thread.supp:die_after_fork=0")
    # Its allocator, too, may stay locked in the child of a process with threads, which this test forks most often.
    chosen=(-k "not forked_in_the_middle")
    # Not those that train: torch's own threads are not instrumented.
    of_hook=(-k "serves or side_by_side or daemon or wrong_arguments or control_c")
    ;;
  *) die "no preset with a sanitizer: '$preset'" "asan or tsan" ;;
esac

# Also preload libstdc++: the runtime looks up __cxa_throw when it starts, and Python does not have it.
compiler="$(cxx_compiler)"
preload="$("$compiler" -print-file-name=$runtime) $("$compiler" -print-file-name=libstdc++.so)"

cd "$root"
status=0

# No faulthandler: it would catch a crash before the sanitizer sees it.
sanitized() {
  env LD_PRELOAD="$preload" "${settings[@]}" FULLBORE_TEST_PACKAGE="$package" \
    FULLBORE_TEST_BINARY="$root/build/$preset/fullbore" FULLBORE_TEST_NATIVE="$root/build/$preset/hook_native" \
    "$venv/bin/python3" -m pytest -q -p no:faulthandler "$@" </dev/null || status=1
}
sanitized "${chosen[@]}" tests/loader/test_python_*.py tests/loader/stress_python.py
sanitized "${of_hook[@]}" tests/hook/test_native.py
if compgen -G "$reports/*" >/dev/null; then
  cat "$reports"/*
  say "the sanitizer's reports are in ${reports#"$root/"}"
  status=1
fi
exit $status
