#!/usr/bin/env bash
# build.sh PRESET [TARGET]: configures if needed and builds, with the tools that setup.sh found or installed. Without a
# target it builds everything, tests included.
source "$(dirname "$0")/lib.sh"

preset="${1:?which preset: release, dev, asan or tsan}"
tools="$(cmake_directory)"
[ -n "$tools" ] || die "no CMake >= $cmake_wanted" "make setup"
CXX="$(cxx_compiler)"
[ -n "$CXX" ] || die "no g++ >= $gxx_wanted" "make setup"
export CXX

cd "$root"
# A build tree configured before .venv had nanobind lacks the Python extension.
extension_is_missing() {
  ! grep -q fb_loader_python "build/$preset/build.ninja" && [ -x "$venv/bin/python3" ] &&
    can_import "$venv/bin/python3" nanobind
}
if [ ! -f "build/$preset/build.ninja" ] || extension_is_missing; then
  mkdir -p "build/$preset"
  # Not a pipe: a failing configure must stay a failure and show its output.
  "$tools/cmake" --preset "$preset" >"build/$preset/configure.log" 2>&1 || {
    cat "build/$preset/configure.log" >&2
    rm -f "build/$preset/build.ninja"
    die "cmake could not configure the preset '$preset'" "make setup installs what is missing"
  }
fi
"$tools/cmake" --build --preset "$preset" ${2:+--target "$2"} -- ${JOBS:+-j "$JOBS"}
