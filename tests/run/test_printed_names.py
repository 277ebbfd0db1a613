"""Names of files, runs, kernels and archive members can contain anything. No command prints their control characters
to the terminal, lets them forge a line, or reverses the text."""

from __future__ import annotations

import io
import json
import os
import pathlib
import shutil
import sqlite3
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORGED = "fullbore: all is well"
# A terminal title; the escape introducer as a single C1 character; a right-to-left override; a separate line.
HOSTILE = f"x\x1b]0;owned\x07\u009b31m\u202egpj\n{FORGED}\u2066"
HOSTILE_FILE = os.fsencode(HOSTILE) + b"\x9b2J\xff"  # and bytes that are not valid UTF-8

LOCALES = ["C.UTF-8", "C"]


def check_printed(output: bytes, utf8: bool = True) -> str:
    text = output.decode("utf-8" if utf8 else "ascii").replace("\r\n", "\n")  # the line ends of CSV
    raw = {c for c in text if not c.isprintable() and c != "\n"}
    assert not raw, f"{raw} in {text!r}"
    assert not any(line.startswith(FORGED) for line in text.splitlines()), text
    return text


class Printed:
    """Runs a command in a locale and checks what it printed."""

    def __init__(self, fullbore, locale: str) -> None:
        self.fullbore = fullbore
        self.locale = locale

    def __call__(self, *arguments, code: int | None = 0, says_names: bool = True) -> str:
        ended = self.fullbore.call(*arguments, env={"LC_ALL": self.locale})
        utf8 = self.locale != "C" or "-" in arguments  # JSON is UTF-8 everywhere
        out = check_printed(ended.stdout, utf8) + check_printed(ended.stderr_bytes, utf8)
        assert code is None or ended.code == code, out
        assert not says_names or "owned" in out, out
        return out


@pytest.fixture(params=LOCALES)
def printed(fullbore, request) -> Printed:
    return Printed(fullbore, request.param)


def hostile_path(directory: pathlib.Path, suffix: str = "") -> pathlib.Path:
    return pathlib.Path(os.fsdecode(os.fsencode(directory) + b"/" + HOSTILE_FILE + suffix.encode()))


# ---- runs ---------------------------------------------------------------------------------------------------------


def hostile_json(value: object) -> object:
    """The value with all its texts hostile, also those that contain JSON themselves; the keys stay."""
    if isinstance(value, dict):
        return {key: hostile_json(member) for key, member in value.items()}
    if isinstance(value, list):
        return [hostile_json(member) for member in value]
    if isinstance(value, str):
        return json.dumps(HOSTILE) if value.startswith('"') else HOSTILE
    return value


def make_hostile(path: pathlib.Path) -> None:
    """Every text of a recorded run becomes the hostile name."""
    with sqlite3.connect(path) as run:
        run.execute("UPDATE meta SET value = ? WHERE key = 'id'", [HOSTILE])
        run.execute("INSERT OR REPLACE INTO tag VALUES (?, ?)", [HOSTILE, HOSTILE])
        run.execute("UPDATE machine SET value = ? WHERE key = 'cpu_model'", [HOSTILE])
        run.execute("UPDATE stage SET name = ?, command = ?, directory = ?", [HOSTILE, json.dumps([HOSTILE]), HOSTILE])
        run.execute("UPDATE rank SET hostname = ?, device = ?", [HOSTILE, HOSTILE])
        for table, column in [("rank", "facts"), ("rank", "hot_lines"), ("loader", "about")]:
            for (text,) in run.execute(f"SELECT DISTINCT {column} FROM {table}").fetchall():
                changed = json.dumps(hostile_json(json.loads(text)))
                run.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", [changed, text])
        run.execute("UPDATE process SET command = ?", [HOSTILE])
        run.execute("INSERT INTO message SELECT id, 0, 2, ?, ? FROM stage", [HOSTILE, HOSTILE])
    run.close()


@pytest.fixture
def runs(tmp_path) -> pathlib.Path:
    directory = tmp_path / "recorded"
    directory.mkdir()
    for name in ("resnet-no-workers", "resnet-one-worker"):
        path = directory / f"{name}.fbr"
        shutil.copy(ROOT / "tests" / "golden" / path.name, path)
        make_hostile(path)
    return directory


def test_runs_lists_them_a_line_each(printed, runs):
    text = printed("runs", "-o", runs)
    assert len(text.splitlines()) == 3, text
    printed("runs", "-o", runs, "--json", "-")


def test_runs_names_what_it_cannot_read(printed, runs):
    hostile_path(runs, ".fbr").write_bytes(b"nothing of the kind")
    printed("runs", "-o", runs, code=None)
    printed("runs", "-o", hostile_path(runs))


def test_explain_and_compare_of_runs(printed, runs, tmp_path):
    first, second = sorted(runs.glob("*.fbr"))
    printed("explain", first)
    printed("explain", first, "--json", "-")
    printed("compare", first, second)
    printed("compare", first, second, "--json", "-")
    printed("explain", first, "--html", tmp_path / "page.html")
    check_printed((tmp_path / "page.html").read_bytes())


def test_what_is_not_there_is_named(printed, runs):
    missing = hostile_path(runs)
    for arguments in (["explain", missing], ["explain", f"{missing}.json"], ["compare", missing, missing]):
        printed(*arguments, code=2)
    printed("explain", "-o", missing, code=2)
    printed("export", f"{missing}.json", "--to", "perfetto", code=2)
    printed("help", HOSTILE, code=2)
    printed(HOSTILE, code=2)
    printed("runs", f"--{HOSTILE}", code=2)
    printed("run", "--tag", HOSTILE, "--", "true", code=2)
    printed("run", "--name", HOSTILE, "--", "true", code=2)
    printed("explain", "--section", HOSTILE, ROOT / "tests" / "golden" / "resnet-no-workers.json", code=2)


