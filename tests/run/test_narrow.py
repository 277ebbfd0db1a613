"""Output on a narrow terminal: no line is wider, so the terminal itself breaks no words."""

from __future__ import annotations

import json
import pathlib
import re
import sys

import pytest

pytest.importorskip("pyte")
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from terminal import Terminal  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.fbr"))


def shown(fullbore, columns: int, *arguments: str | pathlib.Path) -> list[str]:
    """The lines as printed, before the terminal breaks any."""
    command = [*fullbore.arguments([])[:1], *(str(argument) for argument in arguments)]
    env = {**fullbore.environment(), "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    terminal = Terminal(command, env, fullbore.directory, columns=columns)
    try:
        assert terminal.until_end() == 0, terminal.text()
        return terminal.raw.decode().replace("\r", "").splitlines()
    finally:
        terminal.close()


def kernel(name: str, correlation: int, ts: float, dur: float) -> list[dict]:
    args = {"correlation": correlation, "device": 0, "stream": 7}
    launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": ts, "dur": 5, "pid": 1, "tid": 1}
    run = {"cat": "kernel", "name": name, "ts": ts + 10, "dur": dur, "pid": 0, "tid": 7}
    return [{"ph": "X", "args": args, **launch}, {"ph": "X", "args": args, **run}]


@pytest.fixture
def traces(tmp_path) -> list[pathlib.Path]:
    paths = []
    for name, dur in (("before", 400), ("after", 250)):
        events = [e for i in range(8) for e in kernel("void at::native::elementwise_kernel<4>", i, 1000 * i, dur)]
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return paths


@pytest.fixture
def runs(fullbore) -> str:
    for name, tags in (("first", []), ("second", ["--tag", "team=vision", "--tag", "note=larger-images-and-workers"])):
        done = fullbore.call("run", "-q", "-o", "all", "--name", name, *tags, "--", "true")
        assert done.code == 0, done.stderr
    return "all"


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(fullbore, runs, traces, columns):
    for arguments in (
        ["runs", "-o", runs],
        ["explain", GOLDEN[0]],
        ["explain", traces[0]],
        ["explain", "--section", "kernels", traces[0]],
        ["compare", GOLDEN[0], GOLDEN[1]],
        ["compare", *traces],
    ):
        for line in shown(fullbore, columns, *arguments):
            assert len(line) <= columns, (arguments, line)


def test_a_narrow_list_of_runs_keeps_names_and_ends_and_says_what_it_leaves_out(fullbore, runs):
    wide, narrow = (shown(fullbore, columns, "runs", "-o", runs) for columns in (120, 50))
    assert "size" in wide[0] and not any("no room" in line for line in wide)
    assert narrow[0].split()[0] == "run" and narrow[0].split()[-1] == "end"
    left_out = " ".join(narrow[next(i for i, line in enumerate(narrow) if line.startswith("no room for: ")) :])
    assert "size" in left_out and "command" in left_out
    assert any("team=vision" in line for line in narrow)


def test_a_narrow_comparison_says_the_same_as_a_wide_one(fullbore, traces):
    for pair in (GOLDEN[:2], traces):
        wide, narrow = (" ".join(shown(fullbore, columns, "compare", *pair)).split() for columns in (160, 60))
        figures = {word for word in wide if word.replace(".", "").replace(",", "").isdigit()}
        assert figures <= set(narrow)


COMMANDS = ["", "run", "tune", "measure", "explain", "compare", "export", "loader", "loader bench", "loader pack"]
COMMANDS += [
    "runs",
    "fleet",
    "fleet collect",
    "fleet report",
    "fleet job",
    "fleet nodes",
    "agent",
    "plan",
    "completion",
    "serve",
    "top",
    "alerts",
    "alerts test",
    "alerts watch",
    "doctor",
    "help",
    "mcp",
]


def test_every_command_s_help_is_looked_at_here(fullbore):
    for of in ("", "loader", "alerts", "fleet"):
        listed = fullbore.call(*of.split(), "--help").stdout.decode().partition("ommands:\n")[2]
        names = re.findall(r"^  (\w+) ", listed, re.MULTILINE)
        assert names and {f"{of} {name}".strip() for name in names} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_no_wider_than_the_terminal_or_a_page(fullbore, command):
    in_a_pipe = fullbore.call(*command.split(), "--help").stdout.decode()
    assert max(map(len, in_a_pipe.splitlines())) <= 100
    for columns in (60, 80, 200):
        lines = shown(fullbore, columns, *command.split(), "--help")
        assert max(map(len, lines)) <= min(columns, 100)
        assert " ".join(lines).split() == in_a_pipe.split(), "the same words"
