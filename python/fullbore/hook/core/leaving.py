"""The end of the last process of a run whose recorder was killed: what lies in memory goes with it."""

from __future__ import annotations

import os
import posix

from . import channel
from .files import Directory
from .interrupts import is_the_scripts

NOTE = "recorder"  # src/measure/collect/leftovers.cc: boot, process namespace, process and its start, a line each
OURS = (".ring", ".jsonl", ".new")
MOST = 4096  # bytes of a note, and more than of a line of /proc/PID/stat


def begin_of(pid: int) -> str:
    """When a living process started, as the kernel counts; "" if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read(MOST).rpartition(b")")[2].split()
        return "" if fields[0] in (b"Z", b"X") else fields[19].decode()
    except (OSError, IndexError) as error:
        if is_the_scripts(error):
            raise
        return ""


def is_abandoned(place: Directory, names: list[str]) -> bool:
    fd = posix.open(NOTE, posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_CLOEXEC, dir_fd=place.kept.fd)
    try:
        _, space, pid, begin = posix.read(fd, MOST).decode().split("\n")[:4]
    finally:
        posix.close(fd)
    if posix.readlink("/proc/self/ns/pid") != space or begin_of(int(pid)) == begin:
        return False
    others = {int(name.partition("-")[0]) for name in names if name.endswith(OURS)} - {os.getpid()}
    return not any(begin_of(other) for other in others)


def clear_away(directory: str) -> None:
    if not channel.DISK or not channel.is_in_memory(directory):
        return
    try:
        with Directory(directory) as place:
            names = posix.listdir(place.kept.fd)
            if not is_abandoned(place, names):
                return
            for name in names:
                if name.endswith(OURS) or name == NOTE:
                    place.remove(name)
        posix.rmdir(directory)
    except (OSError, ValueError) as error:  # somebody else is at it, or there is something that we do not know
        if is_the_scripts(error):
            raise
