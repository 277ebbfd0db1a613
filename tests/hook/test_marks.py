"""`fullbore.watch(loader)` and `fullbore.step()`: a loop of which the hook knows nothing says where its steps are."""

from __future__ import annotations

import os
import pathlib

import pytest
from channel_reader import NEXT, OPTIMIZER

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python"
SEARCH = {"PYTHONPATH": os.pathsep.join([str(PACKAGE / "fullbore" / "hook" / "site"), str(PACKAGE)])}

LOOP = """
    import sys, time
    import fullbore

    class Rows:
        shape = (16, 4)

    def batches():
        for _ in range(10):
            time.sleep(0.005)
            yield Rows()

    assert "torch" not in sys.modules
    for batch in fullbore.watch(batches()):
        time.sleep(0.002)
        fullbore.step()
    print("trained")
"""


def test_waits_and_steps_of_a_marked_loop_are_recorded(bare):
    channel, output = bare.run(LOOP, env=SEARCH)
    assert output == "trained\n"
    (process,) = channel.trainers
    assert len(process.of(OPTIMIZER)) == 10 == len(process.steps)
    assert [wait.a for wait in process.batches] == [16] * 10, "samples"
    assert len(process.of(NEXT)) == 11, "and the end"
    loader = process.one("loader")
    assert loader["library"] == "fullbore.watch" and loader["dataset"] == "generator"
    assert loader["where"].endswith(":14"), "where it is watched"
    assert process.one("training_loader")["id"] == loader["id"]
    assert process.one("bye")["steps"] == 10


def test_without_fullbore_run_marks_do_nothing(bare):
    done, channel = bare.start([bare.python, bare.script(LOOP)], SEARCH, hooked=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "trained\n", "")
    assert not list(channel.iterdir())


@pytest.mark.long
def test_a_marked_loop_with_an_optimizer_counts_the_marks(newest):
    channel, _ = newest.run(
        """
    import torch, fullbore
    from torch import nn
    from torch.utils.data import DataLoader

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(torch.randn(64, 4), batch_size=8)
    for x in fullbore.watch(loader):
        for _ in range(3):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
        fullbore.step()
    """,
        env=SEARCH,
    )
    (process,) = channel.trainers
    assert len(process.steps) == 8 + 3, "those before the first mark counted, too"
    (loader,) = process.say("loader")
    assert "library" not in loader and loader["args"]["num_workers"] == 0, "a DataLoader is known better without"


def test_a_watched_list_can_be_iterated_again(bare):
    channel, output = bare.run(
        """
    import fullbore
    rows = fullbore.watch([[1, 2], [3, 4]])
    print(len(rows), list(rows), list(rows))
    """,
        env=SEARCH,
    )
    assert output == "2 [[1, 2], [3, 4]] [[1, 2], [3, 4]]\n"
    (process,) = channel.trainers
    assert len(process.say("loader")) == 1
