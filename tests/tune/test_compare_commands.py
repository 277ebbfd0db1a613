"""`fullbore compare` of two commands, measured in turns; and its exit status for scripts."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import sys
import threading
import time

import pytest
from tune_scripts import METRIC, STREAMS, VALIDATES, WAITS, listed, processes_with, tree, whole_runs

# A training each step of which keeps a core busy for so many milliseconds, by the thread's own clock.
BURNS = """
import sys, time, torch
torch.set_num_threads(1)
torch.manual_seed(0)
busy_s = float(sys.argv[1]) / 1000
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(100_000):
    until = time.thread_time() + busy_s
    while time.thread_time() < until:
        pass
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(torch.rand(8, 4)), torch.arange(8) % 2).backward()
    optimizer.step()
    open("log.txt", "a").write(f"{step}\\n")
"""
BRIEFLY = ("--precision", "20%", "--most", "5s", "--budget", "3m")


@pytest.mark.long
def test_a_candidate_that_is_twice_as_fast_is_proven_so_in_three_pairs(fullbore, compare, printing):
    (fullbore.directory / "mine.txt").write_text("mine")
    before = tree(fullbore.directory)
    said = compare("--baseline", printing(10), "--candidate", printing(20), *METRIC)
    assert (said["verdict"], said["ended"]) == ("faster", "decided")
    assert said["gain"] == pytest.approx({"expected": 2, "low": 2, "high": 2})
    assert said["pairs"] == [whole_runs(100, 200)] * 3
    assert [trial["side"] for trial in said["trials"]] == [
        "baseline",
        "candidate",
        "candidate",
        "baseline",
        "baseline",
        "candidate",
    ]
    assert (said["baseline"]["rate"], said["candidate"]["rate"]) == (100, 200)
    assert (said["settled_by"], said["losses"], said["failed_if"]) == (None, None, [])
    assert "The candidate is faster: 2.00x (2.00 to 2.00 at 95 %)." in said["terminal"]
    assert "whole runs in turns" in said["terminal"] and said["turns"] == "whole-runs"
    assert "after 2 pairs: 2.00x" in said["stderr"], "progress"
    runs = json.loads(fullbore.call("runs", "--json", "-").stdout)
    assert sorted(run["tags"]["compare"] for run in runs) == ["baseline"] * 3 + ["candidate"] * 3
    (fullbore.directory / "answer.json").unlink()
    assert tree(fullbore.directory) == before
    assert processes_with(f"prints_{os.getpid()}.py") == []


@pytest.mark.long
def test_a_slower_candidate_fails_as_asked(compare, printing):
    slower = ("--baseline", printing(20), "--candidate", printing(10), *METRIC)
    said = compare(*slower, "--fail-if", "slower 3%", "--fail-if", "slower:60%", "--fail-if", "not-proven", code=3)
    assert said["verdict"] == "slower"
    assert said["failed_if"] == ["slower 3%"], "by half"
    assert "--fail-if 'slower 3%' holds" in said["stderr"]
    assert compare(*slower, "--fail-if", "slower 60%")["failed_if"] == []


@pytest.mark.long
def test_the_same_command_twice_is_no_difference(compare, printing):
    same = ("--baseline", printing(10), "--candidate", printing("10.0"), *METRIC)
    said = compare(*same, "--fail-if", "not-faster", code=3)
    assert (said["verdict"], said["ended"]) == ("not-proven", "no-difference")
    assert "No difference: 1.00x" in said["terminal"]
    assert "Neither is faster by 2 %" in said["terminal"]


@pytest.mark.long
def test_a_training_is_measured_by_its_steps_and_its_losses_are_compared(fullbore, in_turns, torch_python):
    fullbore.script("burns_by_steps.py", BURNS)
    command = f"OMP_NUM_THREADS=1 '{torch_python}' burns_by_steps.py"
    said = in_turns(f"{command} 40", f"{command} 10")
    assert (said["verdict"], said["turns"]) == ("faster", "slices"), said["terminal"]
    assert said["gain"]["expected"] == pytest.approx(4, rel=0.4)
    assert "slices of both in turns" in said["terminal"]
    assert len({trial["run"] for trial in said["trials"]}) == len(said["trials"])
    assert said["gain"]["low"] > 1
    assert said["losses"]["steps"] == 20 and said["losses"]["largest_difference"] == 0
    assert "losses of the first 20 steps with the candidate: the same" in said["terminal"]
    assert not (fullbore.directory / "log.txt").exists()
    assert processes_with("burns_by_steps.py") == []


@pytest.fixture
def in_turns(compare):
    """`compare` of two trainings, BRIEFLY. A neighbour who comes or goes is rightly taken for something that goes on
    while they stand: then again."""

    def call(baseline: str, candidate: str) -> dict:
        for _ in range(3):
            said = compare("--baseline", baseline, "--candidate", candidate, *BRIEFLY)
            if said["turns"] == "slices":
                break
        return said

    return call


@pytest.mark.long
def test_what_comes_in_every_fiftieth_step_counts(fullbore, in_turns, torch_python):
    fullbore.script("validates.py", VALIDATES)
    command = f"OMP_NUM_THREADS=1 '{torch_python}' validates.py"
    said = in_turns(f"{command} 50", f"{command} 1000000000")
    assert (said["verdict"], said["turns"]) == ("faster", "slices"), said["terminal"] + said["stderr"]


@pytest.mark.long
def test_a_program_that_must_not_stand_is_measured_by_whole_runs(fullbore, compare, torch_python):
    watched = """
    if step > 15 and time.monotonic() - seen > 1.5:
        sys.exit("a step took too long")
    seen = time.monotonic()
