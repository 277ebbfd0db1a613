"""The pages of `fullbore fleet` in a browser: a job's waterfall, a report on many runs, the letter to one person."""

from __future__ import annotations

import pathlib
import subprocess

import pytest
from browser import axe_violations, in_browser, on_a_telephone, said_by

SAMPLE_TOOL = pathlib.Path(__file__).parents[2] / "build/release/src/fleet/page/fleet_page_sample"
ALL = ["job", "job-of-one-run", "fleet", "letter", "letter-without-edits"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> pathlib.Path:
    if not SAMPLE_TOOL.exists():
        pytest.skip("fleet_page_sample is not built: make build")
    directory = tmp_path_factory.mktemp("fleet")
    subprocess.run([SAMPLE_TOOL, directory], check=True)
    return directory


@pytest.mark.long
@pytest.mark.parametrize("name", ALL)
def test_the_page_needs_no_network_and_names_are_data(pages, tmp_path, name):
    page, console = in_browser(pages / f"{name}.html", tmp_path / "profile")
    assert console == []
    assert page.having("section", "verdict")
    places = [a.get("src") or a.get("href") for _, a in page.elements if "src" in a or "href" in a]
    assert [place for place in places if not place.startswith("data:")] == []
    assert [tag for tag, _ in page.elements if tag == "img"] == []


def test_the_bars_fall_from_what_was_paid_to_useful_work(pages, tmp_path):
    script = """
      const bars = [...document.querySelectorAll("#waterfall .fall")];
      const place = (bar, edge) => parseFloat(bar.querySelector("i").style[edge]);
      said = {
        says: bars.map((bar) => bar.querySelector(".says").textContent),
        begins: bars.map((bar) => place(bar, "left")),
        ends: bars.map((bar) => place(bar, "left") + place(bar, "width")),
        opened: [...document.querySelectorAll("#waterfall details")].at(-1).textContent,
        owned: Boolean(window.owned),
      };
    """
    said = said_by(pages, tmp_path / "profile", "job", script)
    assert said["says"][0] == "paid" and said["says"][-1] == "useful work"
    assert "waiting (input-bound)" in said["says"] and "lost steps" in said["says"]
    assert said["begins"][-1] == pytest.approx(0, abs=0.01)
    for above, below in zip(said["begins"][1:], said["ends"][2:], strict=False):
        assert below == pytest.approx(above, abs=0.01)
    assert "2026-11-01-0915-train" in said["opened"]
    assert not said["owned"]


def test_a_letter_has_three_edits_and_nothing_about_others(pages, tmp_path):
    page, console = in_browser(pages / "letter.html", tmp_path / "profile")
    assert console == []
    assert len(page.having("li", "edit")) == 3
    assert "Hello anna, three edits would bring back about" in page.text
    assert "user1" not in page.text
    assert "user1" not in (pages / "letter.html").read_text()


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "theme", "width"),
    [(name, theme, width) for name in ALL for theme, width in (("light", 1920), ("dark", 500))],
)
def test_axe_finds_nothing_that_keeps_anybody_from_reading(pages, tmp_path, name, theme, width):
    assert axe_violations(pages, tmp_path, name, theme, width) == []


@pytest.mark.long
@pytest.mark.parametrize("name", ALL)
def test_nothing_is_wider_than_a_telephone(pages, tmp_path, name):
    window, width, too_wide = on_a_telephone(pages, tmp_path, name)
    assert window <= 390
    assert (width, too_wide) == (window, [])
