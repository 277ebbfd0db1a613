"""Warnings: with all shown, none is ours; with all turned into errors, none does harm."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
from channel_reader import Channel
from conftest import HOOK

TRAIN = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    if __name__ == "__main__":
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(torch.randn(32, 3, 8, 8)), batch_size=4, num_workers=1)
        for _ in range(2):  # the second epoch's worker is forked when the line sampler has begun
            for (x,) in loader:
                optimizer.zero_grad()
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    loss = model(x).float().sum()
                loss.item()
                loss.backward()
                optimizer.step()
        torch.save(model.state_dict(), "x.pt")
        print("trained")
"""


@pytest.mark.long
@pytest.mark.parametrize("way", ["PYTHONWARNINGS", "-W"])
@pytest.mark.parametrize("action", ["always", "error"])
def test_training_and_hook_go_on_whatever_is_done_with_warnings(runner, action, way):
    flags = [] if way == "PYTHONWARNINGS" else ["-W", action]
    env = {"PYTHONWARNINGS": action if way == "PYTHONWARNINGS" else ""}
    command = [runner.python, *flags, runner.script(TRAIN)]
    plain, _ = runner.start(command, env, hooked=False)
    if plain.returncode != 0:
        pytest.skip(f"this torch fails with it even without us: {plain.stderr.splitlines()[-1]}")
    hooked, directory = runner.start(command, env)
    assert (hooked.returncode, hooked.stdout, hooked.stderr) == (0, plain.stdout, plain.stderr)
    trainer = Channel(directory).trainer
    assert len(trainer.steps) == 16
    assert [p.say("message") for p in Channel(directory).processes if p.say("message")] == []
    assert trainer.facts["autocast"] == "bfloat16"
    assert trainer.facts["tf32_cudnn"] is True and trainer.facts["tf32_matmul"] is False


FORK = """
import importlib, importlib.util, os, sys, threading
place = sys.argv[1]
find = importlib.util.spec_from_file_location
spec = find("_fullbore_hook", place + "/__init__.py", submodule_search_locations=[place])
package = sys.modules["_fullbore_hook"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
lines = importlib.import_module("_fullbore_hook.sampling.lines")
here = importlib.import_module("_fullbore_hook.core.runtime").hook.here()
lines.sampler = lines.Sampler(threading.get_ident(), here)
lines.after_step(None, here, 0)
print([thread.name for thread in threading.enumerate()])
os.register_at_fork(after_in_parent=lambda: print([thread.name for thread in threading.enumerate()]))
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
lines.after_step(None, here, 0)
print([thread.name for thread in threading.enumerate()])
"""


def pythons() -> list[str]:
    versions = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    found = sorted(versions.glob("3.*/bin/python"))
    named = filter(None, os.environ.get("FULLBORE_TEST_PYTHONS", "").split(":"))
    return [sys.executable, *(str(p) for p in found if int(p.parts[-3].split(".")[1]) >= 9), *named]


@pytest.mark.parametrize("python", pythons())
def test_a_fork_finds_none_of_our_threads(python):
    """From Python 3.12 on, forking a process with two threads warns of a possible deadlock."""
    done = subprocess.run([python, "-W", "error", "-c", FORK, str(HOOK)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    with_us = "['MainThread', 'fullbore-lines']"
    assert done.stdout.splitlines() == [with_us, "['MainThread']", with_us]
