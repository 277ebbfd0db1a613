"""The autopilot changes the number of workers while the script trains: bit for bit the same training, and what does not
help is taken back."""

from __future__ import annotations

import json
import os
import re

import pytest
from channel_reader import Channel
from conftest import BEFORE_CHILDREN, SITE
from hook_package import load
from test_settings import IN_CHILDREN

TRAINING = """
    import gc, hashlib, json, os, random, sys, threading, time
    import numpy
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

    from rows import Rows as LibraryRows

    class Rows(LibraryRows):  # the script's own
        pass

    class Collecting(Rows):  # a training with many objects that collects its garbage all the time
        def __init__(self):
            super().__init__(0)
            self.many = [[index] for index in range(50_000)]
        def __getitem__(self, index):
            if index % 10 == 0:
                gc.collect()
            return super().__getitem__(index)

    class Noting(Rows):  # of its workers, how far they give way to others
        def __getitem__(self, index):
            if os.getpid() != TRAINER[0]:
                with open("niceness", "a") as file:
                    file.write(f"{os.nice(0)}\\n")
            return super().__getitem__(index)

    class Logging(Rows):  # what is read is seen outside
        def __getitem__(self, index):
            with open("read", "a") as file:
                file.write(f"{index}\\n")
            return super().__getitem__(index)

    class Odd(dict):  # a batch that neither can be copied nor tells its values
        values = 3
        def __init__(self, rows):
            super().__init__(rows=rows)
            self.generator, self.lock = (each for each in rows), threading.Lock()

    TRAINER = [0]

    def fit(data, epochs=4, **options):
        TRAINER[0] = os.getpid()
        torch.manual_seed(3); random.seed(3); numpy.random.seed(3)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        loader = DataLoader(data, 4, shuffle=True, **options)
        losses = []
        for epoch in range(epochs):
            for x in loader:
                optimizer.zero_grad()
                loss = model(x["rows"] if isinstance(x, Odd) else x).square().mean()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            random.random(), torch.rand(1)
        print(json.dumps({"losses": losses, "workers": loader.num_workers}), flush=True)
"""
# Installed, and so no code of the script's.
LIBRARY = """
import os, time
import torch
from torch.utils.data import Dataset, get_worker_info

class Rows(Dataset):
    def __init__(self, nap=0.005, draw=lambda: 0.0, dies_at=None):
        self.nap, self.draw, self.dies_at = nap, draw, dies_at
    def __len__(self):
        return 100
    def __getitem__(self, index):
        time.sleep(self.nap)
        if index == self.dies_at and get_worker_info() is not None:
            os._exit(7)
        return torch.tensor([index / 100.0, index % 7, self.draw(), 1.0])
"""
ELSEWHERE = "in workers, what {} does beside making samples would happen elsewhere, and ahead of the training"
# What decides is set, because how fast workers and collections are depends on what else this machine does.
KEPT = """
pilot = sys.modules.get("_fullbore_hook.steer.autopilot")
if pilot:
    sys.modules["_fullbore_hook.steer.period"].MIN_NS = 0
    sys.modules["_fullbore_hook.steer.freezing"].MIN_SHARE = 2  # collections stay as they are
    pilot.cores, pilot.noise_of = lambda: 2, lambda before, after: -1e18
    pilot.MIN_GAIN = pilot.SURE_GAIN = -1e9
"""
HURTS = KEPT + "    pilot.MIN_GAIN = 2\n"
FREEZES = """
freezing = sys.modules.get("_fullbore_hook.steer.freezing") or type(sys)("freezing")
freezing.MIN_SHARE, freezing.CHEAPER = 0, 1e18
period = sys.modules.get("_fullbore_hook.steer.period")
if period:
    period.MIN_NS, period.Period.noise = 0, lambda self: 1e18
    sys.modules["_fullbore_hook.steer.autopilot"].MIN_SHARE = 2  # the loader stays as it is
"""
# The script, and what is said of it, without steps and times.
CASES = {
    "kept": (KEPT + "fit(LibraryRows())", ["0 -> 2 workers, kept"]),
    "the script's own": (KEPT + "fit(Rows())", ["keeps its 0 workers: " + ELSEWHERE.format("Rows")]),
    "collated by the script": (
        KEPT + "fit(LibraryRows(), collate_fn=lambda rows: torch.stack(rows))",
        ["keeps its 0 workers: " + ELSEWHERE.format("<lambda>")],
    ),
    "logging": (KEPT + "fit(Logging())", ["keeps its 0 workers: " + ELSEWHERE.format("Logging")]),
    "odd batches": (
        KEPT + "fit(Rows(), collate_fn=lambda rows: Odd(torch.stack(rows)))",
        ["keeps its 0 workers: " + ELSEWHERE.format("Rows")],
    ),
    "more": (KEPT + "fit(Rows(0.01), num_workers=1)", ["1 -> 2 workers, kept"]),
    "wants its cores": (KEPT + "torch.set_num_threads(2)\nfit(Noting(0.01), num_workers=1)", ["1 -> 2 workers, kept"]),
    "hurts": (HURTS + "fit(LibraryRows())", ["0 -> 2 workers, taken back"]),
    "dies": (KEPT + "fit(LibraryRows(dies_at=57))", ["0 -> 2 workers, taken back: a worker ended"]),
    "healthy": ("fit(Rows(0))", []),
    "garbage": (FREEZES + "fit(Collecting(), epochs=2)", ["gc.freeze(), kept"]),
    "garbage that stays": (FREEZES + "freezing.CHEAPER = -1\nfit(Collecting(), epochs=2)", ["gc.freeze(), taken back"]),
    "garbage that waits": (FREEZES + "gc.disable()\nfit(Collecting(), epochs=2)", []),
    "frozen already": (
        FREEZES + "gc.freeze()\nfit(Collecting(), epochs=2)\nassert gc.get_freeze_count() > 10_000",
        [],
    ),
    "numpy": (
        KEPT + "fit(LibraryRows(draw=numpy.random.rand))",
        ["keeps its 0 workers: making a sample draws random numbers, which depend on the number of workers"],
    ),
    "its own generator": (
        KEPT + "generator = random.Random(1)\nfit(Rows(0.01, draw=generator.random), num_workers=1)",
        ["keeps its 1 workers: making a sample draws random numbers, which depend on the number of workers"],
    ),
    "in workers": (
        KEPT + "fit(Rows(0.01, draw=lambda: torch.rand(1).item()), num_workers=1)",
        ["keeps its 1 workers: making a sample draws random numbers, which depend on the number of workers"],
    ),
    "workers that import the script": (
        KEPT + "import multiprocessing\nmultiprocessing.set_start_method('forkserver', True)\nfit(Rows())",
        ["keeps its 0 workers: new ones would import the script again, which it may not be written for"],
    ),
    "seeds its workers": (
        KEPT + "fit(LibraryRows(), worker_init_fn=torch.manual_seed)",
        ["keeps its 0 workers: its worker_init_fn may make samples depend on the number of workers"],
    ),
    "asks for its worker": (
        KEPT + "class Asking(Rows):\n    def __getitem__(self, index):\n        get_worker_info()\n"
        "        return super().__getitem__(index)\nfit(Asking(0.01), num_workers=1)",
        ["keeps its 1 workers: its samples may depend on the number of workers, which the dataset asks for"],
    ),
}


