"""Several hosts on one machine: namespaces of the network, of names, processes, memory, and of the time since boot."""

from __future__ import annotations

import os
import pathlib
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

# Each has its own /dev/shm and sees its own processes only; folders of disks are shared, as by NFS.
BEGIN = 'hostname {name}; mount -t tmpfs tmpfs /dev/shm; ip link set lo up; exec "$@"'
APART = ["unshare", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--time"]


class Host:
    def __init__(self, name: str, space: str, address: str, up_s: int) -> None:
        self.name = name
        self.space = space  # of the network
        self.address = address
        self.up_s = up_s  # longer than this machine

    def prefix(self) -> list[str]:
        """What stands before a command that runs there."""
        up = ["--monotonic", str(self.up_s), "--boottime", str(self.up_s)]
        return ["ip", "netns", "exec", self.space, *APART, *up, "sh", "-c", BEGIN.format(name=self.name), "sh"]


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def why_not() -> str:
    """Why this machine cannot hold several; empty if it can."""
    if os.geteuid() != 0 or not pathlib.Path("/usr/sbin/ip").exists():
        return "hosts need root and iproute2"
    tried = subprocess.run([*APART, "--net", "true"], capture_output=True, text=True)
    return f"no namespaces here: {tried.stderr.strip()}" if tried.returncode else ""


@contextmanager
def hosts(*names: str) -> Iterator[list[Host]]:
    """On one network, which this machine is no part of."""
    mark = uuid.uuid4().hex[:6]
    switch = f"fb{mark}"
    spaces = [switch, *(f"{switch}-{number}" for number in range(len(names)))]
    try:
        for space in spaces:
            ip("netns", "add", space)
        ip("-n", switch, "link", "add", "switch", "type", "bridge")
        ip("-n", switch, "link", "set", "switch", "up")
        made = []
        for number, (name, space) in enumerate(zip(names, spaces[1:], strict=True)):
            address, port = f"10.77.0.{number + 1}", f"port{number}"
            ip("-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", switch)
            ip("-n", switch, "link", "set", port, "master", "switch", "up")
            ip("-n", space, "address", "add", f"{address}/24", "dev", "eth0")
            ip("-n", space, "link", "set", "eth0", "up")
            made.append(Host(name, space, address, up_s=100_000 * number))
        yield made
    finally:
        for space in spaces:
            subprocess.run(["ip", "netns", "delete", space], capture_output=True)
