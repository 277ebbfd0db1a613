"""Each parser against a few seconds of inputs that libFuzzer makes; `make fuzz` does it for longer."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 12


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
    seeds = fuzz("0")
    assert seeds.returncode == 0, seeds.stdout


@pytest.mark.timeout(1800)  # the first of them also builds the readers anew, with sanitizers
@pytest.mark.parametrize("target", ["kineto", "bytes", "nsys", "columns", "channel"])
def test_no_input_makes_it_crash_leak_or_hang(built: None, target: str) -> None:
    run = fuzz(str(SECONDS), target)
    assert run.returncode == 0, run.stdout
    assert "inputs tried" in run.stdout
