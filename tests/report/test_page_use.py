"""What a reader can do with the page: switch rows, move by keyboard, sort, search, save, and read it with any eyes."""

import json
import re
from pathlib import Path

import pytest
from browser import axe_violations, on_a_telephone, said_by


def test_a_click_on_a_key_switches_its_row_off_and_on(reports, tmp_path):
    script = """
      const panel = axis.panels.find((each) => each.spec.id === "shares"), key = panel.node.querySelector("button.key");
      const layers = () => [panel.svg.querySelectorAll(".layer").length, key.getAttribute("aria-pressed")];
      said = [layers()];
      for (let i = 0; i < 2; ++i) { key.click(); said.push(layers()); }
    """
    before, off, on = said_by(reports, tmp_path, "input-bound", script)
    assert off == [before[0] - 1, "false"]
    assert on == before


def test_a_row_that_is_off_has_no_say_in_the_scale(reports, tmp_path):
    script = """
      const panel = axis.panels.find((each) => each.spec.id === "disk");
      const tops = panel.spec.lines.map((line) => Math.max(...line.v)), highest = tops.indexOf(Math.max(...tops));
      const before = panel.scale();
      panel.node.querySelectorAll("button.key")[highest].click();
      said = [before, panel.scale()];
    """
    before, after = said_by(reports, tmp_path, "input-bound", script)
    assert after < before


def test_the_warm_up_does_not_flatten_what_follows(reports, tmp_path):
    script = """
      const panel = axis.panels.find((each) => each.spec.id === "step-time"), line = panel.spec.lines[0];
      const warmEnd = panel.spec.marks.warmEnd, steady = line.hi.filter((value, i) => line.t[i] > warmEnd);
      const all = panel.scale();
      axis.zoom(0, warmEnd);
      said = [all, niceAbove(1.05 * Math.max(...steady)), niceAbove(1.05 * Math.max(...line.hi)), panel.scale()];
    """
    all_in_view, of_steady, of_everything, of_warm_up = said_by(reports, tmp_path, "straggler", script)
    assert of_steady < of_everything, "the sample has no slow warm-up: this would show nothing"
    assert all_in_view == of_steady
    assert of_warm_up == of_everything


def test_the_keyboard_moves_the_cursor_and_a_screen_reader_hears_the_values(reports, tmp_path):
    script = """
      const panel = axis.panels.find((each) => each.spec.id === "throughput");
      const press = (key) => panel.svg.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      const state = () => [axis.cursor, axis.view[1] - axis.view[0], panel.svg.getAttribute("aria-valuetext")];
      press("End"); press("ArrowLeft"); said = [state()];
      press("+"); said.push(state());
      press("Escape"); said.push(state());
    """
    (cursor, width, text), zoomed, whole = said_by(reports, tmp_path, "input-bound", script)
    assert cursor == pytest.approx(0.99 * width)
    assert re.search(r"\d:\d\d[.\d]*: samples/s [\d,]+ samples/s", text)
    assert zoomed[1] == pytest.approx(width / 2, rel=0.02)
    assert whole[1] == width


TABLE = """
  const items = [...Array(20)].map((_, i) => ({ name: (i % 2 ? "gemm" : "copy") + i, ns: (i * 7) % 20 }));
  const table = sortableTable([{ label: "time", class: "number", key: (each) => each.ns, cell: (each) => each.ns },
    { label: "kernel", least: true, key: (each) => each.name, cell: (each) => each.name }], items, (each) => each.name);
  document.body.append(table);
  const column = () => [...table.querySelectorAll("tbody tr")].map((row) => row.firstChild.textContent);
"""


def test_a_long_table_begins_with_its_first_rows(reports, tmp_path):
    script = (
        TABLE
        + """
      const first = column().length;
      table.querySelector(".rest").click();
      said = [first, column().length];
    """
    )
    assert said_by(reports, tmp_path, "healthy", script) == [15, 20]


