"""The exam of bench/accuracy, importable, and finished cases made by hand."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "accuracy"))
sys.path.append(str(Path(__file__).parent))  # behind: other folders of tests have a conftest, too
