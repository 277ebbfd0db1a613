#!/usr/bin/env bash
# Regenerates the reports of tests/golden with the current build; look at the diff before committing it.
source "$(dirname "$0")/lib.sh"

cd "$root/tests/golden"
for run in *.fbr; do
  "$root/build/release/fullbore" explain "$run" --quiet --json "${run%.fbr}.json.new"
  python3 - "$run" "${run%.fbr}.json" <<'PY'
import json, os, sys
run, path = sys.argv[1:]
report = json.load(open(path + ".new"))
report["source"] = run
with open(path, "w") as out:
    json.dump(report, out, indent=1, ensure_ascii=False)
    out.write("\n")
os.unlink(path + ".new")
PY
done
git --no-pager diff --stat -- .
