"""What docs/python.md shows runs as it stands there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def run_blocks(fullbore, blocks: list[str]) -> dict[str, str | None]:
    """What went wrong in each, in a directory of their own."""
    pieces = {f"block {number}": block for number, block in enumerate(blocks)}
    package = os.pathsep.join(filter(None, [str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]))
    environment = fullbore.environment({"PYTHONPATH": package, "FULLBORE_PROGRAM": str(fullbore.binary)})
    runner = [sys.executable, Path(__file__).with_name("run_blocks.py")]
    done = subprocess.run(runner, input=json.dumps(pieces), env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.long
def test_its_python_runs(fullbore):
    reads, records, *trainers = BLOCKS
    assert len(trainers) == 2
    found = run_blocks(fullbore, [records + reads, *trainers])  # there has to be a run that is the last
    assert found == dict.fromkeys(found)


def test_its_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", PAGE)
    assert links and [link for link in links if not (ROOT / "docs" / link).exists()] == []


def test_its_commands_exist(fullbore):
    usage = fullbore.call("export", "--help").stdout.decode()
    formats = re.findall(r"--to ([\w-]+)", PAGE)
    assert formats and [each for each in formats if each not in usage] == []