def plain(message):
    """What was said, without steps, times and kinds of errors."""
    return re.sub(r"at step [\d,]+: |, [\d.,]+ -> [\d.,]+ ms|the loader | \(\w+Error\)", "", message["text"])


def run(runner, env, hooked):
    (runner.directory / "cases.json").write_text(json.dumps({name: (text, {}) for name, (text, _) in CASES.items()}))
    children = IN_CHILDREN.replace('found = sys.modules["_fullbore_hook.core.settings"].settings', "found = None")
    children = children.replace("found.__init__(settings if isinstance(settings, str) else json.dumps(settings))", "")
    installed = runner.directory / "site-packages"
    installed.mkdir(exist_ok=True)
    (installed / "rows.py").write_text(LIBRARY)
    for written in ("read", "niceness"):
        (runner.directory / written).unlink(missing_ok=True)
    env = {**env, "PYTHONPATH": os.pathsep.join([str(SITE), str(installed)])}
    command = [runner.python, runner.script(TRAINING + BEFORE_CHILDREN + children), "cases.json"]
    result, directory = runner.start(command, env, hooked=hooked)
    assert result.returncode == 0 and "Traceback" not in result.stderr, result.stderr
    lines = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    printed = {head["case"]: body for head, body in zip(lines[::2], lines[1::2])}
    processes = {process.pid: process for process in Channel(directory).processes}
    return printed, {head["case"]: processes.get(head["pid"]) for head in lines[::2]}


