#!/usr/bin/env bash
# Installs the trackers that tests/trackers sends runs to, into build/trackers; quick when nothing is missing. Without
# them these tests are skipped.
source "$(dirname "$0")/lib.sh"

cd "$root"
place="build/trackers"
wanted="scripts/requirements-trackers.txt"
if ! cmp -s "$wanted" "$place/installed.txt"; then
  say "pip install into $place, for the tests of trackers: $(grep -v '^#' "$wanted" | xargs)"
  python3 -m venv --clear "$place"
  "$place/bin/pip" install -qq --disable-pip-version-check -r "$wanted" </dev/null
  cp "$wanted" "$place/installed.txt" # last: an interrupted installation does not count
fi
