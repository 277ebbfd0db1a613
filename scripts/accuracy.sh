#!/usr/bin/env bash
# How far predictions can be trusted: applies what the reports recommend and measures again. Needs a quiet machine.
source "$(dirname "$0")/lib.sh"

cd "$root"
scripts/setup.sh test
scripts/build.sh release fullbore
"$venv/bin/python3" bench/accuracy/fixes.py "$@"
