#!/usr/bin/env bash
# Everything `make test` does: set up, build, C++ tests, Python tests. Both suites always run; the last lines are the
# summaries of the test runners.
source "$(dirname "$0")/lib.sh"

cd "$root"
scripts/setup.sh test
scripts/build.sh release

logs="build/release/test-logs"
mkdir -p "$logs"
status=0

say "C++ tests"
scripts/ctest.sh release 2>&1 | tee "$logs/ctest.log" || status=1

say "Python tests"
python_tests "$logs/pytest.log" --durations=30 --durations-min=5 -n "${JOBS:-$(nproc)}" --dist worksteal \
  -m "not alone and not long and not rounds" || status=1
say "Python tests that measure, one after another"
python_tests "$logs/pytest-alone.log" -m "alone and not long and not rounds" || status=1

echo
[ $status = 0 ] || say "some tests failed; logs are in $logs"
grep -E 'tests? passed.*out of|^No tests' "$logs/ctest.log" | tail -n 1 || true
tail -q -n 1 "$logs/pytest-alone.log" "$logs/pytest.log"
exit $status
