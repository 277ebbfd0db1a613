#!/usr/bin/env bash
# The demo of a fleet (scripts/fleet_demo.py), with all that it needs installed and built.
source "$(dirname "$0")/lib.sh"

cd "$root"
[ "$(id -u)" = 0 ] || die "slurmd starts jobs as their users, and so the demo must be root's" "sudo make fleet-demo"
scripts/setup.sh fleet
scripts/build.sh release fullbore
exec python3 scripts/fleet_demo.py "$@"
