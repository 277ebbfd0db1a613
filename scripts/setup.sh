#!/usr/bin/env bash
# setup.sh build|demo|fleet|test|lint: installs whatever that needs and is missing. Quick when nothing is missing.
source "$(dirname "$0")/lib.sh"

readonly lists="$root/scripts"

packages_in() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$@"; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Prints which of the packages named on standard input are not installed.
not_installed() {
  local name
  while read -r name; do
    [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$name" 2>/dev/null)" = 'ii ' ] || echo "$name"
  done
}

apt_offers() { [[ "$(apt-cache policy "$1")" =~ Candidate:\ [0-9] ]]; }

updated=
update_package_lists() {  # once, and only when a package is missing
  [ -z "$updated" ] || return 0
  say "apt-get update, because packages are missing"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq </dev/null
  updated=yes
}

# install_packages WHY MUST|MAY PACKAGE...: MAY leaves out what the distribution does not have.
install_packages() {
  local why="$1" need="$2" missing name wanted=()
  shift 2
  missing="$(printf '%s\n' "$@" | not_installed)"
  [ -n "$missing" ] || return 0
  command -v apt-get >/dev/null ||
    die "cannot install packages here: no apt-get" "install by hand: $(echo $missing)"
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    die "packages are missing and only root can install them" "as root: apt-get install $(echo $missing)"
  fi
  update_package_lists
  for name in $missing; do
    if [ "$need" = MUST ] || apt_offers "$name"; then
      wanted+=("$name")
    else
      say "not available in this distribution, left out: $name"
    fi
  done
  [ ${#wanted[@]} -gt 0 ] || return 0
  say "apt-get install, $why: ${wanted[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${wanted[@]}" \
    </dev/null >/dev/null
}

# A Python that can create virtual environments and is new enough for torch 2.13.
base_python() {
  local candidate
  for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  die "no Python >= 3.10 with the venv module was found" "apt-get install python3-venv"
}

make_venv() {
  # A directory whose interpreter is gone (a moved clone, a removed Python) is created again.
  if [ -x "$venv/bin/python3" ] && "$venv/bin/python3" -m pip --version >/dev/null 2>&1; then return; fi
  local python
  python="$(base_python)"
  say "creating the virtual environment .venv, to leave your own Python alone ($("$python" --version))"
  "$python" -m venv --clear "$venv"
}

# requirements_met FILE...: every "name==version" or "name" line that its marker concerns is installed in .venv.
requirements_met() {
  "$venv/bin/python3" - "$@" <<'PY'
import importlib.metadata, sys
from pip._vendor.packaging.markers import Marker
for path in sys.argv[1:]:
    for line in open(path):
        name, _, marker = line.split("#")[0].partition(";")
        if marker and not Marker(marker).evaluate():
            continue
        name, _, version = name.strip().partition("==")
        try:
            have = importlib.metadata.version(name) if name else version
        except importlib.metadata.PackageNotFoundError:
            sys.exit(1)
        if version and have.split("+")[0] != version:  # "2.13.0+cpu" is 2.13.0
            sys.exit(1)
PY
}

pip_install() { "$venv/bin/python3" -m pip install -qq --disable-pip-version-check "$@" </dev/null; }

# install_requirements WHY FILE...: torch is pinned in requirements-demo.txt, which constrains every call.
install_requirements() {
  local why="$1" file arguments=()
  shift
  requirements_met "$@" && return
  say "pip install into .venv, $why: $(cat "$@" | sed -e 's/#.*//' | xargs)"
  for file in "$@"; do arguments+=(-r "$file"); done
  # shellcheck disable=SC2046  # several words
  pip_install -c "$lists/requirements-demo.txt" "${arguments[@]}" $(torch_index)
}

# Ubuntu 22.04 has CMake 3.22 and g++ 11: take CMake from PyPI and g++-12 from the distribution.
setup_build() {
  # shellcheck disable=SC2046
  install_packages "to build" MUST $(packages_in "$lists/packages.txt")
  if [ -z "$(cxx_compiler)" ]; then
    install_packages "because C++20 needs g++ >= $gxx_wanted" MUST "g++-$gxx_wanted"
  fi
  if [ -z "$(cmake_directory)" ]; then
    make_venv
    say "pip install cmake into .venv, because the distribution's is older than $cmake_wanted"
    pip_install "cmake>=$cmake_wanted,<4"
  fi
}

setup_demo() {
  setup_build
  [ -z "$(demo_python)" ] || return 0
  make_venv
  install_requirements "no python3 here imports torch, numpy and Pillow" "$lists/requirements-demo.txt"
}

setup_fleet() {
  setup_build
  # shellcheck disable=SC2046
  install_packages "for the demo of a fleet" MUST $(packages_in "$lists/packages-fleet.txt")
}

setup_test() {
  setup_build
  # shellcheck disable=SC2046
  install_packages "to test old PyTorch and the HTML report, and to fuzz" MAY $(packages_in "$lists/packages-test.txt")
  make_venv
  install_requirements "to test" "$lists/requirements-demo.txt" "$lists/requirements-test.txt"
  setup_vendor_headers
}

setup_lint() {
  # shellcheck disable=SC2046
  install_packages "to lint" MUST $(packages_in "$lists/packages-lint.txt")
  make_venv
  install_requirements "to lint" "$lists/requirements-lint.txt"
}

# Headers that only tests compile against: several versions, which pip cannot install side by side in one environment.
setup_vendor_headers() {
  local wanted place
  while read -r wanted; do
    place="$venv/vendor-headers/${wanted/==/-}"
    [ ! -d "$place" ] || continue
    say "pip install $wanted, to check our declarations against it"
    # Into a directory with another name first, so that an interrupted download does not count.
    rm -rf "$place.part"
    pip_install --no-deps --target "$place.part" "$wanted" || die "cannot install $wanted" "is PyPI reachable?"
    mv "$place.part" "$place"
  done < <(packages_in "$lists/vendor-headers.txt")
}

case "${1:-}" in
  build | demo | fleet | test | lint) "setup_$1" ;;
  *) die "setup.sh takes one of: build demo fleet test lint (not '${1:-}')" ;;
esac
