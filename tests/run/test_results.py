"""Options that name a file to write: what stands there and is not a result of ours is kept, whatever was mistyped."""

from __future__ import annotations

import csv
import gzip
import json
import os
import pathlib
import stat
import subprocess
import sys

import pytest

SCRIPT = "import pathlib\npathlib.Path('ran').touch()\n"


def made_trace(path: pathlib.Path, kernel_us: int = 400) -> pathlib.Path:
    events = []
    for step in range(4):
        begin = 1000 * step
        where = {"ph": "X", "pid": 1, "tid": 1}
        events += [
            {**where, "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begin, "dur": 1000},
            {**where, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": begin + 50, "dur": 5}
            | {"args": {"correlation": step + 1}},
            {**where, "cat": "kernel", "name": "gemm", "ts": begin + 100, "dur": kernel_us, "pid": 0, "tid": 7}
            | {"args": {"correlation": step + 1, "device": 0, "stream": 7}},
        ]
    path.write_bytes(gzip.compress(json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()))
    return path


@pytest.fixture
def there(fullbore) -> pathlib.Path:
    """A directory with a script, a run and traces."""
    fullbore.script("train.py", SCRIPT)
    (fullbore.directory / "traces").mkdir()
    for name in ("trace.json.gz", "A.json.gz", "B.json.gz", "C.json.gz", "traces/rank0.json.gz"):
        made_trace(fullbore.directory / name)
    done = fullbore.call("run", "-q", "--run", "kept", "--", "true")
    assert done.code == 0, done.stderr
    return fullbore.directory


def contents(directory: pathlib.Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if stat.S_ISREG(path.lstat().st_mode)
    }


def with_options(arguments: list[str], *more: str) -> list[str]:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [*arguments[:end], *more, *arguments[end:]]


PYTHON = [sys.executable, "train.py"]
A, B, C = "A.json.gz", "B.json.gz", "C.json.gz"
RUN_FILE = ".fullbore/runs/kept.fbr"
FORGOTTEN = [
    ["explain", "--html", "trace.json.gz"],
    ["explain", "--json", "trace.json.gz"],
    ["explain", "--json", "kept"],
    ["explain", "--json", "last"],
    ["explain", "--html", RUN_FILE],
    ["explain", "--section", "kernels", "--csv", A, B],
    ["explain", "traces", "--html", "traces/rank0.json.gz"],
    ["export", A, "--to", "perfetto", "-o", A],
    ["export", A, "--to", "perfetto", "-o", "train.py"],
    ["compare", "--json", A, B, C],
    ["compare", "--csv", A, B, C],
    ["runs", "--json", RUN_FILE],
    ["alerts", "--json", RUN_FILE],
    ["alerts", "test", "default", "kept", "--json", RUN_FILE],
    ["doctor", "--json", "train.py"],
    ["top", "--json", "train.py", "--once"],
    ["loader", "pack", "traces", "packed", "--json", "train.py"],
    ["loader", "bench", "--script", "train.py", "--json", "train.py"],
    ["run", "--html", "train.py", "--", *PYTHON],
    ["run", "--json", "train.py", "--", *PYTHON],
    ["run", "--json", A, "--", *PYTHON],
    ["measure", "--json", "train.py", "--", *PYTHON],
    ["tune", "--patch", "train.py", "--", *PYTHON],
    ["tune", "--html", "train.py", "--", *PYTHON],
    ["tune", "--json", "train.py", "--", *PYTHON],
]


@pytest.mark.parametrize("arguments", FORGOTTEN, ids=" ".join)
def test_a_forgotten_name_costs_no_file_and_no_work(fullbore, there, arguments):
    before = contents(there)
    done = fullbore.call(*arguments)
    assert done.code == 2, done.stderr
    assert "hint: is the name of the output missing?" in done.stderr
    assert contents(there) == before, "nothing was replaced, and nothing ran"
    assert done.stdout == b""


INPUTS = [arguments for arguments in FORGOTTEN if arguments[2:] == ["train.py", "--", *PYTHON]] + [
    ["explain", "trace.json.gz", "--html", "trace.json.gz"],
    ["explain", "trace.json.gz", "--html", "hard"],
    ["explain", "trace.json.gz", "--html", "soft"],
    ["explain", "traces", "--json", "traces/rank0.json.gz"],
    ["export", A, "--to", "perfetto", "-o", A],
    ["compare", A, B, "--json", B],
    ["run", "--json", "config", "--", "cat", "--file=config"],
    ["run", "--json", "config", "--", "sh", "-c", "cat config | wc"],
]


@pytest.mark.parametrize("arguments", INPUTS, ids=" ".join)
def test_an_input_is_no_output_by_force_either(fullbore, there, arguments):
    (there / "hard").hardlink_to(there / "trace.json.gz")
    (there / "soft").symlink_to("trace.json.gz")
    (there / "config").write_text('{"schema": "fullbore.report/1"}')
    before = contents(there)
    done = fullbore.call(*with_options(arguments, "--force"))
    assert done.code == 2
    assert "is an input of this command" in done.stderr
    assert contents(there) == before


def test_options_that_lack_their_name_say_so(fullbore, there):
    for arguments in (["runs", "--json"], ["measure", "--json", "--", *PYTHON], ["top", "--json", "--once"]):
        done = fullbore.call(*arguments)
        assert done.code == 2 and "--json -" in done.stderr, done.stderr
    done = fullbore.call("compare", "--json", A, B)
    assert done.code == 2 and f"'{A}' was taken for the name behind --json" in done.stderr
    assert fullbore.call("explain", "--json", "", "kept").code == 2


RESULTS = [
    ["explain", "kept", "--json", "out"],
    ["explain", "kept", "--html", "out"],
    ["explain", A, "--section", "kernels", "--csv", "out"],
    ["explain", A, "--section", "kernels", "--json", "out"],
    ["compare", A, B, "--json", "out"],
    ["compare", A, B, "--csv", "out"],
    ["export", A, "--to", "perfetto", "-o", "out"],
    ["export", A, "--to", "perfetto", "-o", "out.gz"],
    ["runs", "--json", "out"],
    ["alerts", "kept", "--json", "out"],
    ["alerts", "test", "default", "kept", "--json", "out"],
    ["doctor", "--json", "out"],
    ["top", "--once", "--json", "out"],
    ["run", "-q", "--json", "out", "--", "true"],
    ["run", "-q", "--html", "out", "--", "true"],
    ["measure", "--json", "out", "--metric", "([0-9]+)", "--", "sh", "-c", "echo 5; echo 6"],
    ["tune", "--json", "out", "--set", "batch=1,2", "--metric", "([0-9]+)", "--budget", "1s", "--", "echo", "{batch}"],
    ["tune", "--html", "out", "--set", "batch=1,2", "--metric", "([0-9]+)", "--budget", "1s", "--", "echo", "{batch}"],
]


@pytest.mark.parametrize("arguments", RESULTS, ids=lambda arguments: " ".join(arguments[:6]))
def test_a_result_is_replaced_by_the_next_and_another_file_by_force(fullbore, there, arguments):
    out = there / next(word for word in arguments if word in ("out", "out.gz"))

    def write(*more: str) -> int:
        return fullbore.call(*with_options(arguments, *more)).code

    codes = {write()}
    first = out.read_bytes()
    assert first
    codes.add(write())
    assert codes <= {0, 1}, "the result of the first is replaced"
    out.write_text("precious")
    assert write() == 2
    assert out.read_text() == "precious"
    assert write("--force") in codes
    assert out.read_bytes() != b"precious"
    assert not list(there.glob("*.part"))


def test_pages_of_a_run_that_goes_on_replace_each_other(fullbore, there):
    page = there / ".fullbore" / "runs" / "kept.html"
    before = page.read_bytes()
    assert fullbore.call("run", "-q", "--run", "kept", "--stage", "more", "--", "true").code == 0
    assert page.read_bytes() != before


def test_a_page_that_the_training_wrote_is_kept_and_its_status_too(fullbore, there):
    done = fullbore.call("run", "--html", "page.html", "--", "sh", "-c", "n=page; echo mine >$n.html; exit 7")
    assert done.code == 7
    assert "'page.html' is there already" in done.stderr
    assert (there / "page.html").read_text() == "mine\n"


def test_devices_are_written_through(fullbore, there):
    for number, name in ((3, "null"), (7, "full")):
        try:
            os.mknod(there / name, 0o666 | stat.S_IFCHR, os.makedev(1, number))
            (there / name).open("wb").close()
        except PermissionError:
            pytest.skip("needs the right to make devices")
    (there / "link").symlink_to("null")
    for option in (["--json", "null"], ["--html", "link"], ["--json", "null", "--html", "null"]):
        assert fullbore.call("explain", "kept", *option).code == 0
    assert fullbore.call("export", A, "--to", "perfetto", "-o", "null").code == 0
    done = fullbore.call("explain", "kept", "--json", "full")
    assert done.code == 1 and "No space left" in done.stderr
    assert fullbore.call("run", "--json", "full", "--", "sh", "-c", "exit 7").code == 7
    assert [stat.S_ISCHR((there / name).lstat().st_mode) for name in ("null", "full")] == [True, True]
    assert (there / "link").is_symlink()


@pytest.mark.long
def test_a_fifo_gets_the_report_and_stays(fullbore, there):
    os.mkfifo(there / "fifo")
    with subprocess.Popen(["cat", "fifo"], cwd=there, stdout=subprocess.PIPE) as reader:
        assert fullbore.call("explain", "kept", "--json", "fifo").code == 0
        assert json.loads(reader.communicate()[0])["schema"] == "fullbore.report/1"
    assert stat.S_ISFIFO((there / "fifo").lstat().st_mode)
    assert fullbore.call("run", "--json", "fifo", "--", "sh", "-c", "exit 7").code == 7, "nobody reads it"


def shell(fullbore, line: str, program: str = "bash") -> subprocess.CompletedProcess:
    return subprocess.run(
        [program, "-c", line],
        cwd=fullbore.directory,
        env=fullbore.environment({"FB": str(fullbore.binary)}),
        capture_output=True,
        timeout=60,
    )


def test_what_the_shell_puts_in_the_place_of_a_file_is_written_through(fullbore, there):
    done = shell(fullbore, '"$FB" explain kept -q --json >(cat >got); wait $!')
    assert done.returncode == 0, done.stderr
    assert json.loads((there / "got").read_text())["schema"] == "fullbore.report/1"
    done = shell(fullbore, 'echo before >log; "$FB" explain kept --json /dev/stdout >>log')
    before, said = (there / "log").read_text().split("\n", 1)
    assert (done.returncode, before, json.loads(said)["schema"]) == (0, "before", "fullbore.report/1")
    done = shell(fullbore, '"$FB" runs --json /proc/self/fd/1 | cat')
    assert json.loads(done.stdout)[0]["id"] == "kept"
    done = shell(fullbore, '"$FB" run -q --json >(true) -- sh -c "exit 7"; echo $?')
    assert done.stdout == b"7\n", "a reader that has gone is no concern of the command"


def test_a_reader_that_has_gone_is_said(fullbore, there):
    done = shell(fullbore, 'set -o pipefail; { sleep 0.2; "$FB" explain kept --json -; echo $? >status; } | true')
    assert (there / "status").read_text() == "1\n"
    assert b"cannot write standard output: Broken pipe" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", "kept", "--json", "-"],
        ["compare", A, B, "--json", "-"],
        ["runs", "--json", "-"],
        ["doctor", "--json", "-"],
        ["top", "--once", "--json", "-"],
        ["measure", "--metric", "([0-9]+)", "--json", "-", "--", "sh", "-c", "echo 5; echo 6"],
    ],
    ids=" ".join,
)
def test_a_dash_means_standard_output_and_nothing_but_the_object(fullbore, there, arguments):
    done = fullbore.call(*arguments)
    assert done.code == 0, done.stderr
    assert json.loads(done.stdout)
    assert not (there / "-").exists()


