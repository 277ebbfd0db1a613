"""`fullbore tune` on unmodified programs by others: what it says is what the program counts, and nothing is left."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys

import pytest
from tune_programs import (
    BATCH_SAMPLER,
    COUNTS,
    CPLUSPLUS,
    HF_TRAINER,
    LIGHTNING,
    RANKS,
    TIMM,
    Listener,
    own_rates,
)
from tune_scripts import processes_with, tree

from tests.conftest import has_landlock

# Neither goes through Python's `open` and `os`.
WRITES_BY_ITSELF = """
import ctypes, os, subprocess, time
assert ctypes.CDLL(None).open(b"weights.bin", os.O_WRONLY | os.O_TRUNC) >= 0
assert os.path.getsize("weights.bin") == 0
assert subprocess.run(["rm", "weights.bin"], stderr=subprocess.DEVNULL).returncode == 0
while True:
    print("5 img/s")
    time.sleep(0.01)
"""
LOGS = """
import time
while True:
    print("5 img/s", file=open("train.log", "a"))
    time.sleep(0.01)
"""
BRIEFLY = ("--precision", "20%", "--most", "5s", "--budget", "240s")
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
PROGRAMS = {
    "lightning": (LIGHTNING, ("lightning",), ()),
    "hf_trainer": (HF_TRAINER, ("transformers", "accelerate"), ()),
    "timm": (TIMM, (), ()),
    "torchrun": (RANKS, (), TORCHRUN),
}


@pytest.fixture
def counts(tmp_path_factory):
    listener = Listener(tmp_path_factory.mktemp("counts") / "told")
    yield listener
    listener.close()


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_others_is_tuned_as_it_counts_itself(fullbore, tune, torch_python, counts, name):
    text, needs, launcher = PROGRAMS[name]
    for module in needs:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed here")
    script = fullbore.script(f"others_{name}.py", COUNTS + text)
    before = tree(fullbore.directory)
    command = (torch_python, *launcher, script)
    said = tune("--set", "num_workers=0,2", *BRIEFLY, "--", *command, env={"COUNTS": counts.name})

    assert {trial["outcome"] for trial in said["trials"]} == {"ok"}, said["terminal"]
    assert said["recommended"]["settings"] == {"num_workers": 2}, "two sleep at a time"
    counted = own_rates(counts.directory)
    assert set(counted) == {0, 2}, "the number of workers that the samples saw"
    assert said["baseline"]["samples_per_s"] == pytest.approx(counted[0], rel=0.3)
    assert said["recommended"]["samples_per_s"] == pytest.approx(counted[2], rel=0.3)
    after = tree(fullbore.directory)
    assert {path for path in after if path not in before} == {"answer.json"}, "no checkpoint, no log"
    assert {path: after[path] for path in before} == before
    assert processes_with(script.name) == []


@pytest.mark.long
def test_a_batch_sampler_forbids_the_batch_size_and_the_rest_is_tuned(fullbore, tune, torch_python, counts):
    script = fullbore.script("others_sampler.py", COUNTS + BATCH_SAMPLER)
    values = ("--set", "batch_size=4,8", "--set", "num_workers=0,2")
    said = tune(*values, *BRIEFLY, "--", torch_python, script, env={"COUNTS": counts.name})
    assert said["recommended"]["settings"] == {"num_workers": 2}
    refused = [trial for trial in said["trials"] if trial["outcome"] == "refused"]
    assert [trial["settings"] for trial in refused] == [{"batch_size": 8}], "asked once"
    assert refused[0]["refused"] == "batch_size" and "batch_sampler" in refused[0]["why"]
    assert refused[0]["why"] in " ".join(said["terminal"].split())
    assert processes_with(script.name) == []


@pytest.mark.long
def test_a_program_in_cplusplus_is_tuned_by_what_it_prints(fullbore, tune):
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler here")
    source = fullbore.script("others_train.cc", CPLUSPLUS)
    program = fullbore.directory / "others_train"
    subprocess.run([compiler, "-std=c++17", "-O1", "-pthread", source, "-o", program], check=True)
    before = tree(fullbore.directory)
    said = tune(
        *("--set", "threads=1,3,6", "--set", "batch=8,64", "--metric", "([0-9.]+) img/s", *BRIEFLY),
        *("--", program, "{batch}", "{threads}"),
    )
    assert said["recommended"]["settings"] == {"threads": 3, "batch": 64}, "more than 3 threads bring nothing"
    assert {trial["outcome"] for trial in said["trials"]} == {"ok"}

    def printed(trial: dict) -> float:
        batch, threads = trial["settings"]["batch"], min(3, trial["settings"]["threads"])
        return batch / (0.010 + 0.001 * batch / threads)

    for trial in said["trials"]:
        assert trial["samples_per_s"] == pytest.approx(printed(trial), rel=1e-3)
    after = tree(fullbore.directory)
    assert {**before, "answer.json": after["answer.json"]} == after
    assert processes_with(str(program)) == []


@pytest.mark.skipif(not has_landlock(), reason="a kernel without Landlock")
def test_what_a_program_in_another_language_writes_is_kept_away_too(fullbore, measure):
    mine = fullbore.script("weights.bin", "mine")
    measure("--metric", "([0-9]+) img/s", "--", "sh", "-c", "while :; do echo theirs >weights.bin; echo 5 img/s; done")
    assert mine.read_text() == "mine"


@pytest.mark.skipif(not has_landlock(), reason="a kernel without Landlock")
def test_what_a_script_writes_by_a_way_unknown_to_us_changes_nothing(fullbore, measure):
    mine = fullbore.script("weights.bin", "mine")
    script = fullbore.script("train.py", WRITES_BY_ITSELF)
    assert measure("--metric", "([0-9]+) img/s", "--", sys.executable, script)["outcome"] == "ok"
    assert mine.read_text() == "mine"


def test_the_log_that_the_throughput_is_read_from_stays_as_it_was_but_is_read(fullbore, measure):
    log = fullbore.script("train.log", "7 img/s, yesterday\n")
    script = fullbore.script("train.py", LOGS)
    said = measure("--metric", "([0-9]+) img/s", "--log", "train.log", "--", sys.executable, script)
    assert (said["outcome"], said["samples_per_s"]) == ("ok", 5)
    assert log.read_text() == "7 img/s, yesterday\n"