@pytest.mark.long
def test_the_training_is_the_same_bit_for_bit_whatever_is_tried(newest):
    expected, _ = run(newest, {}, False)
    read = sorted((newest.directory / "read").read_text().split())
    seen, processes = run(newest, {"FULLBORE_AUTOPILOT": "1"}, True)
    for name, (_, said) in CASES.items():
        messages = processes[name].say("message")
        assert [plain(message) for message in messages] == said, (name, messages)
        assert all(message["source"] == "--autopilot" for message in messages)
        assert seen[name] == expected[name], f"{name}: another training"
    assert sorted((newest.directory / "read").read_text().split()) == read, "nothing is read a second time"
    usual = os.nice(0)
    noted = {int(line) for line in (newest.directory / "niceness").read_text().split()}
    assert noted == {usual, min(19, usual + 10)}, "the script's own worker, and those in its place"


def test_a_small_gain_is_tried_again_before_anything_else_is_proposed(autopilot, monkeypatch):
    pilot = autopilot.pilot
    pilot.__init__()
    pilot.before, pilot.period, pilot.workers = period(autopilot, 2, 200), period(autopilot, 6, 180), 6
    monkeypatch.setattr(autopilot, "propose", lambda source, measured: pytest.fail("the old number comes first"))
    autopilot.decide(None)
    assert pilot.tried is not None and pilot.workers == 2


@pytest.fixture
def autopilot():
    pytest.importorskip("torch")
    return load("steer.autopilot")


def period(autopilot, workers, ms, spread=0.0):
    made = autopilot.Period(workers)
    made.times = [int((ms + (spread if step % 16 < 8 else -spread)) * 1e6) for step in range(64)]
    made.total_ns = sum(made.times)
    return made


@pytest.mark.parametrize(
    ("before", "after", "again", "outcome"),
    [
        (200, 130, None, "kept"),
        (200, 220, None, "taken back"),
        (200, 198, None, "taken back"),  # less than is worth it
        (200, 180, 199, "kept"),  # a small gain, made sure of
        (200, 180, 181, "taken back"),  # the whole run became faster, not by the change
    ],
)
def test_a_change_is_kept_only_where_it_helped(autopilot, monkeypatch, before, after, again, outcome):
    said = []
    monkeypatch.setattr(autopilot, "say", said.append)
    pilot = autopilot.pilot
    pilot.__init__()
    pilot.before, pilot.period, pilot.workers = period(autopilot, 2, before), period(autopilot, 6, after), 6
    autopilot.judge(pilot.period)
    if again is not None:
        assert said == [] and pilot.workers == 2
        autopilot.confirm(period(autopilot, 2, again))
    assert len(said) == 1 and said[0].endswith(outcome)
    assert pilot.workers == (6 if outcome == "kept" else 2 if pilot.own != 2 else None)


def test_a_gain_within_the_noise_is_taken_back(autopilot, monkeypatch):
    said = []
    monkeypatch.setattr(autopilot, "say", said.append)
    autopilot.pilot.__init__()
    autopilot.pilot.before = period(autopilot, 2, 200, spread=100)
    autopilot.pilot.period = period(autopilot, 6, 150, spread=100)
    autopilot.judge(autopilot.pilot.period)
    assert not said and autopilot.is_trying()  # some more epochs may tell
    autopilot.pilot.period.times *= 3
    autopilot.judge(autopilot.pilot.period)
    assert said[0].endswith("taken back")