def test_links_are_followed_to_what_may_be_replaced(fullbore, there):
    (there / "foreign").write_text("precious")
    (there / "to-foreign").symlink_to("foreign")
    (there / "to-new").symlink_to("new")
    assert fullbore.call("explain", "kept", "--json", "to-foreign").code == 2
    assert (there / "foreign").read_text() == "precious"
    for _ in range(2):
        assert fullbore.call("explain", "kept", "--json", "to-new").code == 0
    assert json.loads((there / "new").read_text())["schema"] == "fullbore.report/1"
    assert (there / "to-new").is_symlink() and (there / "to-foreign").is_symlink()


def test_a_directory_is_no_result(fullbore, there):
    for force in ([], ["--force"]):
        done = fullbore.call("explain", "kept", "--html", "traces", *force)
        assert done.code == 2 and "'traces' is a directory" in done.stderr


def test_two_results_cannot_be_one_file(fullbore, there):
    for name in ("both", "-"):
        done = fullbore.call("explain", "kept", "--html", name, "--json", name)
        assert done.code == 2 and "--html would both write to" in done.stderr or "both write" in done.stderr
    assert not (there / "both").exists()


def test_a_full_disk_leaves_the_old_result_whole(fullbore, there, small_disk):
    page = small_disk / "page.html"
    assert fullbore.call("explain", "kept", "--html", page).code == 0
    before = page.read_bytes()
    with open(small_disk / "filler", "ab", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError:
            pass
    done = fullbore.call("explain", "kept", "--html", page)
    assert done.code == 1 and "No space left" in done.stderr
    assert page.read_bytes() == before
    assert sorted(path.name for path in small_disk.iterdir()) == ["filler", "page.html"]


def test_tables_and_windows_stay_readable_for_others(fullbore, there):
    """The marks by which results are known again are none for their readers."""
    assert fullbore.call("explain", A, "--section", "kernels", "--csv", "kernels.csv").code == 0
    with open(there / "kernels.csv", newline="") as file:
        assert {row["name"] for row in csv.DictReader(file)} == {"gemm"}
    assert fullbore.call("export", A, "--to", "perfetto", "-o", "window.json.gz").code == 0
    assert json.loads(gzip.decompress((there / "window.json.gz").read_bytes()))["traceEvents"]
