#!/usr/bin/env bash
# Installs the trackers that tests/trackers sends runs to, into build/trackers; quick when nothing is missing. Without
# them these tests are skipped.
source "$(dirname "$0")/lib.sh"

cd "$root"
install_apart build/trackers scripts/requirements-trackers.txt "the tests of trackers"
