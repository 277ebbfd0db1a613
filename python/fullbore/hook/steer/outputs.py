"""Keeps what a script writes away from its real outputs, where the kernel cannot give a trial its own view of files:
$FULLBORE_TRIAL_FILES is a scratch directory for one trial.

A file that the script opens for writing lies below TRIAL/files, at the path that it would have had, copied there first
where it is changed and not made anew. Reading sees the script's own files there before the real ones; what the script
removed is marked below TRIAL/gone and is not found. So the script sees what it would have seen, and no file of the
user's is changed, truncated or removed.

What writes by other ways than Python's `open` and `os` is led to the same place where we know it (writers.py); for all
else, in this process and those that it starts, the kernel refuses to write elsewhere: who starts a trial sees to that
(src/measure/isolate/write_guard.h).

The functions of `open` and `os` are replaced at Python's start, before any module has taken them by name. Python's own
import does not go through them: no byte code is written. Not redirected: the run's channel, and what
$FULLBORE_TRIAL_KEPT names (src/tune/trial/trial_places.h).
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import functools
import io
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from typing import Any, Callable

from .listing import replace_listing
from .view import Trial, exists, make_directories, real_lstat, real_rmdir, remove_tree

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@contextlib.contextmanager
def told_as(path: Any, real: Any) -> Iterator[None]:
    """An error names the path that the script gave."""
    try:
        yield
    except OSError as error:
        if error.filename == real:
            error.filename = path
        raise


trial: Trial | None = None  # of this process, once attached


def attach(directory: str) -> None:
    global trial
    trial = Trial(directory)
    make_directories(trial.files)
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    replace_open(trial)
    replace_reading(trial)
    replace_writing(trial)
    replace_removing(trial)
    replace_listing(trial, replace)


def replace(name: str, make: Callable[[Any], Any]) -> None:
    original = getattr(os, name, None)
    if original is None:
        return
    made = functools.wraps(original)(make(original))
    setattr(os, name, made)
    for group in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
        if original in group:
            group.add(made)


def replace_open(trial: Trial) -> None:
    original = builtins.open

    @functools.wraps(original)
    def open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:  # noqa: A001
        if isinstance(file, int) or not isinstance(mode, str):
            return original(file, mode, *args, **kwargs)
        if not set(mode) & set("wax+"):
            real = trial.to_read(file)
        else:
            if "x" in mode:
                must_be_new(trial, file)
            real = trial.to_write(file, keep="w" not in mode)
        with told_as(file, real):
            return original(real, mode, *args, **kwargs)

    builtins.open = io.open = open

    def make(original: Any) -> Any:
        def os_open(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> Any:
            if flags & getattr(os, "O_TMPFILE", 0) == getattr(os, "O_TMPFILE", 0) or not flags & WRITING:
                real = trial.to_read(path, dir_fd)
            else:
                if flags & os.O_EXCL and flags & os.O_CREAT:
                    must_be_new(trial, path, dir_fd)
                real = trial.to_write(path, dir_fd, keep=not flags & os.O_TRUNC)
            with told_as(path, real):
                return original(real, flags, mode) if real != path else original(path, flags, mode, dir_fd=dir_fd)

        return os_open

    replace("open", make)


def must_be_new(trial: Trial, path: Any, dir_fd: int | None = None) -> None:
    virtual = trial.virtual(path, dir_fd)
    if virtual is not None and trial.seen(virtual):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)


def replace_reading(trial: Trial) -> None:
    def make(original: Any) -> Any:
        def read(path: Any, *args: Any, dir_fd: int | None = None, **kwargs: Any) -> Any:
            follow = original.__name__ not in ("lstat", "readlink") and kwargs.get("follow_symlinks", True)
            real = trial.to_read(path, dir_fd, follow)
            if dir_fd is not None and real is path:
                kwargs["dir_fd"] = dir_fd
            with told_as(path, real):
                return original(real, *args, **kwargs)

        return read

    for name in ("stat", "lstat", "access", "readlink", "statvfs", "chdir", "getxattr", "listxattr"):
        replace(name, make)


def replace_writing(trial: Trial) -> None:
    def changing(original: Any) -> Any:
        def change(path: Any, *args: Any, dir_fd: int | None = None, **kwargs: Any) -> Any:
            virtual = trial.virtual(path, dir_fd)
            if virtual is not None and not trial.seen(virtual):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            real = path if virtual is None else directory_or_copy(trial, virtual)
            if dir_fd is not None and real is path:
                kwargs["dir_fd"] = dir_fd
            return original(real, *args, **kwargs)

        return change

    def making(original: Any) -> Any:
        def make(path: Any, *args: Any, dir_fd: int | None = None, **kwargs: Any) -> Any:
            must_be_new(trial, path, dir_fd)
            real = trial.to_write(path, dir_fd, keep=False)
            if dir_fd is not None and real is path:
                kwargs["dir_fd"] = dir_fd
            with told_as(path, real):
                return original(real, *args, **kwargs)

        return make

    def linking(original: Any) -> Any:
        def link(src: Any, dst: Any, *args: Any, **kwargs: Any) -> Any:
            must_be_new(trial, dst, kwargs.get("dir_fd", kwargs.get("dst_dir_fd")))
            if original.__name__ == "link":  # a second name of a file of the user's would write through to it
                shutil.copy2(src, dst, follow_symlinks=kwargs.get("follow_symlinks", True))
                return None
            real = trial.to_write(dst, kwargs.pop("dir_fd", None), keep=False, follow=False)
            make_directories(trial.links)
            return original(src, real, *args, **kwargs)

        return link

    for name in ("chmod", "chown", "lchown", "utime", "truncate", "setxattr", "removexattr"):
        replace(name, changing)
    for name in ("mkdir", "mkfifo", "mknod"):
        replace(name, making)
    for name in ("symlink", "link"):
        replace(name, linking)


def is_directory(trial: Trial, virtual: str) -> bool:
    """Whether it is a directory, and not a symbolic link to one."""
    written = trial.files + virtual
    return stat.S_ISDIR(real_lstat(written if exists(written) else virtual).st_mode)


def directory_or_copy(trial: Trial, virtual: str) -> str:
    written = trial.files + virtual
    if os.path.isdir(virtual) and not exists(written):
        make_directories(written)
        return written
    return trial.to_write(virtual)


def replace_removing(trial: Trial) -> None:
    def removing(original: Any) -> Any:
        def remove(path: Any, *, dir_fd: int | None = None) -> None:
            virtual = trial.virtual(path, dir_fd, follow=False)
            if virtual is None:
                return original(path) if dir_fd is None else original(path, dir_fd=dir_fd)
            written = trial.files + virtual
            if not trial.seen(virtual):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            if original is real_rmdir and os.listdir(virtual):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
            if exists(written):
                with told_as(path, written):
                    original(written)
            elif original is not real_rmdir and stat.S_ISDIR(real_lstat(virtual).st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            trial.mark_gone(virtual)

        return remove

    def moving(original: Any) -> Any:
        def move(src: Any, dst: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
            begin, end = trial.virtual(src, src_dir_fd, False), trial.virtual(dst, dst_dir_fd, False)
            if begin is None and end is None:
                return original(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
            if begin is not None and not trial.seen(begin):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), src)
            if end is not None and os.path.isdir(end) and os.listdir(end) and os.path.isdir(src):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), dst)
            source = src if begin is None else copied(trial, begin)
            target = dst if end is None else trial.to_write(end, keep=False, follow=False)
            try:
                original(source, target)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                shutil.move(source, target)  # from or to a directory that is not redirected
            if begin is not None:
                trial.mark_gone(begin)
            return None

        return move

    def removing_tree(original: Any) -> Any:
        @functools.wraps(original)
        def rmtree(path: Any, *args: Any, **kwargs: Any) -> None:
            virtual = trial.virtual(path, kwargs.get("dir_fd"), follow=False)
            if virtual is None or not trial.seen(virtual) or not is_directory(trial, virtual):
                return original(path, *args, **kwargs)
            if exists(trial.files + virtual):
                remove_tree(trial.files + virtual)
            trial.mark_gone(virtual)

        return rmtree

    shutil.rmtree = removing_tree(shutil.rmtree)
    for name in ("remove", "unlink", "rmdir"):
        replace(name, removing)
    for name in ("rename", "replace"):
        replace(name, moving)


def copied(trial: Trial, virtual: str) -> str:
    """A file, or a whole directory as the script sees it, to be moved."""
    written = trial.files + virtual
    if not os.path.isdir(virtual):
        return trial.to_write(virtual)
    trial.make_parent(virtual)
    make_directories(written)
    for name in os.listdir(virtual):
        copied(trial, os.path.join(virtual, name))
    return written
