#!/usr/bin/env bash
# Lists the C++ files that clang-format would change. Versions format differently, so only version 14 counts; without it
# the script exits with 77, which the tests count as skipped.
source "$(dirname "$0")/lib.sh"

formatter="$(command -v clang-format-14 || command -v clang-format || true)"
if [ -z "$formatter" ] || [[ "$("$formatter" --version)" != *"version 14."* ]]; then
  say "skipped: clang-format 14 is not installed"
  exit 77
fi
cd "$root"
mapfile -t sources < <(find src include examples tests bench \( -name '*.cc' -o -name '*.h' -o -name '*.c' \) 2>/dev/null | sort)
status=0
for source in "${sources[@]}"; do
  if ! "$formatter" --dry-run --Werror "$source" 2>/dev/null; then
    echo "$source: differs from .clang-format"
    status=1
  fi
done
[ $status = 0 ] || printf 'hint: make format\n' >&2
exit $status
