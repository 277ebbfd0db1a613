"""What docs/language-models.md tells people to type."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "language-models.md").read_text()
BLOCKS = re.findall(r"^```(python|sh)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.long
def test_its_python_runs():
    pieces = {f"block {number}": code for number, (kind, code) in enumerate(BLOCKS) if kind == "python"}
    run_blocks = [sys.executable, Path(__file__).with_name("run_blocks.py")]
    done = subprocess.run(run_blocks, input=json.dumps(pieces), capture_output=True, text=True, check=True)
    assert pieces and json.loads(done.stdout) == dict.fromkeys(pieces)


@pytest.mark.parametrize("line", [line for kind, code in BLOCKS if kind == "sh" for line in code.splitlines()])
def test_its_commands_and_options_exist(fullbore, line):
    words = shlex.split(line.split(" -- ")[0])
    assert words[0] == "fullbore"
    usage = fullbore.call(words[1], "--help").stdout.decode()
    assert [option for option in words if option.startswith("--") and option.split("=")[0] not in usage] == []


def test_its_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", PAGE)
    assert links and [link for link in links if not (ROOT / "docs" / link).exists()] == []
