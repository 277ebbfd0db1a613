"""The report of synthetic runs (the build's report_sample): JSON against its schema, the page in a browser."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
from browser import Page, in_browser, with_script

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ["input-bound", "healthy", "straggler", "no-training", "out-of-memory", "two-stages", "hostile-texts"]
NOT_JUDGED = "not-judged"
TRACE = "one-step-trace"  # no readings of a machine, so no panels for them


@pytest.fixture(scope="module")
def schema() -> dict:
    return json.loads((ROOT / "docs" / "report.schema.json").read_text())


def without_extras(schema: object) -> object:
    """The schema with every object closed: whatever we write must be documented to the last member."""
    if isinstance(schema, list):
        return [without_extras(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: without_extras(value) for key, value in schema.items()}
    if isinstance(closed.get("properties"), dict) and closed.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed


def test_the_schema_is_a_schema(schema):
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("name", [*SAMPLES, TRACE, NOT_JUDGED])
def test_every_report_matches_the_schema_and_has_no_undocumented_member(reports, schema, name):
    report = json.loads((reports / f"{name}.json").read_text(encoding="utf-8"))
    jsonschema.validate(report, without_extras(schema), cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda report: report.pop("window"),
        lambda report: report["findings"][0].update(severity="bad"),
        lambda report: report["findings"][0].update(share=41),
        lambda report: report["findings"][0].pop("method"),
        lambda report: report["throughput"].update(samples_per_s=None),
        lambda report: report.update(undocumented=1),
    ],
)
def test_the_schema_rejects_what_is_wrong(reports, schema, spoil):
    report = json.loads((reports / "input-bound.json").read_text(encoding="utf-8"))
    spoil(report)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, without_extras(schema), cls=jsonschema.Draft202012Validator)


def test_a_recording_that_cannot_be_judged_says_so_in_the_place_of_a_verdict(reports, tmp_path):
    page, console = in_browser(reports / f"{NOT_JUDGED}.html", tmp_path)
    assert console == []
    assert "This recording cannot be judged: 544 of 546 launches ran nothing" in page.text
    assert "The file breaks off at byte 4,711" in page.text
    assert "The work of 85 % of the device's time is known" in page.text


@pytest.mark.parametrize("name", SAMPLES)
def test_the_page_logs_nothing_to_the_console(reports, tmp_path, name):
    page, console = in_browser(reports / f"{name}.html", tmp_path)
    assert console == []
    assert page.having("section", "verdict")
    assert len(page.having("figure", "panel")) >= 4
    assert [t for t, a in page.elements if t == "path" and "line" in (a.get("class") or "")]


def test_a_training_run_shows_shares_throughput_and_hardware_on_one_axis(reports, tmp_path):
    page, _ = in_browser(reports / "input-bound.html", tmp_path)
    panels = [a["id"] for a in page.having("figure", "panel")]
    assert panels[:3] == ["panel-shares", "panel-throughput", "panel-step-time"]
    assert {"panel-gpu", "panel-cpu", "panel-process-cpu", "panel-memory", "panel-disk"} <= set(panels)
    assert len(page.having("path", "layer")) == 5
    assert "The GPU waits for data 41 % of the time" in page.text
    assert "DataLoader(num_workers=4)" in page.text
    assert "for images, labels in loader:" in page.text


def test_each_of_several_ranks_has_a_bar(reports, tmp_path):
    page, _ = in_browser(reports / "straggler.html", tmp_path)
    assert len(page.having("div", "small")) == 8


def test_clicked_evidence_is_highlighted_in_its_chart(reports, tmp_path):
    script = (
        "[...document.querySelectorAll('.what')].find((b) => b.textContent.startsWith('CPU of the loader')).click()"
    )
    page, console = in_browser(with_script(reports, "input-bound", script), tmp_path)
    assert console == []
    assert [a["id"] for a in page.having("figure", "lit")] == ["panel-process-cpu"]
    assert len(page.having("path", "lit")) == 1


def test_evidence_with_a_place_in_time_is_a_band_in_every_chart(reports, tmp_path):
    page, _ = in_browser(with_script(reports, "input-bound", "document.querySelector('.what').click()"), tmp_path)
    assert len(page.having("rect", "band")) == len(page.having("figure", "panel"))
    assert "panel-shares" in [a["id"] for a in page.having("figure", "lit")]


def test_zooming_moves_all_charts_and_pointing_reads_all_values(reports, tmp_path):
    page, console = in_browser(
        with_script(reports, "input-bound", "axis.zoom(60000, 120000); axis.point(90000)"), tmp_path
    )
    assert console == []
    assert page.text.count("1:30") >= len(page.having("figure", "panel"))
    assert re.search(r"samples/s6\d\d samples/s", page.text), "the throughput at the cursor is not beside its key"


def test_an_axis_of_any_length_has_distinguishable_ticks(reports, tmp_path):
    script = """
      const said = [];
      for (let end = 0.001; end < 60 * 864e5; end *= 1.7)
        for (const begin of [0, 0.43 * end])
          for (const width of [200, 400, 1200]) {
            const { ticks, step } = timeTicks(begin, end, Math.max(5, width / 110));
            const labels = new Set(ticks.map((t) => clock(t, step, end)));
            if (ticks.length < 2 || ticks.length > 13 || labels.size !== ticks.length)
              said.push(`${begin} to ${end}: ${[...labels].join(", ")} for ${ticks.length}`);
          }
      document.title = said.join("; ") || "all well";
      document.body.append(document.title);
    """
    page, console = in_browser(with_script(reports, TRACE, script), tmp_path)
    assert console == []
    assert page.text.rstrip().endswith("all well"), page.text[-2000:]


def test_the_page_of_a_one_step_trace_has_no_percentiles_and_no_invented_times(reports, tmp_path):
    page, console = in_browser(reports / f"{TRACE}.html", tmp_path)
    assert console == []
    assert "one step" in page.text
    assert "percentile" not in page.text and "median" not in page.text
    assert "ingest  the traces are taken from" in page.text
    assert not re.search(r"-\d+:\d\d", page.text.split("This report as text")[0])
    ticks = [a for t, a in page.elements if t == "text" and a.get("class") == "time"]
    assert len(ticks) >= 2


def timeline_texts(page: Page) -> str:
    return page.text.split("One step, piece by piece")[1].split("Over time")[0]


def test_a_trace_shows_its_step_piece_by_piece(reports, tmp_path):
    page, console = in_browser(reports / f"{TRACE}.html", tmp_path)
    assert console == []
    assert {"panel-step-shares", "panel-step-tracks"} <= {a["id"] for a in page.having("figure", "panel")}
    colours = {a["fill"] for a in page.having("path", "piece")}
    assert colours == {"var(--share-compute)", "var(--share-sync)", "var(--share-launch)", "var(--faint)"}
    assert "stream 0/7" in timeline_texts(page) and "thread 4711 (main)" in timeline_texts(page)


@pytest.mark.parametrize(
    ("track", "row", "ms", "said"),
    [
        (0, 0, 5, "gemm, 10 ms (compute)"),
        (0, 0, 15, ""),  # the stream has nothing to do
        (0, 0, 30, "40 × gemm, "),
        (1, 0, 7, "aten::item, 10 ms"),
        (1, 1, 7, "cudaStreamSynchronize, 8.0 ms (sync)"),
    ],
)
def test_pointing_at_a_piece_says_what_it_is(reports, tmp_path, track, row, ms, said):
    script = f"""
      const panel = timeline.axis.panels.find((each) => each.spec.id === "step-tracks");
      const track = panel.spec.tracks[{track}], box = panel.svg.getBoundingClientRect();
      const x = panel.x({ms}), y = track.top + ({row} + 0.5) * track.rowHeight;
      panel.svg.dispatchEvent(new PointerEvent("pointermove", {{ clientX: box.left + x, clientY: box.top + y }}));
    """
    page, console = in_browser(with_script(reports, TRACE, script), tmp_path)
    assert console == []
    assert said in timeline_texts(page)
    assert said or "gemm" not in timeline_texts(page)


def test_the_step_zooms_to_the_microsecond_apart_from_the_charts_over_time(reports, tmp_path):
    page, console = in_browser(with_script(reports, TRACE, "timeline.axis.zoom(19.999, 20.002)"), tmp_path)
    assert console == []
    ticks = [a for t, a in page.elements if t == "text" and a.get("class") == "time"]
    assert len(ticks) >= 4
    assert "20.0005 ms" in timeline_texts(page) or "20.001 ms" in timeline_texts(page)
    assert "20.001 ms" not in page.text.split("Over time")[1]


def test_a_runs_message_has_its_time(reports, tmp_path):
    page, _ = in_browser(reports / "input-bound.html", tmp_path)
    assert "0:09  nvml  NVLink" in page.text


def test_texts_of_the_recording_never_become_markup(reports, tmp_path):
    page, console = in_browser(reports / "hostile-texts.html", tmp_path)
    assert console == []
    assert "img" not in [tag for tag, _ in page.elements]
    assert "<img src=x onerror=alert(1)>" in page.text


@pytest.mark.parametrize("name", [*SAMPLES, TRACE])
def test_the_page_is_one_file_that_requests_nothing(reports, name):
    page = Page((reports / f"{name}.html").read_text(encoding="utf-8", errors="strict"))
    for tag, attributes in page.elements:
        assert tag not in ("iframe", "object", "embed", "base")
        for attribute in ("src", "href", "action"):
            assert (attributes.get(attribute) or "data:,") == "data:,", (tag, attributes)
    assert any("default-src 'none'" in (a.get("content") or "") for t, a in page.elements if t == "meta")
