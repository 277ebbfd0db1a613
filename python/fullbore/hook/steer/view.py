"""Which file a path of the script's stands for in a trial, whose scratch directory is TRIAL.

What the script wrote lies below TRIAL/files, at the path that it would have had; what it removed is marked below
TRIAL/gone. Nothing here is replaced or intercepted: outputs.py asks, for each call that the script makes.
"""

from __future__ import annotations

import _thread
import errno
import io
import os
import shutil
import stat
from typing import Any

MAX_LINKS = 40
KEPT = "FULLBORE_TRIAL_KEPT"  # what may be written to as it is, a line each: directories, and files

# Taken before outputs.py replaces them.
real_lstat, real_mkdir, real_scandir, real_readlink = os.lstat, os.mkdir, os.scandir, os.readlink
real_remove, real_rmdir, real_open = os.remove, os.rmdir, io.open
real_stat, real_chmod, real_utime, real_link = os.stat, os.chmod, os.utime, os.link


def exists(path: str) -> bool:
    try:
        real_lstat(path)
    except (OSError, ValueError):
        return False
    return True


def is_link(path: str) -> bool:
    return exists(path) and stat.S_ISLNK(real_lstat(path).st_mode)


def make_directories(path: str) -> None:
    try:
        real_mkdir(path)
    except FileExistsError:
        pass
    except FileNotFoundError:
        make_directories(os.path.dirname(path))
        make_directories(path)


def copy(path: str, to: str) -> None:
    """Appears to others all at once: ranks and workers open the same file."""
    part = f"{to}.{os.getpid()}-{_thread.get_ident()}.part"
    with real_open(path, "rb") as source, real_open(part, "wb") as target:
        shutil.copyfileobj(source, target)
    known = real_stat(path)
    real_chmod(part, stat.S_IMODE(known.st_mode))
    real_utime(part, ns=(known.st_atime_ns, known.st_mtime_ns))
    try:
        real_link(part, to)
    except FileExistsError:
        pass  # another process was faster, and may have changed it since
    finally:
        real_remove(part)


def remove_tree(path: str) -> None:
    """Removes a directory of ours with everything in it."""
    if not stat.S_ISDIR(real_lstat(path).st_mode):
        real_remove(path)
        return
    with real_scandir(path) as found:
        inside = [entry.path for entry in found]
    for entry in inside:
        remove_tree(entry)
    real_rmdir(path)


class Trial:
    """Which file a path of the script's stands for. A path given as a file descriptor stands for itself."""

    def __init__(self, directory: str) -> None:
        self.directory = os.path.abspath(directory)
        self.files = self.directory + "/files"
        self.gone = self.directory + "/gone"
        self.links = self.directory + "/links"  # exists once the script has made a symbolic link
        kept = os.environ.get(KEPT, "").split("\n") + [os.environ.get("FULLBORE_CHANNEL", "")]
        self.kept = tuple(path + os.sep for path in kept if path)

    def absolute(self, path: Any, dir_fd: int | None) -> str | None:
        try:
            text = os.fsdecode(path)
        except TypeError:
            return None  # a file descriptor
        if dir_fd is not None and not text.startswith("/"):
            text = os.path.join(real_readlink(f"/proc/self/fd/{dir_fd}"), text)
        return os.path.abspath(text)

    def virtual(self, path: Any, dir_fd: int | None = None, follow: bool = True) -> str | None:
        """The absolute path that the script means; None where nothing is redirected. `follow`: what a symbolic link
        of the script's own points to, and not the link."""
        text = self.absolute(path, dir_fd)
        if text is None:
            return None
        if text.startswith(self.files + os.sep):
            text = text[len(self.files) :]
        if text == self.files or (text + os.sep).startswith((self.directory + os.sep, *self.kept)):
            return None
        return self.resolved(text, follow) if exists(self.links) else text

    def resolved(self, text: str, follow: bool) -> str:
        """Without the symbolic links that the script made: following those in the kernel could lead to real files."""
        for _ in range(MAX_LINKS):
            parts = text.split(os.sep)
            for end in range(2, len(parts) + (1 if follow else 0)):
                place = os.sep.join(parts[:end])
                if is_link(self.files + place):
                    target = os.path.join(os.path.dirname(place), real_readlink(self.files + place))
                    text = os.path.abspath(os.path.join(target, *parts[end:]))
                    break
            else:
                return text
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), text)

    def is_gone(self, virtual: str) -> bool:
        """Whether the script removed it, or a directory that it lay in."""
        if not exists(self.gone):
            return False
        while virtual != "/":
            if exists(f"{self.gone}{virtual}/.gone"):
                return True
            virtual = os.path.dirname(virtual)
        return False

    def to_read(self, path: Any, dir_fd: int | None = None, follow: bool = True) -> Any:
        virtual = self.virtual(path, dir_fd, follow)
        if virtual is None:
            return path
        written = self.files + virtual
        if exists(written) or self.is_gone(virtual):
            return written
        return path if virtual == self.absolute(path, dir_fd) else virtual

    def to_write(self, path: Any, dir_fd: int | None = None, keep: bool = True, follow: bool = True) -> Any:
        """`keep`: its contents so far count."""
        virtual = self.virtual(path, dir_fd, follow)
        if virtual is None:
            return path
        written = self.files + virtual
        if exists(written):
            return written
        self.make_parent(virtual)
        if keep and not self.is_gone(virtual):
            if os.path.isdir(virtual):
                return path  # which cannot be opened for writing, but tempfile's own opener takes it
            if exists(virtual):
                copy(virtual, written)
        return written

    def make_parent(self, virtual: str) -> None:
        """Where the directory that it lies in exists for the script; else opening will say that it does not."""
        parent = os.path.dirname(virtual)
        if not self.is_gone(parent) and os.path.isdir(parent):
            make_directories(self.files + parent)

    def seen(self, virtual: str) -> bool:
        return exists(self.files + virtual) or (exists(virtual) and not self.is_gone(virtual))

    def mark_gone(self, virtual: str) -> None:
        if exists(virtual):
            make_directories(self.gone + virtual)
            with real_open(f"{self.gone}{virtual}/.gone", "w"):
                pass
