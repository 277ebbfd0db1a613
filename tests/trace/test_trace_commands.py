"""explain, compare and export on traces, with the real binary. The traces are synthetic and the figures computed by
hand: in a step of 1,000 us the loader takes 300, a kernel of 400 us runs from 400, one of 100 us (NCCL) from 850."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import pathlib

import pytest

STEP_US = 1000


def event(category: str, name: str, ts: float, dur: float, pid: int, tid: int, **args: object) -> dict:
    return {"ph": "X", "cat": category, "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args}


def made_trace(steps: int = 4, gemm_us: int = 400, rank: int | None = None) -> dict:
    events = []
    for step in range(steps):
        t = STEP_US * step
        events += [
            event("user_annotation", f"ProfilerStep#{step + 5}", t, STEP_US, 1, 1),
            event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", t, 300, 1, 1),
            event("cpu_op", "aten::linear", t + 350, 60, 1, 1),
        ]
        for i, (name, launch, begin, dur) in enumerate(
            [("volta_sgemm", 380, 400, gemm_us), ("ncclDevKernel_AllReduce", 390, 850, 100)]
        ):
            correlation = 10 * step + i + 1
            events.append(event("cuda_runtime", "cudaLaunchKernel", t + launch, 5, 1, 1, correlation=correlation))
            events.append(
                event("kernel", name, t + begin, dur, 0, 7 + i, correlation=correlation, device=0, stream=7 + i)
            )
    trace: dict = {"schemaVersion": 1, "traceEvents": events}
    if rank is not None:
        trace["distributedInfo"] = {"rank": rank, "world_size": 2, "backend": "nccl"}
    return trace


def written(path: pathlib.Path, trace: dict) -> pathlib.Path:
    text = json.dumps(trace).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.fixture
def trace(tmp_path: pathlib.Path) -> pathlib.Path:
    return written(tmp_path / "trace.json.gz", made_trace())


# ---- explain -----------------------------------------------------------------------------------------------------


def test_explain_gives_the_report_of_a_trace(fullbore, trace):
    report = fullbore.explain(trace)
    rank = report["ranks"][0]
    assert rank["span_ns"] == 3_550_000  # from 400 us of the first step to 950 us of the last
    assert rank["compute_ns"] == 4 * 400_000
    assert rank["comm_ns"] == rank["comm_exposed_ns"] == 4 * 100_000
    assert rank["kernels"] == 8


def test_several_files_are_the_ranks_of_one_run(fullbore, tmp_path):
    files = [written(tmp_path / f"r{rank}.json", made_trace(rank=rank)) for rank in (1, 0)]
    said = fullbore.call("explain", *files, "--json", "-")
    assert said.code == 0, said.stderr
    assert [rank["rank"] for rank in json.loads(said.stdout)["ranks"]] == [0, 1]


def test_a_directory_is_read_and_foreign_files_are_left_out(fullbore, trace):
    (trace.parent / "notes.txt").write_text("not a trace")
    said = fullbore.call("explain", trace.parent, "--json", "-")
    assert said.code == 0, said.stderr
    assert json.loads(said.stdout)["ranks"][0]["kernels"] == 8


def test_like_hta_leaves_out_the_last_step(fullbore, trace):
    said = fullbore.call("explain", "--like-hta", "--json", "-", trace)
    assert json.loads(said.stdout)["ranks"][0]["kernels"] == 6


@pytest.mark.parametrize(
    ("name", "content", "code", "says"),
    [
        ("missing.json", None, 2, "No such file"),
        ("empty.json", b"", 1, "it is empty"),
        ("words.json", b"hello", 1, "byte 0"),
        ("other.json", b'{"a": 1}', 1, 'no "traceEvents"'),
        ("cut.json.gz", gzip.compress(json.dumps(made_trace()).encode(), mtime=0)[:40], 1, "byte"),
    ],
)
def test_a_file_that_is_not_a_trace_is_an_error_that_names_it(fullbore, tmp_path, name, content, code, says):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    said = fullbore.call("explain", path)
    assert said.code == code
    assert str(path) in said.stderr
    assert says in said.stderr


def test_a_truncated_trace_is_judged_as_far_as_it_goes(fullbore, tmp_path):
    text = json.dumps(made_trace(steps=50)).encode()
    path = tmp_path / "cut.json"
    path.write_bytes(text[: len(text) // 2])
    report = fullbore.explain(path)
    assert 20 < report["window"]["steps"] + report["window"]["warmup_steps"] < 50


def test_flags_for_traces_are_refused_for_runs(fullbore):
    for flags in (["--like-hta"], ["--section", "kernels"]):
        said = fullbore.call("explain", *flags, "some-run")
        assert said.code == 2
        assert flags[0] in said.stderr


def test_recorded_runs_are_not_mistaken_for_traces(fullbore, tmp_path):
    for name in ("a.fbr", "b.fbr"):
        (tmp_path / name).write_bytes(b"")
    for what in ([tmp_path / "a.fbr", tmp_path / "b.fbr"], [tmp_path]):
        said = fullbore.call("explain", *what)
        assert said.code == 2
        assert "recorded run" in said.stderr


def test_tensorboards_log_directory_is_searched_and_the_choice_is_reported(fullbore, tmp_path):
    for date, steps in (("2026_11_20_17_00_00", 3), ("2026_11_21_09_15_00", 6)):
        place = tmp_path / "logs" / "resnet" / "plugins" / "profile" / date
        place.mkdir(parents=True)
        path = written(place / "host_812.1795252000.pt.trace.json.gz", made_trace(steps=steps))
        os.utime(path, (1_795_252_000, 1_795_252_000))
    said = fullbore.call("explain", "logs")
    assert said.code == 0, said.stderr
    text = " ".join(said.stdout.decode().split())
    assert "6 steps" in text
    taken = "logs/resnet/plugins/profile/2026_11_21_09_15_00"
    assert f"holds traces in 2 directories: the newest, '{taken}', is taken" in text


# ---- sections ----------------------------------------------------------------------------------------------------


def test_a_section_as_csv_has_plain_numbers(fullbore, trace):
    said = fullbore.call("explain", "--section", "kernels", "--csv", "-", trace)
    assert said.code == 0, said.stderr
    rows = list(csv.DictReader(io.StringIO(said.stdout.decode())))
    assert [(row["name"], row["type"], row["count"], row["sum_ns"]) for row in rows] == [
        ("volta_sgemm", "compute", "4", "1600000"),
        ("ncclDevKernel_AllReduce", "comm", "4", "400000"),
    ]


def test_several_sections_as_json(fullbore, trace):
    said = fullbore.call("explain", "--section", "overlap,steps", "--json", "-", trace)
    sections = json.loads(said.stdout)["sections"]
    assert [section["name"] for section in sections] == ["overlap", "steps"]
    names = [column["name"] for column in sections[1]["columns"]]
    steps = [dict(zip(names, row, strict=True)) for row in sections[1]["rows"]]
    assert [step["step"] for step in steps] == [5, 6, 7, 8]
    assert steps[1]["data_wait_ns"] == 300_000
    assert (
        sum(value for name, value in steps[1].items() if name.endswith("_ns") and name not in ("begin_ns", "wall_ns"))
        == (steps[1]["wall_ns"])
    )


def test_every_section_that_help_lists_works(fullbore, trace):
    said = fullbore.call("explain", "--section", "all", "--json", "-", trace)
    names = [section["name"] for section in json.loads(said.stdout)["sections"]]
    help_text = fullbore.call("explain", "--help").stdout.decode()
    assert len(names) > 10
    assert all(name in help_text for name in names)


def test_an_unknown_section_is_answered_with_the_list(fullbore, trace):
    said = fullbore.call("explain", "--section", "frobnicate", trace)
    assert said.code == 2
    assert "idle-breakdown" in said.stderr


def test_a_misspelt_section_is_recognised(fullbore, trace):
    said = fullbore.call("explain", "--section", "kernel", trace)
    assert said.code == 2
    assert "did you mean --section kernels?" in said.stderr


def test_every_section_is_documented():
    root = pathlib.Path(__file__).resolve().parents[2]
    page = (root / "docs" / "sections.md").read_text()
    sources = (root / "src" / "explain" / "analyze").glob("*.cc")
    names = {
        line.split('"')[1] for path in sources if not path.name.endswith("_test.cc") for line in section_heads(path)
    }
    assert len(names) > 10
    assert all(f"| `{name}` |" in page for name in names), names


def section_heads(path: pathlib.Path) -> list[str]:
    """The lines that hold a section's name: the first text after `const Section kName = {`."""
    lines = path.read_text().splitlines()
    return [line if '"' in line else lines[i + 1] for i, line in enumerate(lines) if line.startswith("const Section k")]