def test_a_click_on_a_heading_sorts_and_a_second_one_turns_the_order(reports, tmp_path):
    script = (
        TABLE
        + """
      const head = table.querySelector("th button"), sort = () => head.closest("th").getAttribute("aria-sort");
      head.click(); said = [[column().slice(0, 3), sort()]];
      head.click(); said.push([column().slice(0, 3), sort()]);
    """
    )
    assert said_by(reports, tmp_path, "healthy", script) == [
        [["19", "18", "17"], "descending"],
        [["0", "1", "2"], "ascending"],
    ]


def test_a_search_keeps_what_has_the_text_in_its_name(reports, tmp_path):
    script = (
        TABLE
        + """
      const search = table.querySelector("input");
      const find = (text) => { search.value = text; search.dispatchEvent(new Event("input")); return column(); };
      said = [find("GEMM").length, find("no such kernel")];
    """
    )
    assert said_by(reports, tmp_path, "healthy", script) == [10, ["nothing has such a name"]]


def test_the_csv_has_every_value_that_the_charts_show(reports, tmp_path):
    script = """
      const values = axis.panels.flatMap((panel) => panel.rows()).reduce((sum, row) => sum + row.v.length, 0);
      const rows = csvOf(axis.panels).trimEnd().split("\\n");
      said = [rows[0], rows.length - 1 - values, rows.filter((row) => row.includes("Step time")).length];
    """
    head, missing, of_step_time = said_by(reports, tmp_path, "input-bound", script)
    assert head == "time_s,quantity,series,unit,value"
    assert missing == 0
    assert of_step_time > 10


def test_a_finding_brings_its_page(reports, tmp_path):
    script = """
      const page = document.querySelector("#findings details");
      page.open = true; page.dispatchEvent(new Event("toggle"));
      said = [[...page.querySelectorAll("h4")].map((each) => each.textContent), page.querySelectorAll("pre").length];
    """
    headings, blocks = said_by(reports, tmp_path, "input-bound", script)
    assert {"What it costs", "Confirm it by hand", "Fix it"} <= set(headings)
    assert blocks > 1


def test_ranks_are_compared_by_their_own_time_the_slowest_first(reports, tmp_path):
    script = """
      const panel = axis.panels.find((each) => each.spec.id === "own-time");
      said = panel.spec.lines.map((line) => line.label);
    """
    labels = said_by(reports, tmp_path, "straggler", script)
    assert labels[0] == "rank 5"
    assert labels[-1] == "mean and range of 4 others"


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "theme", "width"),
    [
        ("input-bound", "light", 1200),
        ("input-bound", "dark", 500),
        ("one-step-trace", "dark", 1200),
        ("one-step-trace", "light", 500),
        ("straggler", "light", 1200),
        ("hostile-texts", "dark", 1200),
    ],
)
def test_axe_finds_nothing_that_keeps_anybody_from_reading(reports, tmp_path, name, theme, width):
    assert axe_violations(reports, tmp_path, name, theme, width) == []


@pytest.mark.parametrize("name", ["input-bound", "straggler", "one-step-trace", "hostile-texts"])
def test_nothing_is_wider_than_a_telephone(reports, tmp_path, name):
    window, width, too_wide = on_a_telephone(reports, tmp_path, name)
    assert window <= 390
    assert (width, too_wide) == (window, [])


def test_a_quantity_reads_as_it_does_in_a_terminal(reports, tmp_path):
    """But for the signs that terminals may lack. src/base/text_test.cc holds the program to the same table."""
    table = Path(__file__).resolve().parents[2] / "src" / "base" / "testing" / "quantities.tsv"
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    values = json.dumps([[float(value), unit] for value, unit, _ in rows])
    shown = said_by(reports, tmp_path, "input-bound", f"said = {values}.map(([value, unit]) => amount(value, unit))")
    assert [text.replace("µ", "u").replace("°", "") for text in shown] == [text for *_, text in rows]
