"""Files of ours inside the script's process: below directories that nobody else can change, and by descriptors that
are known to be ours. A script may close all descriptors, as daemons do; the number of one is then perhaps a file of
its own.

`posix`, which no file of the script's can stand for, and not `os`, whose functions trials and tests replace.
"""

from __future__ import annotations

import fcntl
import posix
from typing import Any

from .interrupts import is_the_scripts

NEW = posix.O_CREAT | posix.O_EXCL | posix.O_NOFOLLOW | posix.O_CLOEXEC
OTHERS_WRITE = 0o022
ORDINARY_LIMIT = 1024  # of open files; a process that may have more has no use for a table of that many
BELOW_LIMIT = 32
PRIVATE = 0o600

Identity = tuple[int, int]


def identity(fd: int) -> Identity:
    status = posix.fstat(fd)
    return status.st_dev, status.st_ino


def out_of_the_way(fd: int) -> int:
    """The same file under a high number. What the script opens gets the lowest that is free: not this one, should
    another thread close it between our look at it and our call."""
    try:
        least = min(posix.sysconf("SC_OPEN_MAX"), ORDINARY_LIMIT) - BELOW_LIMIT
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, least)
    except (OSError, ValueError) as error:
        if is_the_scripts(error):
            raise
        return fd
    posix.close(fd)
    return high


class Kept:
    """A descriptor that stays open for a while."""

    __slots__ = ("fd", "identity")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.identity = identity(fd)

    @classmethod
    def open_for_reading(cls, path: str) -> Kept:
        return cls(out_of_the_way(posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)))

    def read(self, most: int) -> bytes:
        """From its beginning. Raises OSError where the script closed it."""
        if not self.is_ours():
            raise OSError(9, "it was closed")
        return posix.pread(self.fd, most, 0)

    def is_ours(self) -> bool:
        try:
            return identity(self.fd) == self.identity
        except OSError as error:
            if is_the_scripts(error):
                raise
            return False

    def close(self) -> None:
        if self.is_ours():
            posix.close(self.fd)


class Directory:
    """An open directory that belongs to this user, and to which no other one can write: what is made in it is not led
    elsewhere. Raises OSError."""

    def __init__(self, path: str) -> None:
        self.path = path
        flags = posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW | posix.O_CLOEXEC
        self.kept = Kept(posix.open(path, flags))
        status = posix.fstat(self.kept.fd)
        if status.st_uid != posix.geteuid() or status.st_mode & OTHERS_WRITE:
            self.kept.close()
            raise PermissionError(1, "it is another user's, or others can write to it", path)

    def __enter__(self) -> Directory:
        return self

    def __exit__(self, *_: Any) -> None:
        self.kept.close()

    def create(self, name: str, flags: int) -> Kept:
        return Kept(posix.open(name, flags | NEW, PRIVATE, dir_fd=self.kept.fd))

    def rename(self, name: str, to: str) -> None:
        posix.rename(name, to, src_dir_fd=self.kept.fd, dst_dir_fd=self.kept.fd)

    def remove(self, name: str) -> None:
        posix.unlink(name, dir_fd=self.kept.fd)

    def remove_if_there(self, name: str) -> None:
        try:
            self.remove(name)
        except FileNotFoundError as error:
            if is_the_scripts(error):
                raise

    def free_bytes(self) -> int:
        status = posix.fstatvfs(self.kept.fd)
        return status.f_bavail * status.f_frsize if status.f_blocks else 1 << 62  # a tmpfs without a limit


class Written:
    """A file that is written to from time to time, until the process ends."""

    def __init__(self, directory: Directory, name: str, flags: int) -> None:
        self.path = f"{directory.path}/{name}"
        self.flags = flags
        self.kept = directory.create(name, flags)
        self.kept.fd = out_of_the_way(self.kept.fd)

    def descriptor(self) -> int:
        """Ours, by whatever number. Raises OSError where the script closed it and there is no such file any more."""
        if not self.kept.is_ours():
            flags = self.flags | posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_CLOEXEC
            again = Kept(posix.open(self.path, flags))
            if again.identity != self.kept.identity:
                again.close()
                raise FileNotFoundError(2, "it was replaced", self.path)
            again.fd = out_of_the_way(again.fd)
            self.kept = again
        return self.kept.fd

    def close(self) -> None:
        self.kept.close()


class Lines(Written):
    """To which lines are appended."""

    def __init__(self, directory: Directory, name: str) -> None:
        super().__init__(directory, name, posix.O_WRONLY | posix.O_APPEND)
        self.is_torn = False  # the last line is not complete

    def append(self, line: str) -> None:
        """On a full disk, or where the file is gone, the line is lost."""
        data = ("\n" + line if self.is_torn else line).encode("utf-8", "replace") + b"\n"
        try:
            self.is_torn = posix.write(self.descriptor(), data) != len(data)
        except OSError as error:
            if is_the_scripts(error):
                raise
