#!/usr/bin/env bash
# Installs fullbore in each of its three ways into a temporary place and checks that the program runs there and hands
# its own installed hook to Python, not the one of this source tree. Takes minutes: no part of `make test`.
source "$(dirname "$0")/lib.sh"

cd "$root"
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
unset FULLBORE_HOOK_DIR PYTHONPATH
version="$(cat VERSION)"

# check HOW PREFIX PYTHON: what every way of installing must give.
check() {
  local how="$1" prefix="$2" python="$3" said hook
  said="$("$prefix/bin/fullbore" --version)"
  [[ "$said" == *"$version"* ]] || die "$how: --version says '$said', VERSION says '$version'"
  [[ "$("$prefix/bin/fullbore" help input-bound)" == *input-bound* ]] || die "$how: help knows no findings"
  # Beside the installed hook, the source tree's must not be reached: the first directory of PYTHONPATH counts.
  hook="$("$prefix/bin/fullbore" run --quiet -o "$place/runs" -- "$python" -c \
    'import os; print(os.environ["PYTHONPATH"].split(":")[0])')"
  [[ "$(realpath "$hook")" == "$(realpath "$prefix")"/* ]] ||
    die "$how: the hook is taken from '$hook', not from '$prefix'"
  [ -f "$hook/sitecustomize.py" ] || die "$how: '$hook' holds no sitecustomize.py"
  say "ok: $how"
}

python3 -m venv "$place/venv"
"$place/venv/bin/pip" install -qq --disable-pip-version-check "$root"
"$place/venv/bin/python" -c 'import fullbore.hook' || die "pip: the package fullbore cannot be imported"
check "pip install ." "$place/venv" "$place/venv/bin/python"

scripts/build.sh release fullbore
"$(cmake_directory)/cmake" --install build/release --prefix "$place/prefix" >/dev/null
check "cmake --install" "$place/prefix" python3

deb="$(scripts/package.sh)"
[[ "$(dpkg-deb --field "$deb" Depends)" == *libsqlite3* ]] || die "deb: does not depend on libsqlite3"
dpkg-deb --extract "$deb" "$place/deb"
check "the Debian package" "$place/deb/usr" python3
