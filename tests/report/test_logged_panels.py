"""What a script logs itself has panels on the time axis of the page, below the throughput."""

from __future__ import annotations

import pathlib
import sys

import pytest
from browser import axe_violations, said_by

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python"

# Printed, so that no logger is needed; the names are what a page must take as text.
TRAINING = """
import time
import fullbore

for i in range(40):
    fullbore.step()
    print(f"train loss {2 - i / 20:.3f}, val loss {2.5 - i / 20:.3f}, lr=1e-{4 + i // 10:02}, negative: {-1.5 - i}")
    time.sleep(0.05)
"""


@pytest.fixture
def page(fullbore, tmp_path) -> pathlib.Path:
    script = fullbore.script("train.py", TRAINING)
    ended = fullbore.run(sys.executable, script, env={"PYTHONPATH": str(PACKAGE)})
    assert ended.code == 0, ended.stderr
    said = fullbore.call("explain", ended.run_file, "--html", tmp_path / "logged.html")
    assert said.code == 0, said.stderr
    return tmp_path


@pytest.mark.long
def test_losses_share_a_panel_whose_scale_fits_their_values(page):
    script = """
      const panels = axis.panels.filter((each) => each.spec.id.startsWith("logged-"));
      said = panels.map((panel) => [panel.spec.title, panel.spec.lines.map((line) => line.label), panel.low, panel.top,
                                    panel.node.innerText.includes("NaN")]);
      said.push(axis.panels.map((each) => each.spec.id).filter((id) => /^(throughput|logged|cpu)/.test(id)));
    """
    losses, *others, order = said_by(page, page, "logged", script)
    assert losses[:2] == ["loss, logged by the script", ["train loss", "val loss"]]
    assert losses[2:4] == [0, 5]
    assert [each[0].split(",")[0] for each in others] == ["lr", "negative"]
    assert others[1][2] < -39 and others[1][3] > -3.5, "the scale begins at the lowest value"
    assert not any(each[4] for each in (losses, *others))
    assert order.index("throughput") < order.index("logged-0") < order.index("cpu")


@pytest.mark.long
def test_small_values_are_written_with_their_digits(page):
    script = """
      const panel = axis.panels.find((each) => each.spec.title.startsWith("lr"));
      axis.point(axis.end * 0.99);
      said = panel.svg.getAttribute("aria-valuetext");
    """
    assert "lr 1e-7" in said_by(page, page, "logged", script)


@pytest.mark.long
def test_everybody_can_read_it(page):
    assert axe_violations(page, page, "logged", "light", 1200) == []