# ---- compare -----------------------------------------------------------------------------------------------------


def test_compare_says_which_kernels_changed(fullbore, tmp_path):
    before = written(tmp_path / "before.json", made_trace(steps=4))
    after = written(tmp_path / "after.json", made_trace(steps=6, gemm_us=200))
    said = fullbore.call("compare", before, after, "--json", "-")
    assert said.code == 0, said.stderr
    diff = json.loads(said.stdout)["trace_diff"]
    names = [column["name"] for column in diff["columns"]]
    first = dict(zip(names, diff["rows"][0], strict=True))
    assert (first["name"], first["change"]) == ("volta_sgemm", "faster")
    assert (first["before_ns"], first["after_ns"]) == (400_000, 200_000)  # by the step: 4 before, 6 after
    assert "volta_sgemm" in fullbore.call("compare", before, after).stdout.decode()


# ---- export ------------------------------------------------------------------------------------------------------


def events_of(path: pathlib.Path) -> list[dict]:
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)["traceEvents"]


def test_export_cuts_out_the_window(fullbore, trace, tmp_path):
    out = tmp_path / "window.json.gz"
    said = fullbore.call("export", trace, "--to", "perfetto", "--from", "1ms", "--until", "1.5ms", "-o", out)
    assert said.code == 0, said.stderr
    timed = [e for e in events_of(out) if "ts" in e]
    assert timed
    assert all(1000 <= e["ts"] and e["ts"] + e.get("dur", 0) <= 1500 for e in timed)
    names = {e["args"]["name"] for e in events_of(out) if e["name"] == "thread_name"}
    assert {"steps", "where the time goes", "critical path", "stream 0/7"} <= names


