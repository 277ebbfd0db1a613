#!/usr/bin/env bash
# How far predictions can be trusted: a tenth of the exam (docs/accuracy.md). Needs a quiet machine. Arguments replace
# the default ones of bench/accuracy/exam.py; what is finished already is not measured again.
source "$(dirname "$0")/lib.sh"

cd "$root"
scripts/setup.sh test
scripts/build.sh release fullbore
scripts/build.sh release fb_loader_python
if [ $# = 0 ]; then set -- run --part 1/10; fi
"$venv/bin/python3" bench/accuracy/exam.py "$@"
