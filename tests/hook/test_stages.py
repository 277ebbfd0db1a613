"""Loaders of fullbore.data under the hook, with a stand-in that has what the hook uses of the package."""

from __future__ import annotations

import pathlib

import pytest
from channel_reader import NEXT

STAND_IN = """
import importlib.util, time
importlib.util.find_spec("torch")  # as the package itself does before torch is imported

class Loader:
    def __init__(self, paths, batch_size=1, **arguments):
        self._arguments = {"paths": paths, "batch_size": batch_size, "map": len, "device": None, **arguments}
        self.samples = 42
        self.asked = 0

    def __iter__(self):
        return Epoch(self)

    def stats(self):
        if self._arguments.get("broken"):
            raise ValueError("no counters")
        self.asked += 1
        stage = {"name": "read", "threads": 2, "samples": self.asked, "bytes": 0, "busy_ns": 7, "blocked_ns": 0}
        return {"stages": [stage], "ready_batches": 1, "ready_capacity": 2, "batches": 3, "consumer_wait_ns": 5,
                "consumer_busy_ns": 6, "pool_bytes": 7, "bad_samples": 0}

class Epoch:
    def __init__(self, loader):
        self._loader = loader
        self.left = 21

    def __next__(self):
        import torch
        if self.left == 0:
            raise StopIteration
        self.left -= 2 if self.left > 1 else 1
        time.sleep(0.002)
        return torch.randn(2 if self.left else 1, 6), torch.zeros(2)

    def __iter__(self):
        return self
"""

TRAIN = """
    from fullbore.data.loader import Loader
    import torch
    from torch import nn
    class Photos(Loader):
        pass
    loader = Photos("somewhere", batch_size=2, threads=3, map_processes=0)  # made here
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, _ in loader:
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
"""


@pytest.fixture
def with_loader(newest):
    package = newest.directory / "fullbore" / "data"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    (package / "loader.py").write_text(STAND_IN)
    return newest


@pytest.mark.long
def test_waits_are_recorded_and_feed_the_steps(with_loader):
    channel, _ = with_loader.run(TRAIN)
    trainer = channel.trainer
    assert len(trainer.steps) == 22
    assert [r.a for r in trainer.of(NEXT, 1)] == ([2] * 10 + [1, 0]) * 2
    assert all(r.ns >= 2_000_000 and r.b == -1 for r in trainer.batches)
    assert trainer.one("training_loader")["id"] == 1


@pytest.mark.long
def test_the_loader_is_announced_with_its_arguments_and_place(with_loader):
    channel, _ = with_loader.run(TRAIN)
    said = channel.trainer.one("loader")
    assert (said["library"], said["dataset"], said["dataset_len"]) == ("fullbore.data", "Photos", 42)
    assert said["args"] == {"batch_size": 2, "threads": 3, "map_processes": 0, "device": None}
    file, _, line = said["where"].rpartition(":")
    script = pathlib.Path(file).read_text().splitlines()
    assert "# made here" in script[int(line) - 1]


# From here on the hook's clock stands still, except when `now` is advanced.
STILL = """
    import sys
    now = sys.modules["_fullbore_hook.core.runtime"].clock()
    for module in [sys.modules["_fullbore_hook." + name] for name in ("core.waits", "own.stages")]:
        module.clock = lambda: now
"""


def standing_still(train: str) -> str:
    begin, loop, rest = train.partition("    for epoch in")
    return begin + STILL + loop + rest


@pytest.mark.long
def test_totals_are_reported_after_the_first_batch_and_at_the_end_of_epochs(with_loader):
    with_loader.path = "python"  # the extension has a clock of its own
    channel, _ = with_loader.run(standing_still(TRAIN))
    totals = channel.trainer.say("loader_stages")
    assert [line["stages"][0]["samples"] for line in totals] == [1, 2, 3]
    assert all(line["id"] == 1 and line["ready_capacity"] == 2 and line["consumer_wait_ns"] == 5 for line in totals)
    assert totals[0]["t"] >= channel.trainer.batches[0].end


@pytest.mark.long
def test_totals_are_reported_again_when_the_last_ones_are_a_second_old(with_loader):
    with_loader.path = "python"  # the extension has a clock of its own
    channel, _ = with_loader.run(
        standing_still(TRAIN)
        + """
    epoch = iter(loader)
    for _ in range(2):
        now += 1_050_000_000
        next(epoch)
        next(epoch)
    """
    )
    assert len(channel.trainer.say("loader_stages")) == 3 + 2


@pytest.mark.long
def test_a_loader_without_totals_is_seen_all_the_same(with_loader):
    text = TRAIN.replace("threads=3", "broken=True")
    result, directory = with_loader.start([with_loader.python, with_loader.script(text)])
    assert result.returncode == 0, result.stderr
    trainer = type(with_loader.run("import torch")[0])(directory).trainer
    assert len(trainer.steps) == 22 and len(trainer.batches) == 22
    (message,) = trainer.say("message")
    assert message["severity"] == "warning" and "no counters" in message["text"]


@pytest.mark.long
def test_looking_for_torch_before_importing_it_loses_nothing(newest):
    channel, _ = newest.run("""
    import importlib.util
    assert importlib.util.find_spec("torch") is not None
    assert importlib.util.find_spec("torch") is not None
    import torch
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.randn(3, 2)).sum().backward()
    optimizer.step()
    """)
    assert len(channel.trainer.steps) == 1
