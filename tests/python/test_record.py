"""`with fullbore.record(name)`: a part of a script as a run of its own."""

from __future__ import annotations

import json
import os
import sys

import pytest

LOOP = """
import json, os, sys, time
import fullbore

def train(steps):
    for _ in fullbore.watch(range(steps)):
        time.sleep(0.01)
        fullbore.step()

def seen(recording):
    return len(recording.read().steps["first_step"])
"""


@pytest.mark.parametrize("native", ["1", "0"])
def test_a_block_is_a_run_and_the_next_block_is_another(script, native):
    done = script(
        LOOP
        + """
train(7)
with fullbore.record("first", "runs") as first:
    train(50)
train(9)
with fullbore.record("second", "runs") as second:
    train(80)
print(json.dumps([seen(first), seen(second), first.path, second.path]))
""",
        **({} if native == "1" else {"FULLBORE_HOOK_NATIVE": native}),
    )
    assert done.returncode == 0, done.stderr
    first, second, first_path, second_path = json.loads(done.stdout)
    assert (first, second) == (50, 80)
    assert first_path.endswith("-first.fbr") and second_path.endswith("-second.fbr")


def test_the_report_goes_to_standard_error_unless_it_is_asked_to_be_quiet(script):
    loud = script(LOOP + 'with fullbore.record("loud", "runs"):\n    train(60)\n')
    assert loud.stdout == "" and "steps" in loud.stderr
    quiet = script(LOOP + 'with fullbore.record("quiet", "runs", quiet=True):\n    train(60)\n')
    assert (quiet.stdout, quiet.stderr) == ("", "")


def test_what_the_block_raises_is_raised_and_the_run_says_how_it_ended(script):
    done = script(
        LOOP
        + """
try:
    with fullbore.record("fails", "runs", quiet=True) as recording:
        train(30)
        raise KeyError("mine")
except KeyError as error:
    print(json.dumps([str(error), recording.read().report["exit_status"]]))
"""
    )
    assert json.loads(done.stdout) == ["'mine'", 1], done.stderr


def test_a_forked_child_that_leaves_the_block_ends_nothing(script):
    done = script(
        LOOP
        + """
with fullbore.record("forks", "runs", quiet=True) as recording:
    train(20)
    child = os.fork()
    if not child:
        sys.exit(0)
    os.waitpid(child, 0)
    train(40)
print(seen(recording))
"""
    )
    assert (done.stdout, done.returncode) == ("60\n", 0), done.stderr


def test_a_report_that_cannot_be_made_ends_nothing(script):
    done = script(
        LOOP
        + """
with fullbore.record("loud", "runs"):
    train(20)
    os.environ["FULLBORE_PROGRAM"] = "/nowhere/fullbore"
    os.environ["PATH"] = ""
print("goes on")
"""
    )
    assert (done.stdout, done.returncode) == ("goes on\n", 0), done.stderr
    assert "there is no report of 'loud'" in done.stderr


def test_an_exception_of_before_is_not_what_ended_a_run(script):
    done = script(
        LOOP
        + """
sys.last_value = RuntimeError("DataLoader worker (pid 1) is killed by signal: Killed.")
with fullbore.record("well", "runs", quiet=True) as recording:
    train(30)
print(json.dumps(recording.read().report))
"""
    )
    assert done.returncode == 0, done.stderr
    assert "killed" not in done.stdout


def test_the_environment_is_as_it_was(script):
    done = script(
        LOOP
        + """
before = dict(os.environ)
with fullbore.record("one", "runs", quiet=True):
    during = set(os.environ)
print(json.dumps([before == dict(os.environ), sorted(during - set(before))]))
"""
    )
    same, added = json.loads(done.stdout)
    assert same and "FULLBORE_RUN" in added, done.stderr


@pytest.mark.parametrize(
    "spoils, says",
    [
        ('open("runs", "w").close()', "runs"),
        ('os.environ["FULLBORE_PROGRAM"] = "/bin/false"', "is not recorded"),
        ('name = "no / name"', "cannot be used as a file name"),
    ],
)
def test_where_nothing_can_be_recorded_the_block_runs_all_the_same(script, spoils, says):
    done = script(
        LOOP + f'name = "spoilt"\n{spoils}\nwith fullbore.record(name, "runs"):\n    train(5)\nprint("ran")\n'
    )
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr
    assert says in done.stderr and "Traceback" not in done.stderr


