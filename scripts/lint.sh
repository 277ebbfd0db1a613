#!/usr/bin/env bash
# clang-format, oxfmt and ruff on everything, clang-tidy on what differs from the main branch (ALL=1: on everything).
source "$(dirname "$0")/lib.sh"

cd "$root"
status=0
say "clang-format"
scripts/check_format.sh || status=1

say "oxfmt"
"$venv/bin/oxfmt" --check web/*/*.js || status=1

say "ruff"
"$venv/bin/ruff" check . || status=1
"$venv/bin/ruff" format --check --quiet . || status=1

ours=('src/*.cc' 'examples/*.cc')  # with the headers that they include
base="$(git merge-base HEAD origin/main 2>/dev/null || git rev-parse HEAD)"
if [ -n "${ALL:-}" ]; then
  mapfile -t sources < <(git ls-files "${ours[@]}")
else
  mapfile -t sources < <({ git diff --name-only --diff-filter=d "$base" -- "${ours[@]}"
                           git ls-files --others --exclude-standard "${ours[@]}"; } | sort -u)
fi
say "clang-tidy, ${#sources[@]} files"
if [ ${#sources[@]} -gt 0 ]; then
  "$(cmake_directory)/cmake" --preset dev >/dev/null  # writes compile_commands.json
  # The build uses gcc, and clang does not know all of its warning options.
  printf '%s\0' "${sources[@]}" | xargs -0 -n 4 -P 2 clang-tidy -p build/dev --quiet --warnings-as-errors='*' \
    --extra-arg=-Wno-unknown-warning-option || status=1
fi
exit $status
