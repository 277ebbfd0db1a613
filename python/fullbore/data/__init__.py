"""fullbore.data: a data loader in C++ threads, from files to batches; the cure for "waiting for data".

    from fullbore.data import ImageFolder, transforms

    train = ImageFolder(
        "photos/train",
        transforms=[transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.Normalize()],
        batch_size=64,
        seed=0,
    )
    for images, labels in train:  # one epoch; torch tensors, or numpy arrays if torch is not installed
        ...

There is no number of workers to choose. docs/loader.md has the rest.
"""

from __future__ import annotations

import importlib
import sys

try:
    importlib.import_module("._core", __name__)
except ImportError as error:
    version = ".".join(map(str, sys.version_info[:2]))
    if isinstance(error, ModuleNotFoundError):
        text = f"fullbore.data was not built for this Python {version}: {error}"
    else:  # a system library that was there when it was built
        text = f"fullbore.data cannot load its extension into this Python {version}: {error}"
    raise ImportError(f"{text}\nhint: python -m pip install . in fullbore's source tree, with this Python") from error

from . import transforms
from .errors import ArgumentError, LoaderError, LoaderWarning, MissingFileError, NotTranslatable
from .loader import BadSample, BatchInfo, Loader
from .sources import HDF5, FileList, ImageFolder, TFRecord, WebDataset
from .translate import from_torch

__all__ = [
    "ArgumentError",
    "BadSample",
    "BatchInfo",
    "FileList",
    "HDF5",
    "ImageFolder",
    "Loader",
    "LoaderError",
    "LoaderWarning",
    "MissingFileError",
    "NotTranslatable",
    "TFRecord",
    "WebDataset",
    "from_torch",
    "transforms",
]