def test_within_fullbore_run_the_block_is_a_part_of_that_run(fullbore, package_environment):
    text = LOOP + 'with fullbore.record("part", "other"):\n    train(60)\nprint(os.path.exists("other"))\n'
    done = fullbore.run(sys.executable, fullbore.script("train.py", text), env=package_environment)
    assert done.stdout == b"False\n", done.stderr
    assert "as a part of the run that goes on already" in done.stderr
    window = done.report["window"]
    assert window["steps"] + window["warmup_steps"] == 60


def test_nothing_of_the_recorder_is_left(script, tmp_path):
    done = script(
        LOOP
        + """
with fullbore.record("left-over", "runs", quiet=True) as recording:
    train(30)
try:
    os.wait()
except ChildProcessError:
    print("no child")
print(sorted(os.listdir("runs")) == [os.path.basename(recording.path)])
"""
    )
    assert done.stdout == "no child\nTrue\n", done.stderr
    assert not [name for name in os.listdir("/dev/shm") if name.endswith("-left-over") and "fullbore-" in name]


TRAINING = """
import json, os, time
import torch
from torch.utils.data import DataLoader, Dataset
import fullbore

class Slow(Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, number):
        time.sleep(0.002)
        return torch.randn(16)

def train(model, loader, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _, batch in zip(range(steps), loader):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
"""
TORCH = """
class Other(torch.nn.Sequential):
    pass

loader, model, other = DataLoader(Slow(), batch_size=4), torch.nn.Linear(16, 4), Other(torch.nn.Linear(16, 9))
train(model, loader, 3)
with fullbore.record("first", "runs", quiet=True) as first:
    train(model, loader, 70)
with fullbore.record("second", "runs", quiet=True) as second:
    train(other, DataLoader(Slow(), batch_size=4, num_workers=2), 70)
    train(other, loader, 5)
said = []
for recording in (first, second):
    run = recording.read()
    where = {finding.id: str(finding.where[:1]) for finding in run.findings}
    said.append([len(run.steps["steps"]), run.report["facts"], run.shares, where])
print(json.dumps(said))
"""


@pytest.mark.long
def test_what_was_imported_and_made_before_is_seen_in_each_block(script, torch_python):
    done = script(TRAINING + TORCH)
    assert done.returncode == 0, done.stderr
    (first, facts, shares, where), (second, other_facts, other_shares, _) = json.loads(done.stdout)
    assert (first, second) == (70, 75)
    assert (facts["model"], other_facts["model"]) == ("Linear", "Other")
    assert shares["data_wait"] > 0.5 and shares["forward"] > 0 and shares["backward"] > 0
    assert other_shares["forward"] > 0 and facts["torch"] == other_facts["torch"]
    assert "train.py" in where["input-bound"], "beside others, where the machine is busy"


WINDOWS = """
loader, model = DataLoader(Slow(), batch_size=4), torch.nn.Linear(16, 4)
with fullbore.record("first", "runs", quiet=True) as first:
    train(model, loader, 12)
left_on = torch.autograd._profiler_enabled()
with fullbore.record("second", "runs", quiet=True) as second:
    train(model, loader, 60)
windows = [recording.read().report.get("device_window") for recording in (first, second)]
print(json.dumps([left_on, *windows]))
"""


@pytest.mark.long
def test_a_window_of_the_profiler_ends_with_its_block_and_the_next_has_its_own(script, torch_python):
    done = script(TRAINING + WINDOWS, FULLBORE_WINDOWS="4@10")
    left_on, first, second = json.loads(done.stdout)
    assert (left_on, first) == (False, None), done.stderr
    assert (second["first_step"], second["steps"]) == (10, 4)


KEPT = """
model, batches = torch.nn.Linear(16, 4), iter(DataLoader(Slow(), batch_size=4))
with fullbore.record("first", "runs", quiet=True) as first:
    train(model, batches, 30)
with fullbore.record("second", "runs", quiet=True) as second:
    train(model, DataLoader(Slow(), batch_size=2), 20)
    train(model, batches, 40)
print(json.dumps([[len(each.read().steps["steps"]), each.read().shares["data_wait"]] for each in (first, second)]))
"""


@pytest.mark.long
def test_an_iterator_may_be_begun_in_one_block_and_go_on_in_another(script, torch_python):
    done = script(TRAINING + KEPT)
    (first, waits), (second, waits_too) = json.loads(done.stdout)
    assert (first, second) == (30, 60), done.stderr
    assert waits > 0.4 and waits_too > 0.4
