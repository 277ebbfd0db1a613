"""What several of these tests need of the machine."""

from __future__ import annotations

import pathlib
import subprocess
from collections.abc import Iterator

import pytest


@pytest.fixture
def small_disk(tmp_path) -> Iterator[pathlib.Path]:
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "tmpfs", place], capture_output=True
    ).returncode:
        pytest.skip("no right to mount a small file system")
    yield place
    subprocess.run(["umount", "-l", place], check=True)
