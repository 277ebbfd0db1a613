"""bench/gpu_check where there is no GPU: it says so, leaves the device's checks out, and the rest is measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECK = [sys.executable, str(ROOT / "bench" / "gpu_check"), "--python", sys.executable]


def called(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*CHECK, *words], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--only", "nothing"), "no check 'nothing'\nhint: product, faults"),
        (("--groups", "gpt,nothing"), "no group 'nothing'\nhint: gpt, gpt-small"),
        (("--fullbore", "/nowhere/fullbore"), "no /nowhere/fullbore\nhint: make build"),
    ],
)
def test_what_does_not_exist_is_an_error_that_says_what_does(words, error):
    done = called(*words)
    assert done.returncode == 1
    assert error in done.stderr


@pytest.mark.long
def test_without_a_device_it_says_so_and_checks_what_it_can(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has one")
    done = called("--only", "product,undisturbed", "--run-for", "5", "--into", str(tmp_path))
    assert "no GPU" in done.stderr
    checks = json.loads((tmp_path / "results.json").read_text())["checks"]
    assert [row["seen"] for row in checks["product"]["rows"]] == ["not run: no device"]
    losses = checks["undisturbed"]["rows"][0]
    assert losses["what"] == "mlp: first losses" and losses["held"], losses
