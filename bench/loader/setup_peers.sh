#!/usr/bin/env bash
# Installs the loaders that ours is compared with into a separate Python environment:
#
#   setup_peers.sh [DIR]       (default: build/peers-venv)
#
# What cannot be installed is named and left out; run.py then leaves it out too. Debian's torch and torchvision are used
# if /usr/bin/python3 has them. What wheels do not include (OpenCV's headers for FFCV, FFmpeg for SPDL) is unpacked
# below DIR from Debian's packages, so the system does not change.
set -euo pipefail

here="$(cd "$(dirname "$0")" && pwd)"
target="${1:-$here/../../build/peers-venv}"
mkdir -p "$(dirname "$target")"
[ -x "$target/bin/python3" ] || python3 -m venv "$target"
target="$(cd "$target" && pwd)"
python="$target/bin/python3"
log="$target/setup.log"
: >"$log"

left_out() { printf 'left out: %s (%s; %s)\n' "$1" "$2" "$log" >&2; }
install() { "$python" -m pip install --quiet --disable-pip-version-check "$@" >>"$log" 2>&1; }

# unpack PACKAGE...: Debian packages into $target/system, without installing them.
unpack() {
  command -v apt-get >/dev/null || return 1
  mkdir -p "$target/debs" "$target/system"
  (cd "$target/debs" && apt-get download "$@" && for package in ./*.deb; do dpkg -x "$package" ../system; done) >>"$log" 2>&1
  rm -rf "$target/debs"
}

# what PACKAGE needs beyond what is installed, itself included
missing_for() { apt-get install --simulate --no-install-recommends "$1" 2>/dev/null | awk '/^Inst/{print $2}'; }

torch_for_cpu() {
  "$python" -c 'import torch' 2>/dev/null && return
  install torch --index-url https://download.pytorch.org/whl/cpu || install torch
}

spdl() {
  install spdl
  ldconfig -p | grep -q libavdevice.so || mapfile -t packages < <(missing_for libavdevice59)
  [ -z "${packages[*]-}" ] || unpack "${packages[@]}"
}

# FFCV needs OpenCV's C++ headers and asks pkg-config for all of OpenCV, but uses only core and imgproc.
ffcv() {
  "$python" -c 'import ffcv' 2>/dev/null && return
  install numba opencv-python-headless assertpy fastargs terminaltables tqdm psutil setuptools wheel
  if ! pkg-config --exists opencv4; then
    unpack libopencv-core-dev libopencv-imgproc-dev libopencv-core406 libopencv-imgproc406
    local root="$target/system/usr" libraries
    libraries="$(dirname "$(find "$root" -name 'libopencv_core.so' | head -1)")"
    printf '#define HAVE_OPENCV_CORE\n#define HAVE_OPENCV_IMGPROC\n' >"$root/include/opencv4/opencv2/opencv_modules.hpp"
    mkdir -p "$target/pkgconfig"
    printf 'Name: opencv4\nDescription: core and imgproc\nVersion: 4.6\nLibs: -L%s -lopencv_imgproc -lopencv_core\nCflags: -I%s\n' \
      "$libraries" "$root/include/opencv4" >"$target/pkgconfig/opencv4.pc"
    export PKG_CONFIG_PATH="$target/pkgconfig"
  fi
  install --no-build-isolation --no-deps ffcv
}

# One peer: runs its steps, then imports it; says so if either fails.
peer() {
  local name="$1" import="$2"
  shift 2
  if ! "$@"; then left_out "$name" "did not install"; return 0; fi
  LD_LIBRARY_PATH="$(find "$target/system" -name '*.so*' -printf '%h\n' 2>/dev/null | sort -u | paste -sd:)" \
    "$python" -c "$import" >>"$log" 2>&1 || { left_out "$name" "does not start"; return 0; }
  printf 'ready: %s\n' "$name"
}

install numpy pillow
peer "torch" "import torch" torch_for_cpu
peer "spdl" "import spdl.io; spdl.io.demux_image" spdl
peer "dali" "import nvidia.dali.fn" install nvidia-dali-cuda120
peer "tf.data" "import tensorflow" install tensorflow-cpu
peer "webdataset" "import webdataset" install webdataset
peer "ffcv" "import ffcv.loader" ffcv
/usr/bin/python3 -c 'import torch, torchvision, PIL' 2>/dev/null || left_out "torchvision" "apt: python3-torchvision"
