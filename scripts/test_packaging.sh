#!/usr/bin/env bash
# Installs fullbore in each of the four ways into a temporary directory and checks that the program runs there and
# gives Python its own installed hook, not the one of this source tree. Takes minutes: not part of `make test`.
source "$(dirname "$0")/lib.sh"

cd "$root"
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
unset FULLBORE_HOOK_DIR PYTHONPATH
version="$(cat VERSION)"

# check HOW PREFIX PYTHON: what every way of installing must provide.
check() {
  local how="$1" prefix="$2" python="$3" said hook loaded
  said="$("$prefix/bin/fullbore" --version)"
  [[ "$said" == *"$version"* ]] || die "$how: --version says '$said', VERSION says '$version'"
  [[ "$("$prefix/bin/fullbore" help input-bound)" == *input-bound* ]] || die "$how: help knows no findings"
  [ -f "$prefix/share/man/man1/fullbore-run.1" ] || die "$how: the manual pages are missing"
  [ -f "$prefix/share/bash-completion/completions/fullbore" ] || die "$how: the completion for bash is missing"
  # The installed hook must be used, not the source tree's: the first directory of PYTHONPATH counts.
  hook="$("$prefix/bin/fullbore" run --quiet -o "$place/runs" -- "$python" -c \
    'import os; print(os.environ["PYTHONPATH"].split(":")[0])')"
  [[ "$(realpath "$hook")" == "$(realpath "$prefix")"/* ]] ||
    die "$how: the hook is taken from '$hook', not from '$prefix'"
  [ -f "$hook/sitecustomize.py" ] || die "$how: '$hook' holds no sitecustomize.py"
  compgen -G "$hook/../core/_native*.so" >/dev/null || die "$how: the hook's extension is not beside the hook"
  loaded="$(PYTHONPATH="$hook/.." "$python" -W error::RuntimeWarning -c 'from core import native; print(native.PATH)')"
  [ "$loaded" = native ] || die "$how: the hook's extension does not load"
  say "ok: $how"
}

# loads_data HOW PYTHON: the extension is installed and reads data. Here as in check, a free-threaded Python that
# switches its lock on for an extension warns of it.
loads_data() {
  "$2" -W error::RuntimeWarning - "$place" <<'PY' || die "$1: fullbore.data does not load and read"
import pathlib, sys
from fullbore.data import FileList
place = pathlib.Path(sys.argv[1])
(place / "list.csv").write_text("path,label,text\na,1,first\nb,2,second\n")
batch = next(iter(FileList(place / "list.csv", batch_size=2, shuffle=False, fields=["label", "text"])))
assert list(batch[0]) == [1, 2] and batch[1] == ["first", "second"], batch
PY
}

# sees_all_steps COUNT: that a report, in train.json, knows of: how many of them were a warm-up depends on the machine.
sees_all_steps() {
  python3 - "$place/train.json" "$1" <<'PY'
import json, sys
window = json.load(open(sys.argv[1]))["window"]
sys.exit(window["steps"] + window["warmup_steps"] != int(sys.argv[2]))
PY
}

python3 -m venv "$place/venv"
"$place/venv/bin/pip" install -qq --disable-pip-version-check "$root"
"$place/venv/bin/python" -c 'import fullbore.hook' || die "pip: the package fullbore cannot be imported"
loads_data "pip install ." "$place/venv/bin/python"
check "pip install ." "$place/venv" "$place/venv/bin/python"

# The wheel, as users install it: in a clean environment of each Python here, without a compiler.
readonly most_bytes=15000000 most_s=30  # what weighs what: "The wheel's size" in docs/measurements.md
wheel="$(scripts/wheel.sh)"
bytes="$(stat -c %s "$wheel")"
[ "$bytes" -lt "$most_bytes" ] || die "the wheel is of $bytes bytes, more than $most_bytes"
cat >"$place/train.py" <<'PY'
import time
import fullbore

for _ in fullbore.watch(range(200)):
    time.sleep(0.005)
    fullbore.step()
PY
while read -r python; do
  clean="$place/clean-$(basename "$(dirname "$(dirname "$python")")")"
  "$python" -m venv "$clean"
  SECONDS=0
  "$clean/bin/pip" install -qq --disable-pip-version-check "$wheel"
  PATH="$clean/bin:$PATH" fullbore run -o "$place/runs" --json "$place/train.json" --force -- python "$place/train.py" \
    >"$place/said" 2>&1 && sees_all_steps 200 || die "wheel: not all steps with $python: $(cat "$place/said")"
  took_s="$SECONDS"
  [ "$took_s" -lt "$most_s" ] || die "wheel: $took_s s from pip install to the verdict with $python"
  loads_data "wheel" "$clean/bin/python"
  check "wheel of $((bytes / 1000000)) MB, $("$python" --version), in $took_s s" "$clean" "$clean/bin/python"
done < <(pythons)

scripts/setup.sh test
scripts/build.sh release fullbore
scripts/build.sh release fb_loader_python
"$(cmake_directory)/cmake" --install build/release --prefix "$place/prefix" >/dev/null
PYTHONPATH="$place/prefix/share/fullbore/python" loads_data "cmake --install" "$venv/bin/python3"
check "cmake --install" "$place/prefix" python3

deb="$(scripts/package.sh)"
for library in libsqlite3 libjpeg libwebp libhdf5 libcurl; do
  [[ "$(dpkg-deb --field "$deb" Depends)" == *"$library"* ]] || die "deb: does not depend on $library"
done
dpkg-deb --extract "$deb" "$place/deb"
PYTHONPATH="$place/deb/usr/share/fullbore/python" loads_data "the Debian package" "$venv/bin/python3"
check "the Debian package" "$place/deb/usr" python3
find "$place/deb" -type f \( -path '*/bin/fullbore' -o -name '_core*.so' \) -exec scripts/check_hardening.sh {} +
say "ok: the Debian package is hardened"
scripts/test_debian_package.sh "$deb"

dev="${deb/fullbore_/fullbore-dev_}"
[[ "$(dpkg-deb --field "$dev" Depends)" == *libfmt-dev* ]] || die "deb: fullbore-dev does not depend on libfmt-dev"
dpkg-deb --extract "$dev" "$place/dev"
"$(cmake_directory)/cmake" -S examples/loader -B "$place/example" -DCMAKE_PREFIX_PATH="$place/dev/usr" \
  -DCMAKE_CXX_COMPILER="$(cxx_compiler)" >/dev/null
"$(cmake_directory)/cmake" --build "$place/example" >/dev/null || die "fullbore-dev: the example does not build"
say "ok: the Debian package fullbore-dev"
