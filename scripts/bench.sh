#!/usr/bin/env bash
# Runs every benchmark of bench/: the C++ programs, then the Python scripts. Each prints a ratio to a peer or to a
# limit, so that the figures mean something even on a noisy machine.
source "$(dirname "$0")/lib.sh"

cd "$root"
[ -d bench ] || die "there are no benchmarks here: bench/ is missing"
scripts/setup.sh test
scripts/build.sh release
while IFS= read -r -d '' program; do
  say "${program#build/release/}"
  "$program"
done < <(find build/release/bench -maxdepth 2 -type f -executable -name '*_bench' -print0 | sort -z)
if [ "$(uname -m)" = x86_64 ]; then  # the ceiling needs AVX2
  say "bench/loader/run.py --short (peers: bench/loader/setup_peers.sh; the whole comparison: run.py without --short)"
  "$venv/bin/python3" bench/loader/run.py --short
fi
for script in bench/*.py; do
  [ -f "$script" ] || continue
  say "$script"
  "$venv/bin/python3" "$script"
done
