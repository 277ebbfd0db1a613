"""The JSON of `fullbore serve`: against its own description, and against what `explain` says."""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import time

import jsonschema
import pytest

from tests.serve.conftest import Serving, names, start

KINDS = ["made-0", "made-live-0"]


def described(serving: Serving) -> dict:
    return serving.ask("/api/v1/openapi.json").json


def check(serving: Serving, path: str, template: str, method: str = "get", status: int = 200, answer=None) -> dict:
    """The answer, which must be what the document says of it."""
    document = described(serving)
    answer = answer or serving.ask(path)
    assert answer.status == status, answer.body
    responses = document["paths"][template][method]["responses"]
    ((media, content),) = responses[str(status)]["content"].items()
    assert answer.headers["content-type"].startswith(media)
    schema = {**content["schema"], "components": document["components"]}
    jsonschema.validate(answer.json, schema, cls=jsonschema.Draft202012Validator)
    return answer.json


def test_every_answer_is_as_the_document_describes_it(serving):
    check(serving, "/healthz", "/healthz")
    listed = check(serving, "/api/v1/runs", "/api/v1/runs")
    assert listed["total"] == 7
    check(serving, "/api/v1/runs?sort=nothing", "/api/v1/runs", status=400)
    for name in KINDS:
        check(serving, f"/api/v1/runs/{name}", "/api/v1/runs/{name}")
        check(serving, f"/api/v1/runs/{name}/about", "/api/v1/runs/{name}/about")
        check(serving, f"/api/v1/runs/{name}/page", "/api/v1/runs/{name}/page")
    check(serving, "/api/v1/runs/none", "/api/v1/runs/{name}", status=404)
    check(serving, "/api/v1/compare?runs=made-0,made-1,made-live-0", "/api/v1/compare")
    check(serving, "/api/v1/compare?runs=made-0", "/api/v1/compare", status=400)
    check(serving, "/api/v1/alerts", "/api/v1/alerts")
    check(serving, "/api/v1/openapi.json", "/api/v1/openapi.json")


def test_every_described_path_answers(serving):
    for template, methods in described(serving)["paths"].items():
        path = template.replace("{name}", "made-0")
        for method in methods:
            answer = serving.ask(path, method.upper())
            assert answer.status not in (404, 501), (method, path)


def test_the_report_is_that_of_explain(serving, fullbore, runs):
    ours = serving.ask("/api/v1/runs/made-0").json
    theirs = fullbore.explain(runs / "made-0.fbr")
    del theirs["next_step"]  # what to type
    assert ours == theirs


@pytest.mark.long
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("state:running", ["made-live-0"]),
        ("state:failed", []),
        ("finding:input-bound tag:lr=3e-4 run:made-0", ["made-0"]),
        ("tag:lr=1 run:made-0", []),
        ("-state:running run:made-3", ["made-3"]),
        ("MADE-4", ["made-4"]),
    ],
)
def test_runs_are_found_by_what_is_typed(serving, query, found):
    deadline = time.monotonic() + 60
    while "judgement" not in serving.ask("/api/v1/runs/made-0/about").json and time.monotonic() < deadline:
        time.sleep(0.2)
    assert names(serving.ask("/api/v1/runs?q=" + query.replace(" ", "%20"))) == found


def test_runs_are_sorted_and_paged(serving):
    every = names(serving.ask("/api/v1/runs?sort=name"))
    assert every == sorted(every)
    assert names(serving.ask("/api/v1/runs?sort=-name")) == every[::-1]
    assert names(serving.ask("/api/v1/runs?sort=name&limit=2&offset=1")) == every[1:3]


def test_a_live_run_tells_what_happens(serving):
    connection = http.client.HTTPConnection(serving.host, serving.port, timeout=60)
    connection.request("GET", "/api/v1/runs/made-live-0/events")
    answer = connection.getresponse()
    assert answer.getheader("content-type") == "text/event-stream"
    steps = []
    while len(set(steps)) < 3:
        line = answer.readline()
        assert line, "the stream ended"
        if line.startswith(b"data: "):
            steps.append(json.loads(line[6:])["steps"])
    connection.close()
    assert steps == sorted(steps)


def test_notes_and_tags_are_kept_in_the_run(serving, fullbore, runs):
    assert serving.put("/api/v1/runs/made-1/note", {"note": "looks odd <b>"}).json["note"] == "looks odd <b>"
    changed = serving.put("/api/v1/runs/made-1/tags", {"lr": "1e-3", "api_key": "hunter2"})
    assert changed.json["tags"] == {"lr": "1e-3", "api_key": "***"}
    assert names(serving.ask("/api/v1/runs?q=tag:lr%3D1e-3")) == ["made-1"]
    (listed,) = [
        run for run in json.loads(fullbore.call("runs", "-o", runs, "--json", "-").stdout) if run["id"] == "made-1"
    ]
    assert listed["tags"]["lr"] == "1e-3"


@pytest.mark.long
def test_a_live_run_can_be_tagged_while_it_is_recorded(serving):
    before = serving.ask("/api/v1/runs/made-live-0/about").json["steps"]
    assert serving.put("/api/v1/runs/made-live-0/tags", {"lr": "5"}).status == 200
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        now = serving.ask("/api/v1/runs/made-live-0/about").json
        if now["steps"] > before + 20:
            break
        time.sleep(0.3)
    assert now["steps"] > before + 20, "the recorder goes on"
    assert now["tags"] == {"lr": "5"}


@pytest.mark.parametrize("what", [[1], {"note": 3}, {"lr": {"a": 1}}, {"": "x"}, {"k": "v" * 300}, "text"])
def test_what_is_no_note_and_no_tags_changes_nothing(serving, what):
    before = serving.ask("/api/v1/runs/made-2/about").json
    assert serving.put("/api/v1/runs/made-2/note", what).status == 400
    assert serving.put("/api/v1/runs/made-2/tags", what).status == 400
    assert serving.ask("/api/v1/runs/made-2/about").json == before


def test_series_come_as_csv(serving):
    answer = serving.ask("/api/v1/runs/made-0/series.csv")
    lines = answer.body.decode().splitlines()
    assert lines[0] == "stage,series,unit,t_s,value"
    assert "train,cpu_utilization,ratio,1.000,0.4" in lines


def processor_s(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.long
def test_files_that_come_and_go_keep_no_core_busy(tmp_path):
    server = start("--dir", str(tmp_path))
    try:
        assert server.ask("/healthz").status == 200
        before, begin = processor_s(server.process.pid), time.monotonic()
        while time.monotonic() - begin < 3:
            (tmp_path / "scratch").touch()
            (tmp_path / "scratch").unlink()
            time.sleep(0.01)
        used = (processor_s(server.process.pid) - before) / (time.monotonic() - begin)
        assert used < 0.25, "of a core"
    finally:
        server.process.terminate()
        server.process.wait(timeout=30)
