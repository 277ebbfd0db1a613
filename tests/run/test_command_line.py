"""What the command line accepts, and how it answers what it does not."""

from __future__ import annotations

import json
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

TRAIN = ["sh", "-c", "sleep 0.1"]


def runs_of(fullbore, directory) -> list[dict]:
    said = fullbore.call("runs", "-o", directory, "--json", "-")
    assert said.code == 0, said.stderr
    return json.loads(said.stdout)


def test_name_and_tags_find_a_run_again(fullbore):
    done = fullbore.run(*TRAIN, flags=["--name", "first-try", "--tag", "team=vision", "--tag", "lr=0.1"])
    (run,) = runs_of(fullbore, done.runs)
    assert run["id"].endswith("-first-try")
    assert run["tags"] == {"team": "vision", "lr": "0.1"}
    assert b"first-try" in fullbore.call("runs", "-o", done.runs, "--tag", "team=vision").stdout
    assert b"no run" in fullbore.call("runs", "-o", done.runs, "--tag", "team=speech").stdout


def test_a_run_is_explained_and_noted_by_its_name(fullbore):
    done = fullbore.run(*TRAIN, flags=["--name", "win"])
    assert fullbore.call("explain", "win", "-o", done.runs).code == 0
    secret = "https://user:secret@example.com/data"
    assert fullbore.call("runs", "-o", done.runs, "--note", f"with {secret}", "win").code == 0
    (run,) = runs_of(fullbore, done.runs)
    assert "secret" not in run["note"] and run["note"].startswith("with https://")
    assert fullbore.call("runs", "-o", done.runs, "--note", "alone").code == 2, "a note about which run?"


def test_the_list_is_filtered_and_sorted_as_the_page_is(fullbore):
    for name in ("second", "first"):
        assert fullbore.call("run", "-q", "-o", "sorted", "--name", name, "--", *TRAIN).code == 0
    listed = ["runs", "-o", "sorted", "--json", "-"]
    names = [run["id"].rpartition("-")[2] for run in json.loads(fullbore.call(*listed, "--sort", "-begin").stdout)]
    assert names == ["first", "second"]
    (only,) = json.loads(fullbore.call(*listed, "--filter", "second").stdout)
    assert only["id"].endswith("-second")
    for wrong in (["--sort", "beauty"], ["--filter", "beauty:much"]):
        assert fullbore.call("runs", "-o", "sorted", *wrong).code == 2


def test_two_runs_in_the_same_minute_are_two_files(fullbore):
    flags = ["-o", "same"]
    for _ in range(2):
        assert fullbore.call("run", "-q", *flags, "--", *TRAIN).code == 0
    first, second = runs_of(fullbore, "same")
    assert first["id"] != second["id"]


def test_stages_are_shown_as_one_run(fullbore):
    for stage, status in (("prepare", 0), ("train", 0), ("evaluate", 6)):
        done = fullbore.call("run", "-q", "-o", "all", "--run", "whole", "--stage", stage, "--",
                             "sh", "-c", f"sleep 0.1; exit {status}")  # fmt: skip
        assert done.code == status
    (run,) = runs_of(fullbore, "all")
    assert run["id"] == "whole"
    assert [(s["name"], s["exit_status"]) for s in run["stages"]] == [("prepare", 0), ("train", 0), ("evaluate", 6)]
    report = fullbore.explain(fullbore.directory / "all" / "whole.fbr")
    assert {s["stage"] for s in report["stages"]} == {"prepare", "train", "evaluate"}