def test_export_accepts_step_numbers(fullbore, trace, tmp_path):
    out = tmp_path / "window.json"
    said = fullbore.call("export", trace, "--to", "perfetto", "--from", "step:6", "--until", "step:7", "-o", out)
    assert said.code == 0, said.stderr
    steps = [e["name"] for e in events_of(out) if e["name"].startswith("step ")]
    assert steps == ["step 6", "step 7"]


def test_export_takes_a_second_to_as_the_end(fullbore, trace):
    said = fullbore.call("export", trace, "--to", "perfetto", "--from", "1ms", "--to", "1.5ms", "-o", "-")
    assert said.code == 0, said.stderr
    assert max(e["ts"] + e.get("dur", 0) for e in json.loads(said.stdout)["traceEvents"] if "ts" in e) <= 1500


def test_export_shows_what_a_change_would_make_of_the_steps_beside_what_was_recorded(fullbore, trace):
    said = fullbore.call("export", trace, "--to", "perfetto", "--what-if", "no-sync,workers=2", "-o", "-")
    assert said.code == 0, said.stderr
    assert "no-sync cannot be made here" in said.stderr
    events = json.loads(said.stdout)["traceEvents"]
    processes = {e["args"]["name"]: e["pid"] for e in events if e["name"] == "process_name"}
    pid = processes["rank 0, replayed with workers=2"]
    steps = [e for e in events if e["pid"] == pid and e["ph"] == "X" and e["name"].startswith("step ")]
    assert steps and all(e["args"]["recorded, in us"] == STEP_US for e in steps)


def test_export_replays_no_step_that_lies_outside_the_window(fullbore, trace):
    changed = ["export", trace, "--to", "perfetto", "--what-if", "workers=2"]
    said = fullbore.call(*changed, "--from", "1us", "--until", "2us")
    assert said.code == 2
    assert "no step that can be replayed begins in the window" in said.stderr
    said = fullbore.call("export", trace, "--to", "perfetto", "--what-if", "faster")
    assert said.code == 2
    assert "no change is called 'faster'" in said.stderr


def test_a_step_time_that_is_known_takes_the_place_of_an_estimate(fullbore, trace):
    said = fullbore.call("explain", trace, "--step-time", f"{STEP_US / 2000}ms", "--json", "-")
    assert said.code == 0, said.stderr
    (cost,) = [one for one in json.loads(said.stdout)["fitness"] if one["id"] == "recorder-cost"]
    assert cost["number"] == pytest.approx(2, rel=0.01)
    for wrong, value in (("fast", trace), ("-1ms", trace), ("10ms", "last")):
        said = fullbore.call("explain", value, "--step-time", wrong)
        assert said.code == 2 and "--step-time" in said.stderr


def test_of_many_ranks_the_verdict_is_of_all_and_the_replay_of_those_that_are_kept(fullbore, tmp_path):
    for rank in range(20):
        written(tmp_path / f"{rank}.json.gz", made_trace(rank=rank))
    report = fullbore.explain(tmp_path)
    assert len(report["ranks"]) == 20
    assert "replay" in report, "the first rank is kept"
    export = fullbore.call(
        "export", tmp_path, "--to", "perfetto", "--what-if", "workers=2", "-o", tmp_path / "w.json.gz"
    )
    assert export.code == 0, export.stderr
    assert "12 of 20 ranks are not replayed" in export.stderr


def test_a_device_that_is_not_known_is_an_error_that_names_those_that_are(fullbore, trace):
    said = fullbore.call("explain", trace, "--what-if", "device=Abacus")
    assert said.code == 2
    assert "no device is called 'Abacus'" in said.stderr
    assert "AMD Instinct MI300X" in said.stderr


def test_export_of_nothing_is_an_error(fullbore, trace):
    for window in (["--from", "1h"], ["--from", "step:99"], ["--from", "2s"], ["--from", "2ms", "--until", "1ms"]):
        said = fullbore.call("export", trace, "--to", "perfetto", *window)
        assert said.code == 2, window
        assert "hint:" in said.stderr
    assert not [name for name in os.listdir(fullbore.directory) if "window" in name]


def test_the_html_page_of_a_trace_lists_its_kernels_and_steps(fullbore, trace, tmp_path):
    page = tmp_path / "report.html"
    said = fullbore.call("explain", trace, "--html", page)
    assert said.code == 0, said.stderr
    text = page.read_text()
    assert "volta_sgemm" in text
