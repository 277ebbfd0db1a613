"""`fullbore.read`: a run as objects and arrays, by what the program says of it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

MARKED = """
import time
import fullbore

def batches():
    for _ in range(60):
        time.sleep(0.01)
        yield [0.0] * 32

for batch in fullbore.watch(batches()):
    time.sleep(0.005)
    fullbore.step()
"""


@pytest.fixture
def recorded(fullbore, package_environment):
    """A run of sixty steps, without any framework."""
    done = fullbore.run(sys.executable, fullbore.script("train.py", MARKED), env=package_environment)
    assert done.code == 0, done.stderr
    return done


def test_a_run_is_what_its_report_says(recorded, package):
    run = package.read("last", recorded.runs)
    assert run.path == str(recorded.run_file) and run.id == recorded.run_file.stem
    assert run.report == recorded.report
    assert run.verdict.id == recorded.report["findings"][0]["id"] and run.verdict == run.findings[0]
    assert run.shares["data_wait"] > 0.4 and sum(run.shares.values()) == pytest.approx(1)
    assert run.step_s == pytest.approx(recorded.report["step_time"]["mean_ns"] / 1e9)
    assert str(run.verdict.where[0]).startswith("train.py:")


def test_its_steps_and_series_are_arrays(recorded, package):
    numpy = pytest.importorskip("numpy")
    run = package.read(recorded.run_file)
    assert run.steps["first_step"].tolist() == list(range(60)) and (run.steps["step_s"] > 0.015).all()
    assert run.windows["steps"].sum() == 60 and run.windows["steps"].dtype == numpy.dtype("int64")
    assert run.windows["data_wait"].mean() == pytest.approx(run.steps["data_wait"].mean(), abs=0.1)
    cores = run.series["cpu_utilization"]
    assert cores.unit == "ratio" and len(cores.t_s) == len(cores.values) and (numpy.diff(cores.t_s) > 0).all()
    assert (cores.values >= 0).all()


def test_its_tables_are_frames_where_pandas_is(recorded, package):
    pytest.importorskip("pandas")
    run = package.read(recorded.run_file)
    steps = run.steps.to_pandas()
    assert len(steps) == 60 and steps.step_s.sum() == pytest.approx(run.steps["step_s"].sum())
    readings = run.series.to_pandas()
    assert list(readings.columns) == ["series", "unit", "t_s", "value"]
    assert len(readings) == sum(len(each.values) for each in run.series.values())


def test_a_run_that_is_not_there_is_an_error_with_the_programs_own_words(package, tmp_path):
    with pytest.raises(package.FullboreError, match="no runs are recorded in") as caught:
        package.read("last", tmp_path)
    assert caught.value.hint == "record one: fullbore run -- python train.py"


def test_a_file_that_is_no_run_is_an_error(package, tmp_path):
    (tmp_path / "no.fbr").write_text("no database\n" * 1000)
    with pytest.raises(package.FullboreError, match="no.fbr"):
        package.read(tmp_path / "no.fbr")


def test_a_program_that_is_not_installed_is_an_error_that_says_where_it_may_be_named(package, monkeypatch):
    from fullbore.runs import program

    monkeypatch.setattr(program, "places", lambda: iter(["", "/nowhere/fullbore"]))
    with pytest.raises(package.FullboreError, match="FULLBORE_PROGRAM"):
        package.read()


def test_the_tables_of_the_command_line_are_the_same(recorded, fullbore, package, tmp_path):
    steps = tmp_path / "steps.csv"
    assert fullbore.call("export", recorded.run_file, "--to", "steps-csv", "-o", steps).code == 0
    lines = steps.read_text().splitlines()
    assert lines[0].startswith("stage,rank,kind,first_step,steps,begin_s,end_s,samples,step_s,")
    assert sum(",step," in line for line in lines) == 60
    again = fullbore.call("export", "last", "--dir", recorded.runs, "--to", "steps-csv", "-o", steps)
    assert again.code == 0, "a table of ours may be replaced"
    readings = fullbore.call("export", recorded.run_file, "--to", "csv")
    assert readings.stdout.decode().startswith("stage,series,unit,t_s,value\ntrain,")


def test_a_table_of_a_trace_is_refused_with_the_way_to_one(fullbore, tmp_path):
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": []}))
    refused = fullbore.call("export", "trace.json", "--to", "csv")
    assert refused.code == 2 and "explain --section" in refused.stderr


def test_importing_the_package_loads_neither_torch_nor_numpy(package_environment, fullbore):
    code = (
        "import sys, fullbore; print([name for name in sys.modules if name in ('torch', 'numpy', 'json', 'IPython')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=fullbore.environment(package_environment), capture_output=True, text=True
    )
    assert done.stdout == "[]\n", done.stderr
