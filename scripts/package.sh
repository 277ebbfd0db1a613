#!/usr/bin/env bash
# Builds the Debian packages of the release build: build/release/fullbore_<version>_<architecture>.deb, and fullbore-dev_...
# with the loader for C++ programs. Prints the path of the first on standard output.
source "$(dirname "$0")/lib.sh"

cd "$root"
scripts/setup.sh build
scripts/build.sh release fullbore >&2  # standard output has only the package's path
scripts/build.sh release fullbore_loader >&2
if grep -q '^build fb_loader_python' build/release/build.ninja; then
  scripts/build.sh release fb_loader_python >&2
fi
(cd build/release && "$(cmake_directory)/cpack" -G DEB >cpack.log 2>&1) || {
  cat build/release/cpack.log >&2
  die "cpack failed"
}
ls build/release/fullbore_*.deb
