#!/usr/bin/env bash
# gpu_check.sh [ARGUMENT...]: bench/gpu_check with the build of this checkout or, if WHEEL names one (scripts/wheel.sh), with
# what that installs, which needs neither a compiler nor a network. PYTHON is the one that has torch (default: python3).
source "$(dirname "$0")/lib.sh"

cd "$root"
python="${PYTHON:-python3}"
if [ -z "${WHEEL:-}" ]; then
  scripts/setup.sh build
  scripts/build.sh release fullbore >&2
  PYTHONPATH="$root/build/release/python" exec "$python" bench/gpu_check --python "$python" "$@"
fi
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
"$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --target "$place" "$WHEEL"
PYTHONPATH="$place" "$python" bench/gpu_check --python "$python" --fullbore "$place/bin/fullbore" "$@"
