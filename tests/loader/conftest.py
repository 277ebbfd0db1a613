"""Shared by the tests of this folder: their helpers, and a server that misbehaves."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from fault_server import FaultServer  # noqa: E402
from python_data import make_photos  # noqa: E402


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Which nobody changes."""
    return make_photos(tmp_path_factory.mktemp("photos") / "train")


@pytest.fixture
def server() -> Iterator[FaultServer]:
    made = FaultServer()
    yield made
    made.close()
