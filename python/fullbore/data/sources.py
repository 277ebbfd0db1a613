"""One class for each kind of source. `Loader` itself recognises the kind by the path."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Any

from .loader import Loader, Path


class ImageFolder(Loader):
    """A directory of class directories; labels number the classes in alphabetical order."""

    kind = "folder"


class WebDataset(Loader):
    """Tar shards in WebDataset's layout: the files of a sample share a name up to the first dot.

    "train-{000..012}.tar", "dir/*.tar", URLs, s3://. `fields` lists extensions; the default is those of the first
    sample.
    """

    kind = "tar"


class TFRecord(Loader):
    """TFRecord files of tf.train.Example. `fields` lists features."""

    kind = "tfrecord"


class HDF5(Loader):
    """HDF5 files. `fields` lists datasets, whose first dimension is the samples."""

    kind = "hdf5"


class FileList(Loader):
    """A list file (one "path label" per line; .csv, .tsv), or a list of (path, label) pairs with int labels.

    classes: names of the labels, if you know them.
    """

    kind = "list"

    def __init__(
        self,
        paths: Path | Sequence[Path] | Sequence[tuple[Path, int]],
        *args: Any,
        classes: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        self._list: str | None = None
        self._classes = classes
        super().__init__(paths, *args, **options)  # type: ignore[arg-type]
        self._arguments["classes"] = classes
        self._forget_list()

    @property
    def classes(self) -> list[str]:
        return super().classes if self._classes is None else list(self._classes)

    def _options(self) -> dict[str, Any]:
        given = self._arguments["paths"]
        if isinstance(given, (list, tuple)) and given and isinstance(given[0], (list, tuple)):
            self._list = written(given)
            options = {**self._arguments, "paths": self._list}
            kept, self._arguments = self._arguments, options
            try:
                return super()._options()
            finally:
                self._arguments = kept
        return super()._options()

    def _forget_list(self) -> None:
        """The engine has read the list."""
        if self._list is not None:
            try:
                os.unlink(self._list)
            except FileNotFoundError:
                pass
            self._list = None

    def close(self) -> None:
        super().close()
        self._forget_list()


def written(pairs: Sequence[tuple[Path, int]]) -> str:
    """Writes the pairs as a list file; returns its path."""
    lines = ["path\tlabel\n"]
    for path, label in pairs:
        quoted = os.path.abspath(os.fsdecode(path)).replace('"', '""')
        lines.append(f'"{quoted}"\t{int(label)}\n')
    descriptor, name = tempfile.mkstemp(suffix=".tsv", prefix="fullbore-list-")
    with open(descriptor, "w", errors="surrogateescape") as file:
        file.writelines(lines)
    return name
