#!/usr/bin/env bash
# ctest.sh PRESET [ARGUMENT...]: the C++ tests of a built preset.
source "$(dirname "$0")/lib.sh"

preset="${1:?which preset: release, dev, asan or tsan}"
shift
exec "$(cmake_directory)/ctest" --test-dir "$root/build/$preset" --output-on-failure --no-tests=error \
  --timeout 300 -j "${JOBS:-$(nproc)}" "$@"
