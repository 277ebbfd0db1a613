"""`fullbore top` on a terminal as a user sees it, and its lines of JSON against their schema."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from terminal import Terminal  # noqa: E402

ROOT = Path(__file__).parents[2]
FULLBORE = Path(os.environ.get("FULLBORE", ROOT / "build/release/fullbore"))
PATIENCE_S = 60
ENVIRONMENT = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}


def top(*arguments: str, **options: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [FULLBORE, "top", *arguments], capture_output=True, text=True, timeout=PATIENCE_S, env=ENVIRONMENT, **options
    )


def shows(terminal: Terminal, text: str) -> bool:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if any(text in row for row in terminal.screen.display):
            return True
        if not terminal.read(0.1):
            return False
    return False


@pytest.fixture
def recorded(tmp_path: Path):
    """A command that is being recorded."""
    command = [FULLBORE, "run", "--name", "watched", "-o", tmp_path, "--quiet", "--", "sleep", "600"]
    with subprocess.Popen([str(word) for word in command], start_new_session=True) as process:
        yield tmp_path
        os.killpg(process.pid, signal.SIGKILL)


def test_once_prints_the_machine_of_a_canned_root(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": "MemTotal: 16000000 kB\nMemFree: 1000 kB\nMemAvailable: 4000000 kB\n",
        "proc/loadavg": "1.50 1.0 0.5 1/100 1234\n",
        "proc/stat": "cpu  100 0 0 100 0 0 0 0 0 0\ncpu0 100 0 0 100 0 0 0 0 0 0\n",
        "proc/sys/kernel/hostname": "canned\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    result = top("--once", "--root", str(tmp_path), cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "none is being recorded here: fullbore run -- python train.py" in result.stdout
    assert "load 1.50" in result.stdout and "12 GB of 16 GB" in result.stdout
    assert "\x1b" not in result.stdout  # no terminal, no colours


def test_json_has_a_line_that_keeps_to_its_schema(recorded: Path) -> None:
    schema = json.loads((ROOT / "docs/top.schema.json").read_text())
    until = time.monotonic() + PATIENCE_S
    names: list[str] = []
    while not names and time.monotonic() < until:
        result = top("--json", "-", "--once", "--dir", str(recorded))
        assert result.returncode == 0, result.stderr
        frame = json.loads(result.stdout)
        jsonschema.validate(frame, schema)
        names = [run["name"] for run in frame["runs"]]
    assert len(names) == 1 and names[0].endswith("watched")


def test_keys_open_a_run_and_the_terminal_is_given_back(recorded: Path) -> None:
    # As what the emulator emulates: it does not know xterm's way to repeat a character.
    environment = {**ENVIRONMENT, "TERM": "linux"}
    terminal = Terminal([str(FULLBORE), "top", "--dir", str(recorded)], environment, recorded, rows=24, columns=80)
    assert shows(terminal, "watched") and shows(terminal, "MACHINE")
    terminal.type("\r")
    assert shows(terminal, "Esc back")
    terminal.type("h")
    assert shows(terminal, "KEYS")
    terminal.type("\x1b")
    assert shows(terminal, "MACHINE")
    terminal.resize(40)
    os.kill(terminal.pid, signal.SIGWINCH)
    terminal.type("q")
    while terminal.read(0.1):
        pass
    assert terminal.raw.rindex(b"\x1b[?25h") > terminal.raw.rindex(b"\x1b[?25l"), "the cursor is back"


@pytest.fixture
def at_report(recorded: Path):
    """The report of a run, which top has printed."""
    environment = {**ENVIRONMENT, "TERM": "linux"}
    terminal = Terminal([str(FULLBORE), "top", "--dir", str(recorded)], environment, recorded, rows=24, columns=80)
    assert shows(terminal, "watched")
    terminal.type("e")
    assert shows(terminal, "Enter: back to top")
    yield terminal
    terminal.close()


def test_ctrl_c_at_a_report_leads_back_to_top(at_report: Terminal) -> None:
    at_report.type("\x03")
    at_report.until(
        lambda: (
            not any("back to top" in row for row in at_report.screen.display)
            and any("MACHINE" in row for row in at_report.screen.display)
        ),
        "top",
    )
    at_report.type("q")
    assert at_report.until_end() == 0


def test_a_signal_ends_top_at_a_report(at_report: Terminal) -> None:
    os.kill(at_report.pid, signal.SIGTERM)
    assert at_report.until_end() == 128 + signal.SIGTERM


def test_a_signal_gives_the_terminal_back(tmp_path: Path) -> None:
    terminal = Terminal([str(FULLBORE), "top"], ENVIRONMENT, tmp_path)
    assert shows(terminal, "MACHINE")
    os.kill(terminal.pid, signal.SIGTERM)
    while terminal.read(0.1):
        pass
    assert b"\x1b[?1049l" in terminal.raw


def test_without_a_terminal_it_names_what_needs_none() -> None:
    result = top(stdin=subprocess.DEVNULL)
    assert result.returncode == 2
    assert "--once prints one frame" in result.stderr
