# Shared by the other scripts: where things are and which tools to use. Sourced, never run. shellcheck shell=bash
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
venv="$root/.venv"
readonly root venv
# ccache then knows a file again in another clone: paths below the root count as relative.
export CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1
# And caches what was compiled with the tests' precompiled headers.
export CCACHE_SLOPPINESS=pch_defines,time_macros

say() { printf 'fullbore: %s\n' "$*" >&2; }

# die TEXT [NEXT STEP]
die() {
  say "$1"
  [ -z "${2:-}" ] || printf 'hint: %s\n' "$2" >&2
  exit 1
}

# version_at_least HAVE WANTED
version_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

readonly cmake_wanted=3.25  # CMakePresets.json, version 6
readonly gxx_wanted=12      # C++20 as the sources use it

# Prints the directory of a cmake that is new enough, the distribution's first, or nothing.
cmake_directory() {
  local candidate version
  for candidate in /usr/bin/cmake "$(command -v cmake || true)" "$venv/bin/cmake"; do
    [ -x "$candidate" ] || continue
    version="$("$candidate" --version 2>/dev/null | sed -n 's/^cmake version \([0-9.]*\).*/\1/p')"
    if [ -n "$version" ] && version_at_least "$version" "$cmake_wanted"; then
      dirname "$candidate"
      return
    fi
  done
}

# Prints a g++ that is new enough ($CXX, the default one, or a versioned one), or nothing.
cxx_compiler() {
  local candidate version
  for candidate in ${CXX:-} g++ g++-14 g++-13 g++-12; do
    command -v "$candidate" >/dev/null || continue
    version="$("$candidate" -dumpfullversion 2>/dev/null || "$candidate" -dumpversion)"
    if [ "$candidate" = "${CXX:-}" ] || version_at_least "$version" "$gxx_wanted"; then
      command -v "$candidate"
      return
    fi
  done
}

# can_import PYTHON MODULE...: whether that interpreter finds these modules. It does not import them: importing torch
# takes seconds.
can_import() {
  local python="$1"
  shift
  "$python" - "$@" >/dev/null 2>&1 <<'PY'
import importlib.util, sys
sys.exit(any(importlib.util.find_spec(name) is None for name in sys.argv[1:]))
PY
}


# The Python that trains in the demo: $PYTHON, the one in .venv if it exists, else the user's own with torch.
demo_python() {
  local candidate
  for candidate in ${PYTHON:-} "$venv/bin/python3" python3; do
    if command -v "$candidate" >/dev/null && can_import "$candidate" torch numpy PIL; then
      command -v "$candidate"
      return
    fi
  done
}

# Prints a CPython of each version from 3.9 on, free-threaded ones too: those of $FULLBORE_PYTHONS (with colons between
# them), or what is in the PATH, pyenv's included. The one that stands first counts.
pythons() {
  local candidate kind
  local -A seen=()
  {
    if [ -n "${FULLBORE_PYTHONS:-}" ]; then
      tr ':' '\n' <<<"$FULLBORE_PYTHONS"
    else
      ls -d "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3 2>/dev/null || true
      compgen -c python3. | grep -E '^python3\.[0-9]+t?$' | sort -u || true
    fi
  } | while read -r candidate; do
    kind="$("$candidate" -c 'import ensurepip, sys, venv; assert sys.version_info >= (3, 9)
print("%d.%d" % sys.version_info[:2] + sys.abiflags)' 2>/dev/null)" || continue
    [ -z "${seen[$kind]:-}" ] || continue
    seen[$kind]=yes
    command -v "$candidate"
  done
}

# tools_at PLACE WANTED FOR [ARGUMENT...]: what the list WANTED names, from PyPI (pip gets the arguments) into a virtual
# environment of its own; quick when nothing is missing.
tools_at() {
  local place="$1" wanted="$2"
  ! cmp -s "$wanted" "$place/installed.txt" || return 0
  say "pip install into $place, for $3: $(grep -v '^#' "$wanted" | xargs)"
  python3 -m venv --clear "$place"
  "$place/bin/pip" install -qq --disable-pip-version-check -r "$wanted" "${@:4}" </dev/null
  cp "$wanted" "$place/installed.txt" # last: an interrupted installation does not count
}

# For machines without an NVIDIA GPU, PyTorch's own index has a build without 3 GB of CUDA libraries.
torch_index() {
  local index=https://download.pytorch.org/whl/cpu
  has_nvidia_gpu && return
  if python3 -c "import urllib.request as u; u.urlopen('$index/torch/', timeout=5)" 2>/dev/null; then
    echo "--index-url $index --extra-index-url https://pypi.org/simple"
  fi
}

has_nvidia_gpu() { compgen -G '/dev/nvidia[0-9]*' >/dev/null; }

# python_tests LOG ARGUMENT...: pytest, on the terminal and in LOG.
python_tests() {
  local log="$1"
  shift
  "$venv/bin/python3" -m pytest "$@" 2>&1 </dev/null | tee "$log"
}