# ---- run ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("locale", LOCALES)
def test_run_says_where_it_records_and_what_it_ran(fullbore, locale, tmp_path):
    directory = hostile_path(tmp_path)
    directory.mkdir()
    script = hostile_path(tmp_path, ".sh")
    script.write_text("exit 3\n")
    ended = fullbore.run("sh", script, HOSTILE, cwd=directory, env={"LC_ALL": locale})
    assert ended.code == 3
    check_printed(ended.stderr_bytes, utf8=locale != "C")
    ended = fullbore.run(hostile_path(tmp_path, "-is-not-there"), env={"LC_ALL": locale})
    assert ended.code == 127
    assert "owned" in check_printed(ended.stderr_bytes, utf8=locale != "C")


# ---- traces -------------------------------------------------------------------------------------------------------


def hostile_trace() -> bytes:
    """Controls in its names, some as JSON's escapes and some raw, as writers of traces leave them."""
    step = {"ph": "X", "cat": "user_annotation", "dur": 1000, "pid": 1, "tid": 1}
    events = [{**step, "name": f"ProfilerStep#{i}", "ts": 1000 * i} for i in range(4)]
    for i in range(4):
        at = 1000 * i
        cause = {"correlation": i + 1}
        events += [
            {"ph": "X", "cat": "cpu_op", "name": HOSTILE, "ts": at + 5, "dur": 20, "pid": 1, "tid": 1},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 10, "dur": 5, "pid": 1, "tid": 1,
             "args": cause},
            {"ph": "X", "cat": "kernel", "name": HOSTILE, "ts": at + 100, "dur": 300, "pid": 0, "tid": 7,
             "args": {**cause, "device": 0, "stream": 7}},
            {"ph": "C", "name": HOSTILE, "ts": at + 20, "pid": 1, "args": {HOSTILE: i}},
        ]  # fmt: skip
    trace = {"schemaVersion": 1, "traceEvents": events, "deviceProperties": [{"id": 0, "name": HOSTILE}]}
    return json.dumps(trace).encode() + b"\n" + b" " * 600


@pytest.fixture
def trace(tmp_path) -> pathlib.Path:
    path = hostile_path(tmp_path, ".json")
    path.write_bytes(hostile_trace())
    return path


def test_explain_of_a_trace_with_all_its_sections(printed, trace, tmp_path):
    printed("explain", trace, "--html", tmp_path / "page.html")
    check_printed((tmp_path / "page.html").read_bytes())
    printed("explain", trace, "--json", "-")
    printed("explain", trace, "--section", "all", "--rows", "1000")
    printed("explain", trace, "--section", "all", "--json", "-")
    table = printed("explain", trace, "--section", "kernels", "--csv", "-")
    assert len(table.splitlines()) == 2, table


def test_compare_and_export_of_traces(printed, trace, tmp_path):
    other = tmp_path / "other.json"
    other.write_bytes(hostile_trace().replace(b'"dur": 300', b'"dur": 500'))
    printed("compare", trace, other)
    printed("compare", trace, other, "--csv", "-")
    printed("compare", trace, other, "--json", "-")
    printed("export", trace, "--to", "perfetto", "-o", "-")
    printed("export", trace, "--to", "perfetto")


def test_members_of_an_archive_and_files_of_a_directory(printed, tmp_path):
    directory = hostile_path(tmp_path)
    directory.mkdir()
    archive = directory / "traces.tar"
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT, errors="surrogateescape") as tar:
        for name, content in [(HOSTILE, hostile_trace()), (f"damaged{HOSTILE}", b"{" * 700)]:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    printed("explain", archive)
    printed("explain", archive, "--section", "kernels")
    hostile_path(directory, "-notes").write_text("not a trace")
    hostile_path(directory, "-damaged.json").write_bytes(b"{" * 700)
    printed("explain", directory)
    printed("explain", directory, "--section", "kernels")


# ---- the loader ---------------------------------------------------------------------------------------------------


@pytest.fixture
def photos(tmp_path) -> pathlib.Path:
    image = pytest.importorskip("PIL.Image")
    root = hostile_path(tmp_path)
    for label in (b"cat", HOSTILE_FILE):
        folder = pathlib.Path(os.fsdecode(os.fsencode(root) + b"/" + label))
        folder.mkdir(parents=True)
        for i in range(4):
            picture = io.BytesIO()
            image.new("RGB", (32, 32), (i, i, i)).save(picture, "JPEG")
            hostile_path(folder, f"{i}.jpg").write_bytes(picture.getvalue())
    return root


def test_the_loader_s_commands(printed, photos, tmp_path):
    shards = hostile_path(tmp_path, "-shards")
    shutil.rmtree(shards, ignore_errors=True)
    printed("loader", "pack", photos, shards)
    printed("loader", "pack", photos, shards, code=None)  # it is not empty
    printed("loader", "pack", photos, tmp_path / "again", "--json", "-")
    quick = ["--seconds", "0.05", "--threads", "1", "--warm-only", "--image-size", "16"]
    printed("loader", "bench", photos, *quick)
    printed("loader", "bench", photos, *quick, "--json", "-")
    printed("loader", "bench", photos, *quick, "--like", "torch", "--python", hostile_path(tmp_path, "-python"))
    for path in photos.rglob("*.jpg"):
        path.write_bytes(b"damaged")
    printed("loader", "bench", photos, *quick, code=None)
    printed("loader", "bench", hostile_path(tmp_path, "-missing"), code=2)
    printed("loader", "bench", "--script", hostile_path(tmp_path, "-missing.py"), code=None)
