"""The page of a memory snapshot, in a browser."""

from __future__ import annotations

import pathlib

from browser import in_browser

SNAPSHOT = pathlib.Path(__file__).parents[1] / "trace" / "snapshots" / "varied-0.pickle.zst"


def test_the_page_draws_memory_over_time_and_who_held_it(fullbore, tmp_path):
    page = fullbore.directory / "memory.html"
    said = fullbore.call("explain", SNAPSHOT, "--html", page, "--what-if", "batch=2x")
    assert said.code == 0, said.stderr
    drawn, console = in_browser(page, tmp_path / "profile")
    assert console == []
    assert drawn.having("figure", "panel") and drawn.having("path", "line")
    assert "In use when it was fullest" in drawn.text and "program.py:" in drawn.text
    assert "batch=2x" in drawn.text
