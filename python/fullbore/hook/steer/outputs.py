"""Keeps what a script writes away from its real outputs: $FULLBORE_TRIAL is a scratch directory for one trial.

A file that the script opens for writing lies below TRIAL/files, at the path that it would have had, copied there first
where it is changed and not made anew. Reading sees the script's own files there before the real ones; what the script
removed is marked below TRIAL/gone and is not found. So the script sees what it would have seen, and no file of the
user's is changed, truncated or removed.

What writes by other ways than Python's `open` and `os` is led to the same place where we know it (writers.py); for all
else, in this process and those that it starts, the kernel refuses to write elsewhere (guard.py).

The functions of `open` and `os` are replaced at Python's start, before any module has taken them by name. Python's own
import does not go through them: no byte code is written. Not redirected: /dev, /proc and /sys, the run's channel, and
the caches of downloads and compilers (~/.cache, HF_HOME, TORCH_HOME, ...), which are there to outlive a run.
"""

from __future__ import annotations

import atexit
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

from . import guard

VARIABLE = "FULLBORE_TRIAL"
# Where tempfile makes files: below TRIAL, but a socket's path takes at most 107 characters, of which multiprocessing's
# own part is up to 40.
MAX_TEMPORARY = 64
MAX_LINKS = 40
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CACHES = ("XDG_CACHE_HOME", "HF_HOME", "TORCH_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "KERAS_HOME")

# Taken before they are replaced.
_lstat, _mkdir, _scandir, _readlink = os.lstat, os.mkdir, os.scandir, os.readlink
_remove, _rmdir, _open, _stat, _chmod, _utime = os.remove, os.rmdir, io.open, os.stat, os.chmod, os.utime


def exists(path: str) -> bool:
    try:
        _lstat(path)
    except (OSError, ValueError):
        return False
    return True


def is_link(path: str) -> bool:
    return exists(path) and stat.S_ISLNK(_lstat(path).st_mode)


def make_directories(path: str) -> None:
    try:
        _mkdir(path)
    except FileExistsError:
        pass
    except FileNotFoundError:
        make_directories(os.path.dirname(path))
        make_directories(path)


def copy(path: str, to: str) -> None:
    with _open(path, "rb") as source, _open(to, "wb") as target:
        shutil.copyfileobj(source, target)
    known = _stat(path)
    _chmod(to, stat.S_IMODE(known.st_mode))
    _utime(to, ns=(known.st_atime_ns, known.st_mtime_ns))


def remove_tree(path: str) -> None:
    """One of our own, with what is in it."""
    if not stat.S_ISDIR(_lstat(path).st_mode):
        _remove(path)
        return
    with _scandir(path) as found:
        inside = [entry.path for entry in found]
    for entry in inside:
        remove_tree(entry)
    _rmdir(path)


class Trial:
    """Which file a path of the script's stands for. A path given as a file descriptor stands for itself."""

    def __init__(self, directory: str) -> None:
        self.directory = os.path.abspath(directory)
        self.files = self.directory + "/files"
        self.gone = self.directory + "/gone"
        self.links = self.directory + "/links"  # exists once the script has made a symbolic link
        caches = [os.environ.get(name, "") for name in CACHES]
        caches += [os.path.expanduser("~/.cache"), os.environ.get("FULLBORE_CHANNEL", "")]
        kept = [os.path.abspath(path) for path in caches if path]
        here = os.getcwd() + os.sep
        # A cache that holds the script's own directory is no cache.
        self.kept = tuple(p + os.sep for p in ("/dev", "/proc", "/sys", *kept) if not here.startswith(p + os.sep))

    def kept_places(self) -> list[str]:
        """The directories that may be written to as they are."""
        return [self.directory, *self.kept]

    def absolute(self, path: Any, dir_fd: int | None) -> str | None:
        try:
            text = os.fsdecode(path)
        except TypeError:
            return None  # a file descriptor
        if dir_fd is not None and not text.startswith("/"):
            text = os.path.join(_readlink(f"/proc/self/fd/{dir_fd}"), text)
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
                    target = os.path.join(os.path.dirname(place), _readlink(self.files + place))
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
            with _open(f"{self.gone}{virtual}/.gone", "w"):
                pass


class Entry:
    """Like os.DirEntry, for a file that lies elsewhere than where the script sees it."""

    def __init__(self, found: os.DirEntry, directory: str) -> None:
        self._found = found
        self.name = found.name
        self.path = os.path.join(directory, found.name)

    def __fspath__(self) -> str:
        return self.path

    def __getattr__(self, name: str) -> Any:  # is_dir, is_file, is_symlink, stat, inode
        return getattr(self._found, name)


class Entries:
    """Like what os.scandir returns."""

    def __init__(self, entries: list[Any]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Entries:
        return self

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> Entries:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        self._entries = iter(())


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
    use_temporary(trial)
    guard.attach(trial.kept_places())
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    replace_open(trial)
    replace_reading(trial)
    replace_writing(trial)
    replace_removing(trial)
    replace_listing(trial)


def use_temporary(trial: Trial) -> None:
    if os.environ.get("FULLBORE_TRIAL_TMP") is None:
        place = trial.directory + "/tmp"
        make_directories(place)
        if len(place) > MAX_TEMPORARY:
            place = f"/tmp/fullbore-{os.urandom(8).hex()}"
            _mkdir(place, 0o700)
            owner = os.getpid()
            atexit.register(lambda: os.getpid() == owner and remove_tree(place))
        os.environ["FULLBORE_TRIAL_TMP"] = os.environ["TMPDIR"] = place
    trial.kept += (os.environ["FULLBORE_TRIAL_TMP"] + os.sep,)


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
    """And no symbolic link to one."""
    written = trial.files + virtual
    return stat.S_ISDIR(_lstat(written if exists(written) else virtual).st_mode)


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
            if original is _rmdir and os.listdir(virtual):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
            if exists(written):
                with told_as(path, written):
                    original(written)
            elif original is not _rmdir and stat.S_ISDIR(_lstat(virtual).st_mode):
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


def replace_listing(trial: Trial) -> None:
    def merged(path: Any) -> tuple[str, str] | None:
        """(where the script sees the directory, where its own files in it lie) if the two differ."""
        if isinstance(path, int):
            return None
        virtual = trial.virtual("." if path is None else path)
        if virtual is None or not (exists(trial.files + virtual) or exists(trial.gone)):
            return None
        return virtual, trial.files + virtual

    def scan(path: Any, virtual: str, written: str) -> list[Any]:
        given = "." if path is None else os.fsdecode(path)
        own: list[Any] = []
        if exists(written):
            with _scandir(written) as found:
                own = [Entry(entry, given) for entry in found]
        names = {entry.name for entry in own}
        if trial.is_gone(virtual):
            if not exists(written):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            return own
        if not exists(virtual):
            return own
        with _scandir(virtual) as found:
            real = [entry for entry in found if entry.name not in names and not trial.is_gone(entry.path)]
        return own + [Entry(entry, given) for entry in real]

    def scanning(original: Any) -> Any:
        def scandir(path: Any = None) -> Any:
            places = merged(path)
            if places is None:
                return original(path)
            entries = scan(path, *places)
            return Entries(entries)

        return scandir

    def listing(original: Any) -> Any:
        def listdir(path: Any = None) -> Any:
            places = merged(path)
            if places is None:
                return original(path)
            names = [entry.name for entry in scan(path, *places)]
            return [os.fsencode(name) for name in names] if isinstance(path, bytes) else names

        return listdir

    replace("scandir", scanning)
    replace("listdir", listing)
