"""What a directory holds as the script sees it in a trial: its own files, and the real ones that it did not remove."""

from __future__ import annotations

import errno
import os
from typing import Any, Callable

from .view import Trial, exists, real_scandir


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


def replace_listing(trial: Trial, replace: Callable[[str, Callable[[Any], Any]], None]) -> None:
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
            with real_scandir(written) as found:
                own = [Entry(entry, given) for entry in found]
        names = {entry.name for entry in own}
        if trial.is_gone(virtual):
            if not exists(written):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            return own
        if not exists(virtual):
            return own
        with real_scandir(virtual) as found:
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
