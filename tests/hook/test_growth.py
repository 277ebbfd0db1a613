"""What the hook names as growing: containers and sums that the training thread's own code can name."""

from __future__ import annotations

import sys
from collections import deque

import pytest
import torch
from hook_package import load

growth = load("sampling.growth")
hook = load("core.runtime").hook


class Looks:
    """Looks at the frame of its caller as often as asked, while the process grows by a megabyte each time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.used = 100 << 20
        self.said: list = []
        monkeypatch.setattr(growth, "resident_bytes", lambda _: self.used)
        monkeypatch.setattr(hook, "fact", lambda key, value: self.said.append(value))
        self.growth = growth.Growth()
        self.growth.compare(sys._getframe(1))  # the least memory, from which it grows
        self.used += growth.GREW_BYTES

    def look(self) -> None:
        self.used += 1 << 20
        hook.steps += 10
        self.growth.next_look = 0
        self.growth.look(sys._getframe(1))

    @property
    def named(self) -> list[str]:
        return [each["name"] for each in self.said[-1]] if self.said else []


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hook, "steps", 0)
    return Looks(monkeypatch)


class Trainer:
    def __init__(self) -> None:
        self.history: list = []
        self.settings = {"lr": 0.1}


def test_a_list_that_each_step_adds_to_is_named_with_its_line(looks):
    losses = []
    for _ in range(6):
        losses.append(torch.ones(1, requires_grad=True) * 2)  # HERE
        looks.look()
    grown = looks.said[-1][0]
    assert (grown["name"], grown["from"], grown["to"]) == ("losses", 1, 6)
    assert grown["holds"] == "tensors that keep their graphs"
    assert "# HERE" in open(grown["file"]).read().splitlines()[grown["line"] - 1]


def test_an_attribute_of_the_users_object_is_named_as_the_user_would(looks):
    trainer = Trainer()
    for step in range(6):
        trainer.history.append(step)
        looks.look()
    assert looks.named == ["trainer.history"]


def test_a_sum_that_keeps_its_graph_is_named(looks):
    total = torch.zeros(1, requires_grad=True)
    for _ in range(6):
        for _ in range(growth.CHAIN):
            total = total + torch.ones(1)
        looks.look()
    assert looks.named == ["total"]
    assert "graph" in looks.said[-1][0]["holds"]


def test_what_is_full_or_emptied_is_not_named(looks):
    window, batch, fixed = deque(maxlen=2), [], dict.fromkeys(range(100))
    for step in range(8):
        window.append(step)
        batch.append(step)
        if len(batch) == 3:
            batch.clear()
        looks.look()
    assert looks.named == []
    assert len(fixed) == 100


def test_nothing_is_looked_at_while_the_memory_stays(looks):
    kept = []
    looks.used = 100 << 20
    for _ in range(6):
        kept.append(1)
        looks.used -= 1 << 20
        looks.look()
    assert looks.said == []


def test_variables_that_cannot_be_looked_at_end_the_looks_quietly(looks, monkeypatch):
    monkeypatch.setattr(growth, "variables", lambda frame: 1 / 0)
    looks.look()
    assert looks.growth.next_look == float("inf")
    assert hook.on
