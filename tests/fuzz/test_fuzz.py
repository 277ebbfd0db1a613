"""Each parser against thousands of inputs from libFuzzer, the same every time; `make fuzz` tries new ones."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INPUTS = 60_000
# The slower ones.
FEWER = {"kineto": 800, "bytes": 20_000, "nsys": 8_000, "memory": 30_000, "tar": 30_000, "tfrecord": 30_000}
FEWER |= {"run": 300, "run_rows": 100, "facts": 100, "hdf5": 400}  # whole reports, and files that libhdf5 writes


def fuzz(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [ROOT / "scripts/fuzz.sh", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )


@pytest.fixture(scope="module")
def built() -> None:
    check = fuzz("--check")
    if check.returncode != 0:
        pytest.skip(check.stdout.strip())
    build = fuzz("--build")
    assert build.returncode == 0, build.stdout


@pytest.mark.long
@pytest.mark.timeout(1800)  # the first one also builds the readers again, with sanitizers
@pytest.mark.parametrize(
    "target",
    ["kineto", "bytes", "nsys", "run", "run_rows", "facts", "columns", "channel", "jpeg", "png", "webp", "npy"]
    + ["memory", "cgroup", "mcp", "s3_list", "http_headers", "cache", "tar", "tar_index", "tfrecord", "list", "hdf5"],
)
def test_no_input_crashes_leaks_or_hangs(built: None, target: str) -> None:
    run = fuzz("--inputs", str(FEWER.get(target, INPUTS)), target)
    assert run.returncode == 0, run.stdout
    assert "inputs tried" in run.stdout
