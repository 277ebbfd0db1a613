"""The page of a trace: the tables of --section, the roofline, and the flame graph of the host's calls."""

from __future__ import annotations

import json
import pathlib
import subprocess

import pytest
from browser import in_browser, said_by

from tests.conftest import BINARY
from tests.trace.test_trace_commands import event

STEPS, STEP_US = 70, 1000
SHAPES = {"Input Dims": [[256, 1024], [1024, 512]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}


def step_of(number: int) -> list[dict]:
    """train_step calls forward, which multiplies matrices, and then save, which takes 200 us itself."""
    t, correlation = STEP_US * number, number + 1
    on_device = {"correlation": correlation, "device": 0, "stream": 7}
    return [
        event("user_annotation", f"ProfilerStep#{number}", t, STEP_US, 1, 1),
        event("python_function", "train.py(10): train_step", t + 10, 900, 1, 1),
        event("python_function", "train.py(20): forward", t + 20, 600, 1, 1),
        event("cpu_op", "aten::mm", t + 30, 100, 1, 1, **{"External id": correlation, **SHAPES}),
        event("cuda_runtime", "cudaLaunchKernel", t + 50, 5, 1, 1, correlation=correlation),
        event("kernel", f"gemm_{number}", t + 100, 400, 0, 7, **on_device, **{"External id": correlation}),
        event("python_function", "train.py(30): save</script>", t + 700, 200, 1, 1),
    ]


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> pathlib.Path:
    if not BINARY.exists():
        pytest.skip("the binary is not built: make build")
    directory = tmp_path_factory.mktemp("trace")
    trace = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
        "traceEvents": [each for number in range(STEPS) for each in step_of(number)],
    }
    (directory / "trace.json").write_text(json.dumps(trace))
    command = [BINARY, "explain", "-q", directory / "trace.json", "--html", directory / "page.html"]
    subprocess.run(command, check=True, cwd=directory)
    return directory


def test_the_page_logs_nothing_and_names_are_data(pages, tmp_path):
    page, console = in_browser(pages / "page.html", tmp_path)
    assert console == []
    assert "train.py(30): save</script>" in page.text


def test_it_has_the_tables_that_sections_have(pages, tmp_path):
    said = subprocess.run(
        [BINARY, "explain", "--section", "all", "--json", "-", pages / "trace.json"], check=True, capture_output=True
    )
    printed = {each["name"]: each for each in json.loads(said.stdout)["sections"] if each["rows"] or each["notes"]}
    tables = said_by(pages, tmp_path, "page", "said = data.tables")
    assert [table["name"] for table in tables] == list(printed)
    for table in tables:
        assert table["rows"] == printed[table["name"]]["rows"][:60]
        assert table["all"] == len(printed[table["name"]]["rows"])


def test_a_table_is_chosen_and_says_what_it_leaves_out(pages, tmp_path):
    script = """
      const choice = document.querySelector("#tables select");
      const text = (name) => {
        choice.value = [...choice.options].find((each) => each.text === name).value;
        choice.dispatchEvent(new Event("change"));
        return document.querySelector("#tables").innerText;
      };
      said = [text("operators"), text("launches")];
    """
    operators, launches = said_by(pages, tmp_path, "page", script)
    assert "aten::mm" in operators and "more rows" not in operators
    assert "10 more rows: fullbore explain --section launches --csv launches.csv writes all." in launches


def test_the_roofline_has_a_dot_for_each_operator_below_the_roof(pages, tmp_path):
    script = """
      const line = document.querySelector("#roofline .roof"), dot = document.querySelector("#roofline .dot");
      const highest = line.getBBox().y;
      said = [document.querySelectorAll("#roofline .dot").length, dot.cy.baseVal.value > highest, dot.textContent];
    """
    dots, is_below, says = said_by(pages, tmp_path, "page", script)
    assert (dots, is_below) == (1, True)
    assert says.startswith("aten::mm")


def test_the_flame_graph_is_as_wide_as_the_time_and_can_be_zoomed_by_click_and_key(pages, tmp_path):
    script = """
      setTimeout(() => {
        const frames = () => [...document.querySelectorAll(".flame button")];
        const frame = (name) => frames().find((each) => each.textContent.includes(name));
        const part = (name) => parseFloat(frame(name).style.width);
        const press = (key) =>
          document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        const said = [part("forward"), frame("save").title];
        frame("forward").click();
        said.push(part("forward"), document.activeElement.textContent);
        press("Escape");
        said.push(part("forward"));
        press("ArrowDown");
        said.push(document.activeElement.textContent);
        const search = document.querySelector(".flamebox input");
        search.value = "SAVE"; search.dispatchEvent(new Event("input"));
        said.push(document.querySelectorAll(".flame .found").length);
        said.push(document.querySelector(".flamebox .tools output").value);
        document.body.append("flame:" + JSON.stringify(said) + ":emalf");
      }, 300);
    """
    page = (pages / "page.html").read_text()
    (pages / "flame.html").write_text(page.replace("</body>", f"<script>{script}</script></body>"))
    shown, console = in_browser(pages / "flame.html", tmp_path)
    assert console == []
    said = json.loads(shown.text.split("flame:")[1].split(":emalf")[0])
    part, title, zoomed, active, whole, below, found, share = said
    assert part == whole == pytest.approx(100 * 600 / 900, abs=1)
    assert title == "train.py(30): save</script>: 14 ms (22 %), of it 14 ms itself"
    assert (zoomed, active) == (100, "train.py(20): forward")
    assert below == "1/1"  # the thread
    assert (found, share) == (1, "22 % of all")
