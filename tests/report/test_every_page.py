"""Every page that a command writes as a file: readable by everybody, at any width, without asking any machine."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess

import pytest
from browser import axe_violations, said_by, without_room
from test_trace_page import pages as trace_pages  # noqa: F401

from tests.conftest import BINARY

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = [ROOT / "build/release/src" / tool for tool in ("report/report_sample", "fleet/page/fleet_page_sample")]
SNAPSHOT = ROOT / "tests/trace/snapshots/varied-0.pickle.zst"
RUNS = ["input-bound", "straggler", "one-step-trace", "hostile-texts"]
FLEET = ["job", "job-of-one-run", "fleet", "letter", "letter-without-edits"]
ALL = [*RUNS, *FLEET, "memory", "trace", "compared", "eight-compared"]
WIDTHS = [390, 768, 1280, 1920]

pytestmark = pytest.mark.long


def compare(trace: pathlib.Path, directory: pathlib.Path) -> None:
    """Two recordings, and eight, of which every second has half as long kernels and a name that is hard to break."""
    other = json.loads(trace.read_text())
    for each in other["traceEvents"]:
        each["dur"] = each["dur"] // 2 if each["cat"] == "kernel" else each["dur"]
    faster = directory / f"{'half-of-the-time' * 4}.json"
    faster.write_text(json.dumps(other))
    for name, count in (("compared", 1), ("eight-compared", 4)):
        command = [BINARY, "compare", *[trace, faster] * count, "--fail-if", "slower 3%"]
        command += ["--html", directory / f"{name}.html"]
        subprocess.run(command, capture_output=True)  # fails: how fast a trace is has no interval
        assert "shares of the step" in (directory / f"{name}.html").read_text()


@pytest.fixture(scope="module")
def every_page(tmp_path_factory, trace_pages) -> pathlib.Path:  # noqa: F811
    if not all(tool.exists() for tool in (*SAMPLES, BINARY)):
        pytest.skip("the samples are not built: make build")
    directory = tmp_path_factory.mktemp("pages")
    for tool in SAMPLES:
        subprocess.run([tool, directory], check=True)
    subprocess.run([BINARY, "explain", "-q", SNAPSHOT, "--html", directory / "memory.html"], check=True)
    shutil.copy(trace_pages / "page.html", directory / "trace.html")
    compare(trace_pages / "trace.json", directory)
    return directory


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("theme", "width"), [("light", 1920), ("dark", 1280), ("light", 500)])
def test_axe_finds_nothing_that_keeps_anybody_from_reading(every_page, tmp_path, name, theme, width):
    assert axe_violations(every_page, tmp_path, name, theme, width) == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ALL)
def test_nothing_is_wider_than_its_window(every_page, tmp_path, name, width):
    room, taken, too_wide = without_room(every_page, tmp_path, name, width)
    assert room <= width
    assert (taken, too_wide) == (room, [])


@pytest.mark.parametrize("name", ALL)
def test_a_page_asks_no_machine_for_anything(every_page, tmp_path, name):
    asked = said_by(
        every_page, tmp_path, name, "said = performance.getEntriesByType('resource').map((each) => each.name)"
    )
    assert [each for each in asked if not each.startswith("data:")] == []
    assert "default-src 'none'" in (every_page / f"{name}.html").read_text()