"""
    fullbore.script("watched.py", BURNS + watched)
    command = f"OMP_NUM_THREADS=1 '{torch_python}' watched.py"
    said = compare("--baseline", f"{command} 20", "--candidate", f"{command} 5", *BRIEFLY)
    assert (said["verdict"], said["turns"]) == ("faster", "whole-runs"), said["terminal"]
    assert re.search(r"take turns \(the \w+: exit status 1: a step took too long\): whole runs", said["stderr"])


@pytest.mark.long
def test_a_program_that_ends_meanwhile_is_measured_by_whole_runs(fullbore, compare, torch_python):
    after_standing = "import signal\nsignal.signal(signal.SIGCONT, lambda *_: sys.exit(0))\nfor step in"
    fullbore.script("ends.py", BURNS.replace("for step in", after_standing))
    command = f"OMP_NUM_THREADS=1 '{torch_python}' ends.py"
    said = compare("--baseline", f"{command} 20", "--candidate", f"{command} 5", *BRIEFLY)
    assert (said["verdict"], said["turns"]) == ("faster", "whole-runs"), said["terminal"]
    assert re.search(r"they cannot take turns \(the \w+: it ended\): whole runs", said["stderr"])


@pytest.mark.long
def test_waits_for_data_are_measured_in_slices_where_nothing_feeds_them_meanwhile(fullbore, in_turns, torch_python):
    # Many short waits: one that ends while the program stands is little of a slice.
    waits = "for _ in range(int(sys.argv[1])): time.sleep(0.0005)"
    fullbore.script("waits.py", WAITS.replace("time.sleep(0.004)", waits).replace("import time", "import sys, time"))
    command = f"'{torch_python}' waits.py"
    said = in_turns(f"{command} 8", f"{command} 2")
    assert (said["verdict"], said["turns"]) == ("faster", "slices"), said["terminal"] + said["stderr"]
    assert all(trial["in_slices"] for trial in said["trials"])


@pytest.fixture
def sending():
    """The port of a server that sends each client a batch of 4,096 bytes every 20 ms."""

    def feed(client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            while True:
                client.sendall(bytes(4096))
                time.sleep(0.02)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=feed, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.long
@pytest.mark.parametrize("how", ["blocks", "spins"])
def test_what_feeds_a_program_while_it_stands_makes_it_a_matter_of_whole_runs(
    fullbore, compare, torch_python, sending, how
):
    fullbore.script("streams.py", STREAMS)
    command = f"'{torch_python}' streams.py {sending} {how}"
    said = compare("--baseline", f"{command} 0.012", "--candidate", f"{command} 0.04", *BRIEFLY)
    assert (said["verdict"], said["turns"]) == ("slower", "whole-runs"), said["terminal"] + said["stderr"]
    assert "they cannot take turns (the " in said["stderr"] and "while it is stopped" in said["stderr"]


@pytest.mark.long
def test_all_ranks_of_a_training_take_turns_together(fullbore, in_turns, torch_python):
    ranks = BURNS.replace(
        "import sys, time, torch", "import sys, time, torch\ntorch.distributed.init_process_group('gloo')"
    )
    ranks = ranks.replace("optimizer = ", "model = torch.nn.parallel.DistributedDataParallel(model)\noptimizer = ")
    fullbore.script("ranks.py", ranks)
    torchrun = f"'{torch_python}' -m torch.distributed.run --standalone --nproc-per-node 2 ranks.py"
    said = in_turns(f"{torchrun} 40", f"{torchrun} 10")
    assert (said["verdict"], said["turns"]) == ("faster", "slices"), said["terminal"] + said["stderr"]
    assert processes_with("ranks.py") == []


@pytest.mark.long
def test_who_wants_whole_runs_gets_them(fullbore, compare, torch_python):
    fullbore.script("burns.py", BURNS)
    command = f"OMP_NUM_THREADS=1 '{torch_python}' burns.py"
    said = compare("--whole-runs", "--baseline", f"{command} 20", "--candidate", f"{command} 5", *BRIEFLY)
    assert (said["verdict"], said["turns"]) == ("faster", "whole-runs"), said["terminal"]


@pytest.mark.long
def test_whole_runs_are_counted_in_steps_where_the_samples_of_only_one_are_known(fullbore, compare, torch_python):
    fullbore.script("burns.py", BURNS)
    fullbore.script("waits.py", WAITS)
    python = f"OMP_NUM_THREADS=1 '{torch_python}'"
    said = compare("--whole-runs", "--baseline", f"{python} waits.py", "--candidate", f"{python} burns.py 5", *BRIEFLY)
    assert (said["verdict"], said["unit"]) == ("faster", "steps/s"), said["terminal"]
    assert {trial["unit"] for trial in said["trials"]} == {"samples/s", "steps/s"}


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_who_is_ended_while_one_of_two_stands_leaves_none(fullbore, torch_python, tmp_path, how):
    script = f"burns_until_{how}.py"  # others may run beside this test
    fullbore.script(script, BURNS)
    command = f"OMP_NUM_THREADS=1 '{torch_python}' {script} 5"
    started = fullbore.begin(
        fullbore.binary, "compare", "-o", tmp_path / "kept", "--baseline", command, "--candidate", command, text=True
    )
    while not any(line.startswith("T") for line in listed(script)):
        assert started.poll() is None
    os.kill(started.pid, how)
    said = started.stdout.read()
    assert started.wait() == (128 + how if how == signal.SIGINT else -how)
    if how == signal.SIGINT:
        assert "interrupted" in said
    assert processes_with(script) == []
    assert not (fullbore.directory / "log.txt").exists()


def test_a_command_that_fails_is_named_with_its_reason(fullbore, compare, printing):
    fullbore.script("fails.py", "raise ValueError('no such file')")
    fails = f"'{sys.executable}' fails.py"
    said = compare("--baseline", printing(10), "--candidate", fails, *METRIC, "--fail-if", "slower", code=1)
    assert (said["verdict"], said["ended"], said["gain"]) == ("failed", "failed", None)
    assert said["why"].startswith("the candidate could not be measured: crashed")
    assert "ValueError: no such file" in said["terminal"]
    assert len(said["trials"]) == 2
    assert compare("--baseline", fails, "--candidate", printing(10), *METRIC, code=1)["why"].startswith("the baseline")
    done = fullbore.call("compare", "--baseline", "no-such-program", "--candidate", printing(10), *METRIC)
    assert done.code == 2 and "no-such-program" in done.stderr


@pytest.mark.long
def test_a_command_without_steps_is_not_compared(compare, printing, fullbore):
    fullbore.script("sleeps.py", "import time; time.sleep(600)")
    sleeps = f"'{sys.executable}' sleeps.py"
    hung = compare("--baseline", sleeps, "--candidate", printing(10), *METRIC, "--patience", "1s", code=1)
    assert "hung, no first step" in hung["why"]
    too_late = compare("--baseline", sleeps, "--candidate", sleeps, "--budget", "2s", code=1)
    assert (too_late["verdict"], too_late["ended"]) == ("not-proven", "budget")
    assert "the budget of 2 s ended before a first step was seen; --metric" in too_late["terminal"]
    assert processes_with("sleeps.py") == []


@pytest.mark.long
def test_what_the_budget_leaves_open_is_not_proven_and_says_so(compare, printing):
    said = compare("--baseline", printing(10), "--candidate", printing(20), *METRIC[:2], "--budget", "3s", code=1)
    assert (said["verdict"], said["ended"], said["gain"]) == ("not-proven", "budget", None)
    assert "give a longer --budget" in said["settled_by"]
    assert "Not proven: there are fewer than two pairs" in said["terminal"]


def test_ctrl_c_leaves_no_process_and_no_files(fullbore, tmp_path):
    fullbore.script("compared_without_end.py", "import time\nprint('begun', flush=True)\ntime.sleep(600)")
    kept = tmp_path / "kept"
    command = f"'{sys.executable}' compared_without_end.py"
    started = fullbore.begin(fullbore.binary, "compare", "-o", kept, "--baseline", command, "--candidate", command)
    while not any(path.stat().st_size for path in kept.glob("*/output")):
        assert started.poll() is None
    os.kill(started.pid, signal.SIGINT)
    assert b"interrupted" in started.stdout.read()
    assert started.wait() == 128 + signal.SIGINT
    assert processes_with("compared_without_end.py") == []
    assert [path.suffix for path in kept.iterdir()] == [".fbr"]


def test_what_makes_no_sense_is_an_error_of_use(fullbore):
    for arguments, said in (
        (["--baseline", "true"], "--baseline and --candidate"),
        (["--baseline", "true", "--candidate", "python 'x"], "a quote is not closed"),
        (["--baseline", "true", "--candidate", "true", "--", "true"], "by nothing else"),
        (["--baseline", "true", "--candidate", "true", "--budget", "soon"], "is not a length of time"),
        (["--baseline", "true", "--candidate", "true", "--csv", "x.csv"], "these are commands"),
        (["--baseline", "true", "--candidate", "true", "--fail-if", "worse"], "not-faster 10%"),
        (["--at", "main"], "no command"),
        (["--set", "num_workers=2"], "no command"),
        (["--set", "num_workers", "--", "true"], "num_workers"),
        (["--set", "num_workers=-3", "--", "true"], "num_workers"),
        (["--set", "nonsense=1", "--", "true"], "nonsense"),
        (["--set", "rate=20", "--", "print", "{rate}"], "the command as it is has no value for {rate}"),
        (["--set", "num_workers=2", "--at", "main", "--", "true"], "not both"),
        (["--set", "num_workers=2", "--baseline", "true", "--candidate", "true"], "by nothing else"),
        (["--at", "main", "--baseline", "true", "--", "true"], "by nothing else"),
        (["--at", "a", "--at", "b", "--at", "c", "--", "true"], "one commit, or two"),
        (["A"], "B is required"),
        (["A", "B", "--baseline", "true"], "two to eight runs or traces, or two commands"),
        ([], "A is required"),
    ):
        done = fullbore.call("compare", *arguments)
        assert done.code == 2, arguments
        assert said in " ".join(done.stderr.split()), arguments


# ---- one command with a setting ----


@pytest.mark.long
def test_one_setting_is_proven_on_a_script_that_nobody_edits(fullbore, compare, torch_python):
    fullbore.script("waits.py", WAITS)
    said = compare("--set", "num_workers=4", *BRIEFLY, "--", torch_python, "waits.py")
    assert said["verdict"] == "faster" and said["gain"]["expected"] > 2, said["terminal"]
    assert said["candidate"]["settings"] == {"num_workers": 4} and "settings" not in said["baseline"]
    assert said["candidate"]["command"] == said["baseline"]["command"]
    assert "waits.py with num_workers=4" in said["terminal"]
    assert [trial["settings"] for trial in said["trials"] if trial["side"] == "candidate"][0] == {"num_workers": 4}


@pytest.mark.long
def test_a_setting_that_the_script_does_not_take_is_named_with_the_reason(fullbore, compare, torch_python):
    fullbore.script("burns.py", BURNS)
    said = compare("--set", "num_workers=2", *BRIEFLY, "--", torch_python, "burns.py", "5", code=1)
    assert said["verdict"] == "failed"
    assert "num_workers: nothing in the script was seen to use it" in said["why"]
    assert [trial["side"] for trial in said["trials"]] == ["candidate"], "no whole run of the other one before it"
