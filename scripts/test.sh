#!/usr/bin/env bash
# Everything `make test` and .ci/run do: set up, build, C++ tests, Python tests. Both suites always run; the last
# lines are the closing lines of the two test runners.
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
"$venv/bin/python3" -m pytest 2>&1 </dev/null | tee "$logs/pytest.log" || status=1

echo
[ $status = 0 ] || say "some tests failed; logs are in $logs"
grep -E 'tests? passed.*out of|^No tests' "$logs/ctest.log" | tail -n 1 || true
tail -n 1 "$logs/pytest.log"
exit $status
