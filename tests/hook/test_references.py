"""The hook keeps nothing of the training alive: what the script lets go of is gone as it is without us."""

from __future__ import annotations

import pathlib

import pytest
from conftest import Runner
from test_marks import SEARCH
from test_warnings import pythons

# The process grows, and its variables are looked at and its stack is sampled at every step.
WATCHED = """
    import gc, sys, threading, time, weakref
    import fullbore

    class Thing:
        def __init__(self, *parts):
            self.parts = parts

    def forward(batch):
        hidden = Thing(batch)
        return Thing(hidden), hidden

    def alive(references):
        return [name for name, reference in references.items() if reference() is not None]

    def look_closely():
        core = sys.modules.get("_fullbore_hook.core.steps")
        if core is not None:
            growth, lines = (sys.modules[f"_fullbore_hook.sampling.{name}"] for name in ("growth", "lines"))
            growth.GREW_BYTES = -1
            core.look_soon()
            if lines.sampler is not None:
                lines.sampler.growth.next_look = 0
                sampling = threading.Thread(target=lines.sampler.sample, args=[0])
                sampling.start(); sampling.join()

    def train():
        gc.disable()  # only references count
        history, seen, before = [], [], {}
        for batch in fullbore.watch(Thing(step) for step in range(40)):
            outputs, hidden = forward(batch)
            loss = Thing(outputs)
            seen.append(alive(before))
            history.append(len(seen))
            look_closely()
            fullbore.step()
            before = {name: weakref.ref(value) for name, value in
                      (("batch", batch), ("outputs", outputs), ("hidden", hidden), ("loss", loss))}
            time.sleep(0.001)
        print(seen)
        del batch, outputs, hidden, loss
        print(alive(before), len(history))
    train()
"""


@pytest.mark.parametrize("path", ["native", "python"])
@pytest.mark.parametrize("python", pythons())
def test_batch_outputs_and_loss_are_gone_when_they_are_without_us(python, path, tmp_path: pathlib.Path):
    runner = Runner(python, "", tmp_path)
    runner.path = path
    without, _ = runner.start([python, runner.script(WATCHED)], SEARCH, hooked=False)
    assert without.returncode == 0, without.stderr
    channel, output = runner.run(WATCHED, env=SEARCH)
    assert output == without.stdout
    growing = [fact for fact in channel.trainer.say("fact") if fact["key"] == "growing"]
    assert {each["name"] for fact in growing for each in fact["value"]} >= {"history"}, "variables were looked at"


RAISED = """
    import gc, sys, weakref
    import torch

    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()

    def fails():
        raise ArithmeticError

    gc.disable()
    for _ in range(3):
        try:
            optimizer.step(fails)
        except ArithmeticError:
            pass
    gone = weakref.ref(optimizer)
    del optimizer
    gc.collect()
    print(gone() is None)
"""


@pytest.mark.long
def test_an_optimizer_whose_step_raised_is_not_kept(either):
    _, output = either.run(RAISED)
    assert output == "True\n"


FOLDER = """
    import gc, pathlib, sys, weakref
    import torch
    from torch.utils.data import DataLoader, Dataset

    class DatasetFolder(Dataset):  # as torchvision's is called
        def __len__(self):
            return 8
        def __getitem__(self, index):
            return torch.ones(2)

    def train():
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(DatasetFolder(), 2)
        for batch in loader:
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
        return [weakref.ref(each) for each in (loader, loader.dataset, model, optimizer)]
    references = train()
    gc.collect()
    print([reference() is None for reference in references])
"""


@pytest.mark.long
def test_the_training_loader_and_what_it_trains_end_with_the_script_s_function(either):
    _, output = either.run(FOLDER)
    assert output == "[True, True, True, True]\n"
