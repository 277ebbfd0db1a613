"""A process in which no optimizer of torch.optim steps: a batch counts as a step, and its waits are judged."""

import sys

import pytest

PROGRAM = """
import sys, time, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        time.sleep(0.001)
        return torch.randn(8), index % 4

model = nn.Linear(8, 4)
loader = DataLoader(Slow(), batch_size=4)
if "beside JAX" in sys.argv:
    sys.modules["jax"] = type(sys)("jax")
if "evaluation" in sys.argv:
    model.eval()
    with torch.no_grad():
        for images, _ in loader:
            model(images)
if "by hand" in sys.argv:
    for images, labels in loader:
        model.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
if "then training" in sys.argv:
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for images, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
"""


@pytest.mark.parametrize("kind", ["evaluation", "by hand"])
def test_a_batch_is_a_step_and_waiting_for_it_is_found(fullbore, kind):
    done = fullbore.run(sys.executable, fullbore.script("work.py", PROGRAM), kind)
    assert done.code == 0, done.stderr
    window = done.report["window"]
    assert window["steps"] + window["warmup_steps"] == 100
    assert done.report["step_time"]["shares"]["data_wait"] > 0.5
    assert done.report["findings"][0]["id"] == "input-bound"
    assert any(left["id"] == "optimizer steps" for left in done.report["not_judged"])
    facts = done.report["facts"]
    assert facts["model"] == "Linear" and facts["batch_shape"] == [4, 8] and facts["torch_threads"] >= 1


def test_a_model_of_torchs_does_not_speak_for_another_frameworks_training(fullbore):
    done = fullbore.run(sys.executable, fullbore.script("work.py", PROGRAM), "beside JAX", "evaluation")
    assert done.code == 0, done.stderr
    assert "torch" in done.report["facts"] and "model" not in done.report["facts"]


@pytest.mark.long
def test_an_evaluation_before_the_training_adds_no_steps(fullbore):
    done = fullbore.run(sys.executable, fullbore.script("work.py", PROGRAM), "evaluation", "then training")
    window = done.report["window"]
    assert window["steps"] + window["warmup_steps"] == 100
    assert not any(left["id"] == "optimizer steps" for left in done.report["not_judged"])


BY_HAND_ALONE = """
import torch

weights = torch.zeros(8, requires_grad=True)
for _ in range(200):
    loss = ((torch.randn(512, 8) @ weights - 1) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        weights -= 0.1 * weights.grad
    weights.grad = None
"""


def test_without_loader_and_optimizer_a_backward_pass_is_a_step(fullbore):
    done = fullbore.run(sys.executable, fullbore.script("work.py", BY_HAND_ALONE))
    assert done.code == 0, done.stderr
    window = done.report["window"]
    assert window["steps"] + window["warmup_steps"] == 200
    assert any(left["id"] == "optimizer steps" for left in done.report["not_judged"])
