"""The page of a run on several machines, in a browser: a square for each rank."""

from __future__ import annotations

import pathlib
import subprocess

import pytest
from browser import axe_violations, on_a_telephone, said_by

WRITE_NODES = pathlib.Path(__file__).parents[2] / "build" / "release" / "bench" / "write_nodes"


@pytest.fixture
def machines(fullbore) -> pathlib.Path:
    """The directory of machines.html: four machines of six ranks each, of which the third is slow."""
    if not WRITE_NODES.exists():
        pytest.skip("the benchmarks are not built")
    subprocess.run([WRITE_NODES, fullbore.directory, "4", "6", "40", "2"], check=True, stdout=subprocess.DEVNULL)
    page = fullbore.directory / "machines.html"
    said = fullbore.call("explain", fullbore.directory / "made.fbr", "--html", page, "-q")
    assert said.code == 0, said.stderr
    return fullbore.directory


def test_the_slow_machine_stands_out_and_says_why(machines, tmp_path):
    script = """
        const rows = [...document.querySelectorAll("#nodes tbody tr")];
        const colors = rows.map((row) => [...row.querySelectorAll(".squares span")].map((s) => s.style.background));
        const differs = rows.map((row) => row.lastChild.textContent);
        const chosen = document.querySelector("#nodes select");
        const first = chosen.value;
        chosen.value = "backward";
        chosen.dispatchEvent(new Event("change"));
        const title = document.querySelector("#nodes .squares span").title;
        said = { squares: colors.map((row) => row.length), odd: colors[2][0] !== colors[1][0], differs, first, title };
    """
    said = said_by(machines, tmp_path / "profile", "machines", script)
    assert said["squares"] == [6, 6, 6, 6]
    assert said["odd"]
    assert said["first"] == "comm_exposed"  # that in which they differ most
    assert said["differs"][2].startswith("SM clock of its slowest GPU 1.")
    assert [said["differs"][i] for i in (0, 1, 3)] == ["", "", ""]
    assert said["title"].startswith("rank 0: ")


@pytest.mark.long
def test_anybody_can_read_it_and_on_a_telephone(machines, tmp_path):
    assert axe_violations(machines, tmp_path, "machines", "light", 1200) == []
    window, width, too_wide = on_a_telephone(machines, tmp_path, "machines")
    assert (width, too_wide) == (window, [])
