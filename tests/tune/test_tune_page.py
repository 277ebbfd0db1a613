"""`fullbore tune --html`: the page of an answer, in a browser."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from browser import Page, axe_violations, in_browser, on_a_telephone, said_by
from tune_scripts import PRINTS

from tests.conftest import BINARY

pytestmark = pytest.mark.long  # for the answers that its pages are made of
# A throughput that grows with the batch and the workers to where either is enough; too large a batch has no memory.
GROWS = """
import random, sys, time
batch, workers = int(sys.argv[1]), int(sys.argv[2])
if batch > 32:
    raise MemoryError(f"a batch of {batch}")
kept = b"x" * (batch * 4_000_000)
while True:
    time.sleep(0.02)
    print(f"{min(100 * workers, 10 * batch) * random.gauss(1, 0.01)} img/s", flush=True)
"""
METRIC = ("--metric", "([0-9.]+) img/s")
HOSTILE = "</script><script>window.owned = 1</script><img src=x onerror='window.owned = 1'>"


def write_page(directory: pathlib.Path, name: str, *arguments: str | os.PathLike, code: int = 0) -> None:
    own = directory / name
    own.mkdir()
    done = subprocess.run(
        [BINARY, "tune", "--html", directory / f"{name}.html", *METRIC, *arguments],
        cwd=own,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=180,
    )
    assert done.returncode == code, done.stderr.decode()


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> pathlib.Path:
    """A directory with the pages of a grid, of a search over batches, of switches, and of a program that fails."""
    if not BINARY.exists():
        pytest.skip("the binary is not built: make build")
    directory = tmp_path_factory.mktemp("pages")
    grows, prints = directory / "grows.py", directory / "prints.py"
    grows.write_text(GROWS)
    prints.write_text(PRINTS)
    python = ("--", sys.executable)
    by_length = f"import runpy, sys; sys.argv[1] = str(len(sys.argv[1])); runpy.run_path({str(prints)!r})"
    pages = {
        "grid": ("--exhaustive", "--set", "batch_size=8,16,64", "--set", "workers=1,2")
        + (*python, grows, "{batch_size}", "{workers}"),
        "search": ("--set", "batch_size=4,8,16,32", *python, grows, "{batch_size}", "8"),
        "switches": ("--set", f"mode=a,bbb,{HOSTILE}", *python, "-u", "-c", by_length, "{mode}", HOSTILE),
        "nothing": ("--set", "mode=a,b", *python, "-c", "raise ValueError('no such file')", "{mode}"),
    }
    with ThreadPoolExecutor() as together:  # they sleep most of the time
        written = [
            together.submit(write_page, directory, name, *arguments, code=int(name == "nothing"))
            for name, arguments in pages.items()
        ]
        for each in written:
            each.result()
    return directory


ALL = ["grid", "search", "switches", "nothing"]


def shown(pages: pathlib.Path, profile: pathlib.Path, name: str) -> Page:
    page, console = in_browser(pages / f"{name}.html", profile)
    assert console == []
    return page


@pytest.mark.parametrize("name", ALL)
def test_the_page_needs_no_network_and_logs_nothing(pages, tmp_path, name):
    page = shown(pages, tmp_path, name)
    assert page.having("section", "verdict")
    places = [a.get("src") or a.get("href") for _, a in page.elements if "src" in a or "href" in a]
    assert [place for place in places if not place.startswith("data:")] == []


def test_what_to_do_stands_at_the_top_with_its_gain(pages, tmp_path):
    page = shown(pages, tmp_path, "grid")
    assert "batch_size=16 workers=2 is" in page.text
    assert "grows.py 16 2" in page.text
    assert "May change training results. batch_size: the gradient" in page.text
    script = 'said = [".gain", ".gain small"].map((each) => document.querySelector(each).textContent)'
    gain, interval = said_by(pages, tmp_path, "grid", script)
    assert float(gain.split("×")[0]) == pytest.approx(2, rel=0.1)
    assert "→" in interval and "samples/s" in interval


def test_each_other_setting_has_its_line_over_the_batch_and_a_failure_its_cross(pages, tmp_path):
    script = """
      const { spec, axis } = panels.find((each) => each.spec.id === "curve");
      said = [spec.title, axis.all.map((each) => each[1]),
        spec.lines.map((line) => [line.label, line.parts.flat().map((point) => Math.round(2 ** point.x))])];
    """
    title, ticks, lines = said_by(pages, tmp_path, "grid", script)
    assert title == "Throughput over batch_size, samples/s"
    assert ticks == ["8", "16", "64"]
    assert lines == [["workers=2", [8, 16]], ["workers=1", [8, 16]], ["could not be measured", [64, 64]]]


def test_what_was_predicted_stands_beside_what_was_measured(pages, tmp_path):
    assert "panel-predicted" not in [a.get("id") for a in shown(pages, tmp_path, "grid").having("figure", "panel")]
    script = """
      const points = panels.find((each) => each.spec.id === "predicted").spec.lines[0].parts.flat();
      said = points.map((point) => [point.x, point.y, point.says]);
    """
    points = said_by(pages, tmp_path, "search", script)
    assert points
    for _, measured, says in points:
        assert measured > 0
        assert "predicted" in says


def test_the_front_of_memory_is_joined_the_least_memory_first(pages, tmp_path):
    script = """
      const [front] = panels.find((each) => each.spec.id === "memory").spec.lines;
      said = [front.label, front.join, front.parts[0].map((point) => [point.x, point.y])];
    """
    label, join, points = said_by(pages, tmp_path, "grid", script)
    assert (label, join) == ("fastest for its memory", "steps")
    assert points == sorted(points)
    assert [rate for _, rate in points] == sorted(rate for _, rate in points)


def test_settings_without_a_size_are_bars(pages, tmp_path):
    script = """
      said = [...document.querySelectorAll(".bars li")].map((each) =>
        [each.className, each.querySelector(".name span").textContent,
         parseFloat(each.querySelector(".track div").style.width)]);
    """
    plain, three, hostile = said_by(pages, tmp_path, "switches", script)
    assert plain[1] == "mode=a"
    assert three[1] == "mode=bbb"
    assert three[2] == pytest.approx(3 * plain[2], rel=0.01)
    assert hostile == ["recommended", "mode=" + HOSTILE, pytest.approx(100, rel=0.01)]


def test_every_trial_is_a_row_that_can_be_sorted(pages, tmp_path):
    script = """
      const rows = () => [...document.querySelectorAll("#trials tbody tr")];
      const column = (i) => rows().map((row) => row.children[i].textContent);
      const first = column(1);
      document.querySelectorAll("#trials th button")[2].click();
      said = [first, column(2).filter(Boolean).map(parseFloat)];
    """
    settings, rates = said_by(pages, tmp_path, "grid", script)
    assert len(settings) == 6 + 4, "each combination, and the proof in turns"
    assert settings[0] == "batch_size=8 workers=1 as it was"
    assert "batch_size=16 workers=2 recommended" in settings
    assert rates == sorted(rates, reverse=True)


def test_the_arrow_keys_go_from_point_to_point_and_a_screen_reader_hears_each(pages, tmp_path):
    script = """
      const panel = panels.find((each) => each.spec.id === "curve");
      const press = (key) => panel.svg.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      const state = () => [panel.svg.getAttribute("aria-valuenow"), panel.svg.getAttribute("aria-valuetext")];
      said = [state()];
      for (const key of ["ArrowRight", "ArrowRight", "End", "Escape"]) { press(key); said.push(state()); }
    """
    none, first, second, last, again = said_by(pages, tmp_path, "grid", script)
    assert "the arrow keys" in none[1]
    assert first[0] == "1" and first[1].startswith("batch_size=8 workers=")
    assert second[0] == "2" and second[1] != first[1]
    assert last[0] == "6" and "out-of-memory" in last[1]
    assert again == none


def test_what_could_not_be_measured_says_why(pages, tmp_path):
    page = shown(pages, tmp_path, "nothing")
    assert "Nothing could be measured" in page.text
    assert "ValueError: no such file" in page.text


def test_hostile_texts_do_nothing(pages, tmp_path):
    page = shown(pages, tmp_path, "switches")
    assert "mode=" + HOSTILE in page.text
    assert [t for t, _ in page.elements if t == "img"] == []
    assert said_by(pages, tmp_path, "switches", "said = typeof owned") == "undefined"


@pytest.mark.parametrize(
    ("name", "theme", "width"),
    [
        ("grid", "light", 1200),
        ("grid", "dark", 500),
        ("search", "dark", 1200),
        ("switches", "light", 500),
        ("switches", "dark", 1200),
        ("nothing", "light", 1200),
    ],
)
def test_axe_finds_nothing_that_keeps_anybody_from_reading(pages, tmp_path, name, theme, width):
    assert axe_violations(pages, tmp_path, name, theme, width) == []


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_wider_than_a_telephone(pages, tmp_path, name):
    window, width, too_wide = on_a_telephone(pages, tmp_path, name)
    assert window <= 390
    assert (width, too_wide) == (window, [])
