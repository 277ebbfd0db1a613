"""The web report's charts are plain JavaScript: here the names of series in them are held to the table."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_charts_show_series_that_are_recorded():
    table = (ROOT / "src" / "record" / "metrics.inc").read_text()
    recorded = set(re.findall(r'^METRIC\(\w+, "(\w+)"', table, re.MULTILINE))
    prefixes = {name.split("_")[0] for name in recorded if "_" in name}
    charts = (ROOT / "web" / "report" / "panels.js").read_text()
    shown = {name for name in re.findall(r"\b([a-z]+_[a-z0-9_]+):", charts) if name.split("_")[0] in prefixes}
    assert len(shown) > 10
    assert shown <= recorded