def test_a_stage_with_a_missing_command_leaves_the_others(fullbore):
    stage = ["-q", "-o", "all", "--run", "whole", "--stage"]
    assert fullbore.call("run", *stage, "train", "--", *TRAIN).code == 0
    assert fullbore.call("run", *stage, "evaluate", "--", "no-such-command").code == 127
    (run,) = runs_of(fullbore, "all")
    assert run["stages"][0]["name"] == "train"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "no command"),
        (["run", "--"], "no command"),
        (["run", "python", "train.py"], "after --"),
        (["run", "--no-such-flag", "--", "true"], "--no-such-flag"),
        (["run", "--tag", "novalue", "--", "true"], "key=value"),
        (["run", "--name", "a/b", "--", "true"], "cannot be used as a file name"),
        (["run", "--run", "../up", "--", "true"], "cannot be used as a file name"),
        (["run", "--run", "last", "--", "true"], "the newest of all"),
        (["run", "--stage", "train", "--", "true"], "--run"),
        (["rnu", "--", "true"], "did you mean `fullbore run`?"),
        (["explian"], "did you mean `fullbore explain`?"),
        (["frobnicate"], "fullbore --help lists the commands"),
        (["python", "train.py", "--lr", "0.1"], "did you mean `fullbore run -- python train.py --lr 0.1`?"),
        (["train.py"], "did you mean `fullbore run -- python train.py`?"),
        (["report", "last"], "did you mean `fullbore explain last`?"),
        (["analyze", "trace.json"], "did you mean `fullbore explain trace.json`?"),
        (["profile", "-o", "out", "python", "train.py"], "did you mean `fullbore run -- python train.py`?"),
        (["record", "--", "python", "train.py"], "did you mean `fullbore run -- python train.py`?"),
        (["watch"], "did you mean `fullbore top`?"),
        (["monitor", "--interval", "1"], "did you mean `fullbore top`?"),
        (["run", "-q", "python", "train.py"], "did you mean `fullbore run -q -- python train.py`?"),
        (["measure", "--set", "workers=1", "--", "python", "train.py"], "did you mean num_workers?"),
        (["completion", "tcsh"], "fullbore completion bash, zsh or fish"),
        (["run", "--open", "--html", "-", "--", "true"], "--open needs a file"),
        (["explain", "no-such-run"], "no run"),
        (["explain", "--json", "last"], "'last' is the newest run"),
        (["loader", "benhc", "photos"], "did you mean `fullbore loader bench`?"),
        (["loader", "bench", "photos", "--batch-size", "0"], "--batch-size 0"),
        (["loader", "bench", "photos", "--no-such-flag"], "--no-such-flag"),
        (["run", "--nmae", "x", "--", "true"], "did you mean --name?"),
        (["explain", "--htlm=page.html"], "did you mean --html?"),
        (["loader", "bench", "photos", "--batchsize", "8"], "did you mean --batch-size?"),
        (["run", "--frobnicate", "--", "true"], "fullbore run --help lists the options"),
        (["explain", "--section", "kernles", "trace.json"], "did you mean --section kernels?"),
        (["explain", "--pid", "abc"], "--pid: 'abc' is not the number of a process\n"),
        (["explain", "--pid", "0"], "--pid: '0' is not the number of a process\n"),
        (["help", "inputbound"], "did you mean `fullbore help input-bound`?"),
        (["help", "tensor"], "did you mean `fullbore help no-tensor-cores`?"),
        (["help", "explian"], "did you mean `fullbore help explain`?"),
        (["help", "frobnicate"], "fullbore help lists them"),
    ],
)
def test_wrong_usage_gets_one_line_and_a_hint(fullbore, arguments, said):
    done = fullbore.call(*arguments)
    assert done.code == 2
    assert said in done.stderr
    assert done.stderr.startswith("fullbore: ")
    assert len(done.stderr.splitlines()) <= 2
    assert done.stdout == b""


def test_last_is_the_newest_run_whatever_files_are_here(fullbore):
    fullbore.script("last", "no run")
    done = fullbore.run("true")
    assert fullbore.call("explain", "last", "-o", done.runs).code == 0
    assert fullbore.call("explain", "./last", "-o", done.runs).code == 1, "no trace"


@pytest.mark.parametrize("command", ["run", "loader", "loader bench"])
def test_help_begins_with_an_example_and_names_the_whole_command(fullbore, command):
    done = fullbore.call(*command.split(), "--help")
    assert done.stdout.decode().startswith(f"  fullbore {command} ")
    assert f"Usage: fullbore {command} [OPTIONS]" in done.stdout.decode()


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "findings").glob("*.md")), ids=lambda page: page.stem)
def test_help_prints_the_whole_page_of_a_finding_without_notes_for_its_tests(fullbore, page):
    text = page.read_text(encoding="utf-8")
    printed = fullbore.call("help", page.stem).stdout.decode()
    assert printed == re.sub(r"^(```\w+) .*$", r"\1", text, flags=re.MULTILINE)


def test_help_lists_the_pages_and_nothing_from_inside_them(fullbore):
    listed = fullbore.call("help").stdout.decode().split("commands (")[0]
    names = [line.split(":")[0].strip() for line in listed.splitlines()[2:] if line]
    assert names == sorted(page.stem for page in (ROOT / "docs" / "findings").glob("*.md"))


def test_doctor_sees_the_processes_of_a_command_and_the_hook_s_extension(fullbore):
    done = fullbore.call("doctor", "--json", "-")
    found = {check["what"]: check["ok"] for check in json.loads(done.stdout)["checks"]}
    assert found["processes of a command"]
    assert found["the hook's extension loads"]
