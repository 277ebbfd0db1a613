#!/usr/bin/env bash
# Formats the C++ files by .clang-format and the pages' JavaScript by .oxfmtrc.json, and fixes what ruff can fix in the
# Python files.
source "$(dirname "$0")/lib.sh"

cd "$root"
scripts/check_format.sh >/dev/null 2>&1 && formatted=0 || formatted=$?
[ $formatted != 77 ] || die "clang-format 14 is not installed" "make lint installs it if the distribution has it"
find src include examples tests bench \( -name '*.cc' -o -name '*.h' -o -name '*.c' \) 2>/dev/null |
  xargs -r "$(command -v clang-format-14 || command -v clang-format)" -i
"$venv/bin/oxfmt" web/*/*.js
"$venv/bin/ruff" check --fix --quiet .
"$venv/bin/ruff" format --quiet .
