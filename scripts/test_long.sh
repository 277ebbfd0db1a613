#!/usr/bin/env bash
# test_long.sh [MINUTES]: the Python tests that `make test` leaves out because they take long, in what it has built. With
# MINUTES, for a server: those that have not begun by then are skipped, and nothing compares measured times.
source "$(dirname "$0")/lib.sh"

cd "$root"
[ -x build/release/fullbore ] || die "nothing is built here" "make test"
logs="build/release/test-logs"
mkdir -p "$logs"
status=0

if [ -n "${1:-}" ]; then
  [[ "$1" =~ ^[0-9]+$ ]] || die "how many minutes is '$1'?" "scripts/test_long.sh 15"
  export FULLBORE_TEST_UNTIL=$(($(date +%s) + $1 * 60))
fi

say "Python tests that take long and measure, one after another"
python_tests "$logs/pytest-long-alone.log" -m "long and alone" || status=1
say "the others that take long"
python_tests "$logs/pytest-long.log" -n "${JOBS:-$(nproc)}" --dist worksteal -m "long and not alone" || status=1
if [ -n "${1:-}" ]; then
  left="$(cat "$logs"/pytest-long*.log | awk -F'[][]' '/^SKIPPED .*no time is left/ { n += $2 } END { print n + 0 }')"
  [ "$left" = 0 ] || say "not run, for lack of time: $left tests"
else
  say "comparisons of measured times"
  python_tests "$logs/pytest-rounds.log" -m rounds || status=1
fi
exit $status
