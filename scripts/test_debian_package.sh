#!/usr/bin/env bash
# test_debian_package.sh DEB: installs the package in a clean Debian of this machine's release (debootstrap, as root), as
# its users do: the program, its manual, a run with Debian's own python3, Slurm's programs with the plugin; and what
# is left after it was removed. Takes a minute or two, and needs the distribution's packages.
source "$(dirname "$0")/lib.sh"

deb="${1:?which package?}"
[ "$(id -u)" = 0 ] || die "only root can make a clean Debian" "sudo $0 $deb"
command -v debootstrap >/dev/null || apt-get install -y -qq --no-install-recommends debootstrap >/dev/null
release="$(. /etc/os-release && echo "$VERSION_CODENAME")"
mirror="$(apt-get indextargets --format '$(REPO_URI)' "Codename: $release" 'Component: main' | head -n 1)"
clean="$(mktemp -d)"
chmod 755 "$clean"  # apt reads its packages as another user
trap 'rm -rf "$clean"' EXIT
debootstrap --variant=minbase "$release" "$clean" "$mirror" >"$clean.log" || die "debootstrap failed" "see $clean.log"
rm "$clean.log"
cp "$deb" "$clean/tmp/fullbore.deb"

cat >"$clean/tmp/train.py" <<'PY'
import time
import fullbore

for _ in fullbore.watch(range(200)):
    time.sleep(0.005)
    fullbore.step()
PY
cat >"$clean/tmp/slurm.conf" <<'CONF'
ClusterName=clean
SlurmctldHost=localhost
PlugStackConfig=/tmp/plugstack.conf
CONF
cat >"$clean/tmp/inside.sh" <<'SH'
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C MANPAGER=cat
cd /tmp
fail() { echo "$1" >&2; exit 1; }
install() { apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1; }
files() { find / -xdev \( -path /proc -o -path /tmp -o -path /var/cache -o -path /var/log -o -path /var/lib/apt \) -prune \
  -o -print | sort; }

apt-get update -qq
install python3 man-db slurm-client
files >before
install ./fullbore.deb || fail "it does not install"
[[ "$(fullbore --version)" == *"$VERSION"* ]] || fail "--version says '$(fullbore --version)', not $VERSION"
man fullbore | grep -q 'narrowest pipe' || fail "man knows no fullbore"
PYTHONPATH=/usr/share/fullbore/python fullbore run -o runs -- python3 train.py >said 2>&1 && grep -qE 's, (19[0-9]|200) steps' said ||
  fail "a run with Debian's python3 shows no steps: $(cat said)"
plugin() { echo "required $1" >plugstack.conf; SLURM_CONF=/tmp/slurm.conf srun --help 2>&1; }
! plugin /usr/lib/fullbore/none.so >/dev/null || fail "srun takes a plugin that is not there"
plugin /usr/lib/fullbore/libfullbore_slurm.so >said || fail "Slurm does not load the plugin: $(cat said)"
apt-get purge -y -qq fullbore >/dev/null
apt-get autoremove -y -qq --purge >/dev/null
left="$(comm -13 before <(files) | grep -i fullbore || true)"
[ -z "$left" ] || fail "removed, it leaves $left"
SH
# In name spaces of its own, which end with it, and what is mounted there too.
unshare --mount --pid --fork env VERSION="$(cat "$root/VERSION")" bash -c '
  mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot "$1" bash /tmp/inside.sh' bash "$clean" ||
  die "deb: not in a clean Debian $release"
say "ok: the Debian package in a clean Debian $release"
