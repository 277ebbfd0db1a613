"""Files are created in one place alone, which follows nobody's links: src/base/guarded_file.h."""

from __future__ import annotations

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
CREATES = re.compile(r"O_CREAT|\bofstream\b|\bfopen\([^;]*\"[wa]|\bmko?stemps?\b|\bmkdtemp|\bcreat\(")


def ships(file: pathlib.Path) -> bool:
    return not file.stem.endswith("_test") and "testing" not in file.parts


def test_files_are_created_in_one_place() -> None:
    files = [file for file in (ROOT / "src").rglob("*.[ch]*") if ships(file)]
    creating = {str(file.relative_to(ROOT)) for file in files if CREATES.search(file.read_text())}
    assert creating == {"src/base/guarded_file.cc"}
