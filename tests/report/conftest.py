import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

ROOT = Path(__file__).resolve().parents[2]
SAMPLE_TOOL = ROOT / "build" / "release" / "src" / "report" / "report_sample"


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> Path:
    if not SAMPLE_TOOL.exists():
        pytest.skip("report_sample is not built: make build")
    directory = tmp_path_factory.mktemp("reports")
    subprocess.run([SAMPLE_TOOL, directory], check=True)
    return directory
