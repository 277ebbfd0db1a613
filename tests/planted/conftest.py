"""The laboratory for the planted cases, and the photos they train on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from planted_case import FULLBORE, ROOT, Laboratory  # noqa: E402


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    maker = ROOT / "examples/make_photos.py"
    subprocess.run([sys.executable, maker, folder, "--count", "48"], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def laboratory(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    pytest.importorskip("torch")
    if not FULLBORE.exists():
        pytest.fail(f"no {FULLBORE}: make build")
    return Laboratory(photos, tmp_path_factory.mktemp("scratch"))
