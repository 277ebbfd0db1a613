"""What the pages of the site tell people to type: every block is run, as a reader would run it.

A block of Python that begins with `# NAME.py` is that file; blocks of shell run one after another in one directory.
Notes behind the language say what is different: `not-run: REASON`, `status N or M: REASON`, `slurm` (on a cluster of
one node).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = ["index", "tutorial", "troubleshooting", "other-traces", "perfetto"]
PAGES += sorted(f"howto/{page.stem}" for page in (DOCS / "howto").glob("*.md"))
TIMEOUT_S = 900  # of a block: a hang, on any machine
# What a page needs beside torch, and the finding that its first run has, where the page says so.
NEEDS = {"lightning": ["lightning"], "transformers": ["transformers"], "keras": ["keras", "jax"], "jax": ["jax"]}
FINDINGS = {"tutorial": "input-bound", "howto/jax": "input-bound", "howto/agents": "input-bound"}


class Block(NamedTuple):
    language: str
    note: str
    code: str

    @property
    def file(self) -> str:
        named = re.match(r"# (\w+\.py)\n", self.code)
        return named[1] if named and self.language == "python" else ""

    @property
    def statuses(self) -> list[int]:
        given = re.match(r"status (\d)(?: or (\d))?: ", self.note)
        return [int(status) for status in given.groups() if status] if given else [0]

    @property
    def runs(self) -> bool:
        return self.language == "sh" and not self.note.startswith("not-run: ")


def blocks_of(page: str) -> list[Block]:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    found = re.findall(r"^( *)```(\w+) ?(.*?)\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL)
    return [Block(language, note, textwrap.dedent(code)) for _, language, note, code in found]


@pytest.fixture
def shell(fullbore, tmp_path) -> Iterator:
    """Runs a block of shell where `fullbore` and `python` are those of the tests."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "fullbore").symlink_to(fullbore.binary)
    beside_python = Path(sys.executable).parent  # not a link: Python finds its packages by its own place

    def run(block: Block, extra: dict[str, str]) -> subprocess.CompletedProcess:
        path = f"{programs}:{beside_python}:{extra.pop('PATH', os.environ['PATH'])}"
        package = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        environment = {**fullbore.environment({"PYTHONPATH": package, "HF_HUB_OFFLINE": "1", **extra}), "PATH": path}
        if "--windows" in block.code:
            environment.pop("FULLBORE_WINDOWS")
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.code],
            env=environment,
            cwd=fullbore.directory,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )

    return run


def write_files(page: str, directory: Path) -> None:
    for block in blocks_of(page):
        if block.file:
            (directory / block.file).write_text(block.code)


def run_page(page: str, fullbore, shell, extra: dict[str, str]) -> None:
    write_files(page, fullbore.directory)
    for block in blocks_of(page):
        if not block.runs:
            continue
        done = shell(block, dict(extra))
        assert done.returncode in block.statuses, f"{block.code}\n{done.stdout}\n{done.stderr}"
        asked = re.search(r'asks "(.*)"', block.note)
        assert asked is None or asked[1] in done.stderr


def runs_in(fullbore, directory: str) -> list[dict]:
    return json.loads(fullbore.call("runs", "-o", directory, "--json", "-").stdout)


@pytest.mark.long
@pytest.mark.timeout(2 * TIMEOUT_S)  # the tutorial's proofs take minutes
@pytest.mark.parametrize("page", [page for page in PAGES if page != "howto/slurm"])
def test_what_a_page_says_to_type_works(fullbore, shell, page):
    for module in NEEDS.get(page.partition("/")[2], []):
        pytest.importorskip(module)
    run_page(page, fullbore, shell, {})
    runs = runs_in(fullbore, ".fullbore/runs")
    trains = any("fullbore run" in block.code for block in blocks_of(page) if block.runs)
    assert bool(runs) == trains
    # A trial of compare or tune may be cut off by the budget, before its first step where the machine is busy.
    assert [run["id"] for run in runs if not run["steps"] and not run["tags"]] == []
    if page in FINDINGS:
        assert fullbore.explain(runs[0]["path"])["findings"][0]["id"] == FINDINGS[page]


@pytest.mark.long
def test_what_the_page_about_slurm_says_to_type_works_on_a_cluster(fullbore, shell, tmp_path):
    sys.path.insert(0, str(ROOT / "scripts"))
    from slurm_cluster import cluster, missing

    if missing():
        pytest.skip(missing())
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster") as environment:
        run_page("howto/slurm", fullbore, shell, environment)
    (run,) = runs_in(fullbore, "runs")
    assert run["steps"] == 100


@pytest.mark.parametrize("page", PAGES)
def test_blocks_are_closed_and_parse(page):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    blocks = blocks_of(page)
    assert text.count("```") == 2 * len(blocks)
    for block in blocks:
        assert block.language in {"python", "sh", "text", "dockerfile"}
        assert not block.note or re.match(r"not-run: \w|status \d( or \d)?: \w|slurm$", block.note), block.note
        if block.language == "sh":
            assert subprocess.run(["bash", "-n"], input=block.code, text=True).returncode == 0
        if block.language == "python":
            assert block.file, "which file is it?"
            compile(block.code, page, "exec")


@pytest.mark.parametrize("page", PAGES)
def test_options_in_its_commands_exist(fullbore, page):
    commands = re.findall(
        r"\bfullbore ((?:\w+ )+[^`\n|;>]*)", "\n".join(b.code for b in blocks_of(page)).replace("\\\n", "")
    )
    for command in commands:
        words = command.split(" -- ")[0].split()
        usage = fullbore.call(words[0], "--help").stdout.decode()
        for option in (word for word in words if re.match(r"--?\w", word) and words[0] != "compare"):
            assert re.search(rf"(^|[ ,]){option}\b", usage), f"fullbore {words[0]} has no {option}"


def test_messages_that_troubleshooting_explains_are_said_somewhere():
    sources = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.cc") if not path.stem.endswith("_test")
    )
    said = re.sub(r'"\s*\n\s*"', "", sources)  # a text over several lines
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    messages = re.findall(r"^\*\*`(.*?)`\*\*", page, re.MULTILINE)
    assert len(messages) > 15
    placed = [re.sub(r"'\w+'", "'{}'", message).replace("of fullbore", "of {}") for message in messages]
    assert [message for message in placed if message not in said] == []
