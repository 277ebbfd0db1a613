"""Shared by the tests of `fullbore.read`, `fullbore.record`, notebooks and callbacks."""

from __future__ import annotations

import importlib
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python"
TIMEOUT_S = 180  # a hang, on any machine


@pytest.fixture
def package_environment(fullbore) -> dict[str, str]:
    """With which a script finds the package of the source tree, and that the program under test."""
    search = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH", "")]))
    return {"PYTHONPATH": search, "FULLBORE_PROGRAM": str(fullbore.binary)}


@pytest.fixture
def script(fullbore, package_environment, tmp_path) -> Callable[[str], subprocess.CompletedProcess]:
    """Runs a Python program as its user would, in the test's directory."""

    def run(text: str, **extra: str) -> subprocess.CompletedProcess:
        path = tmp_path / "train.py"
        path.write_text(text)
        environment = fullbore.environment({**package_environment, **extra})
        return subprocess.run(
            [sys.executable, path], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S
        )

    return run


@pytest.fixture
def package(package_environment, monkeypatch) -> Iterator[ModuleType]:
    """The package fullbore in this process."""
    monkeypatch.syspath_prepend(str(PACKAGE))
    monkeypatch.setenv("FULLBORE_PROGRAM", package_environment["FULLBORE_PROGRAM"])
    yield importlib.import_module("fullbore")
