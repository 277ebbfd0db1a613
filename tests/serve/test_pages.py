"""The pages of `fullbore serve` in a browser: what they show, that they log nothing, light, dark and narrow."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from importlib.resources import files

import pytest

from tests.serve.browser import Browser
from tests.serve.conftest import MADE_RUNS, TOKEN, start

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HOSTILE = "<img src=x onerror=document.title='owned'>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    opened = Browser(CHROMIUM, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("path", "needles"),
    [
        ("/", ["made-live-0", "made-5", "running", "Training waits", "Compare", "Waste"]),
        ("/runs/made-0", ["Training waits for data", "Where each step's time goes", "Note and tags", "Series as CSV"]),
        ("/runs/made-live-0", ["last minute", "samples/s", "running"]),
        ("/compare?runs=made-0,made-1", ["2 runs compared", "against the first", "Throughput over the steps"]),
        ("/alerts", ["Nothing fires."]),
        ("/login", ["Continue"]),
    ],
)
@pytest.mark.parametrize(("width", "dark"), [(1200, False), (390, True)])
def test_every_page_shows_what_it_is_for_at_any_width_and_logs_nothing(browser, serving, path, needles, width, dark):
    browser.open(f"http://{serving.address}{path}", width, dark)
    for needle in needles:
        browser.wait(f"document.body.innerText.includes({needle!r})")
    assert browser.console == []
    assert browser.value("document.documentElement.dataset.theme") == ("dark" if dark else "light")
    assert browser.value("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/?group=command",
        "/runs/made-0",
        "/runs/made-live-0",
        "/runs/missing",
        "/compare",
        "/compare?runs=made-0,made-1",
        "/alerts",
        "/login",
    ],
)
@pytest.mark.parametrize(("width", "dark"), [(1200, False), (390, True)])
def test_axe_finds_nothing_that_keeps_anybody_from_reading(browser, serving, path, width, dark):
    browser.open(f"http://{serving.address}{path}", width, dark)
    browser.value("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    browser.value((files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8") + "; 0")
    found = browser.value("axe.run().then((found) => JSON.stringify(found.violations))")
    violations = [[each["id"], *(node["target"] for node in each["nodes"][:3])] for each in json.loads(found)]
    assert violations == []


def test_a_live_page_follows_its_run(browser, serving):
    browser.open(f"http://{serving.address}/runs/made-live-0")
    labels = "[...document.querySelectorAll('.live .label')]"
    steps = f"{labels}.find((each) => each.textContent === 'steps')?.nextSibling.textContent"
    first = browser.wait(steps)
    browser.wait(f"({steps}) !== {first!r}")


def test_runs_are_filtered_sorted_grouped_and_compared_by_hand(browser, serving):
    browser.open(f"http://{serving.address}/")
    rows = "[...document.querySelectorAll('td.run a')].map((each) => each.textContent).join()"
    browser.wait(f"{rows}.includes('made-5')")
    browser.value("query.value = 'state:running'; query.dispatchEvent(new Event('input'))")
    browser.wait(f"{rows} === 'made-live-0'")
    assert browser.value("location.search") == "?q=state%3Arunning"
    browser.value("query.value = ''; query.dispatchEvent(new Event('input'))")
    browser.wait(f"{rows}.includes('made-5')")
    browser.value(
        "[...document.querySelectorAll('th button')].find((each) => each.textContent.startsWith('Run')).click()"
    )
    browser.wait("location.search === '?sort=-name'")
    browser.value("group.value = 'tag:lr'; group.dispatchEvent(new Event('change'))")
    browser.wait("document.querySelectorAll('tr.group').length > 0")
    browser.value(
        "for (const name of ['made-3', 'made-4']) document.querySelector(`[aria-label='Compare ${name}']`).click()"
    )
    browser.value("compare.click()")
    browser.wait("location.pathname === '/compare' && document.body.innerText.includes('2 runs compared')")


def test_the_sorted_column_has_one_arrow(browser, serving):
    browser.open(f"http://{serving.address}/?sort=-name")
    button = "document.querySelector('th[aria-sort=descending] button')"
    browser.wait(f"{button} !== null")
    arrows = f"{button}.textContent + getComputedStyle({button}, '::after').content"
    assert browser.value(arrows).count("↓") == 1


def test_an_older_answer_does_not_replace_a_newer_one(browser, serving):
    """The answer to what was typed first comes after the one to what was typed last."""
    browser.open(f"http://{serving.address}/")
    rows = "[...document.querySelectorAll('td.run a')].map((each) => each.textContent).join()"
    browser.wait(f"{rows}.includes('made-5')")
    browser.value(
        "globalThis.held = []; globalThis.real = globalThis.fetch;"
        "globalThis.fetch = (...all) => new Promise((go) => held.push(() => go(real(...all)))); 0"
    )
    browser.value("state.q = 'state:ended'; globalThis.older = refresh(); 0")
    browser.value("state.q = 'state:running'; globalThis.newer = refresh(); 0")
    browser.value("held[1](); newer.then(() => 0)")
    browser.value("held[0](); older.then(() => 0)")
    browser.value("globalThis.fetch = real; 0")
    assert browser.value(rows) == "made-live-0"


def test_an_ended_run_has_no_empty_card_above_it(browser, serving):
    browser.open(f"http://{serving.address}/runs/made-0")
    browser.wait("document.querySelector('.card.live') !== null && document.body.innerText.includes('Note and tags')")
    assert browser.value("document.querySelector('.card.live').getBoundingClientRect().height") == 0


def test_a_note_is_saved_with_the_token_only(browser, serving):
    browser.open(f"http://{serving.address}/runs/made-3")
    browser.wait("document.querySelector('textarea') !== null")
    save = "document.querySelector('.about form').requestSubmit()"
    browser.value("document.querySelector('textarea').value = 'seen by hand'; " + save)
    browser.wait("document.querySelector('.said').textContent.includes('token')")
    browser.value(f"document.querySelector('.about [type=password]').value = {TOKEN!r}; {save}")
    browser.wait("document.querySelector('.said').textContent === 'saved'")
    assert serving.ask("/api/v1/runs/made-3/about").json["note"] == "seen by hand"


def test_a_name_that_is_markup_runs_nothing(browser, tmp_path):
    subprocess.run([MADE_RUNS, tmp_path, HOSTILE, "2", "0", "0"], check=True, stdout=subprocess.DEVNULL)
    server = start("--dir", str(tmp_path))
    try:
        name = HOSTILE.replace("<", "%3C").replace(">", "%3E").replace(" ", "%20")
        for path in ("/", f"/runs/{name}-0", f"/compare?runs={name}-0,{name}-1"):
            browser.open(f"http://{server.address}{path}")
            browser.wait("document.body.innerText.includes('<img src=x')")
            assert browser.value("document.title") != "owned"
            assert browser.value("document.images.length") == 0
            assert browser.console == []
    finally:
        server.process.terminate()
        server.process.wait(timeout=30)
