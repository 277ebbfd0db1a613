"""What is said of forward passes that do not train the module that they call, and of gradients that nobody uses."""

from __future__ import annotations

import pytest
from channel_reader import FORWARD

IN_EVALUATION, WITH_GRADIENTS, OF_TRAINED, OF_APART, OF_COPY = 1, 2, 4, 8, 16

PARTS = """
    import copy, torch
    from torch import nn

    def net():
        return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))

    def step(optimizer, loss):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    x, y = torch.randn(4, 6), torch.arange(4) % 3
"""


def others(process):
    """What is known of the passes that are not the training's own, from the third step on."""
    since = process.steps[2].end
    return [record.c for record in process.of(FORWARD) if record.a == 0 and record.begin >= since]


@pytest.mark.long
def test_a_teacher_is_told_from_the_model_that_is_trained(either):
    channel, _ = either.run(
        PARTS
        + """
    model, teacher = net(), nn.Sequential(nn.Linear(6, 32), nn.Linear(32, 3)).eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        with torch.no_grad():
            wanted = teacher(x)
        step(optimizer, (model(x) - wanted).square().mean())
    model.eval()
    with torch.no_grad():
        model(x)
    """
    )
    assert others(channel.trainer) == [IN_EVALUATION | OF_APART] * 2 + [IN_EVALUATION | OF_TRAINED]
    assert all(record.c == 0 for record in channel.trainer.of(FORWARD) if record.a == 1)


@pytest.mark.long
def test_an_averaged_copy_and_a_policy_that_acts_in_training_mode(either):
    channel, _ = either.run(
        PARTS
        + """
    model = net()
    average = copy.deepcopy(model).eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        with torch.no_grad():
            model(x), average(x)
        step(optimizer, model(x).sum())
    """
    )
    assert others(channel.trainer) == [OF_TRAINED, IN_EVALUATION | OF_APART | OF_COPY]


@pytest.mark.long
def test_before_the_first_step_nothing_is_known_of_what_optimizers_hold(either):
    channel, _ = either.run(
        PARTS
        + """
    model = net().eval()
    with torch.no_grad():
        model(x)
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step(optimizer, model(x).sum())
    """
    )
    assert [record.c for record in channel.trainer.of(FORWARD)] == [IN_EVALUATION, 0]


@pytest.mark.long
def test_optimizers_that_hold_copies_of_the_parameters_leave_it_open(either):
    channel, _ = either.run(
        PARTS
        + """
    model = net()
    flat = [nn.Parameter(each.detach().clone()) for each in model.parameters()]
    optimizer = torch.optim.SGD(flat, lr=0.1)
    for _ in range(4):
        model(x).sum().backward()
        for mine, of_model in zip(flat, model.parameters()):
            mine.grad = of_model.grad
        optimizer.step()
        model.eval()
        with torch.no_grad():
            model(x)
        model.train()
    """
    )
    assert set(others(channel.trainer)) == {IN_EVALUATION}


@pytest.mark.long
def test_parameters_that_are_added_later_are_held(either):
    channel, _ = either.run(
        PARTS
        + """
    body, head = net(), nn.Linear(3, 3)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    def train(steps):
        for _ in range(steps):
            body.eval()
            with torch.no_grad():
                inner = body(x)
            step(optimizer, head(inner).sum())
    train(7)
    optimizer.add_param_group({"params": list(body.parameters())})
    train(130)
    """
    )
    seen = others(channel.trainer)
    assert seen[0] == IN_EVALUATION | OF_APART and seen[-1] == IN_EVALUATION | OF_TRAINED


@pytest.mark.long
def test_gradients_that_no_optimizer_uses_are_counted(either):
    channel, _ = either.run(
        PARTS
        + """
    body, head = net().eval(), nn.Linear(3, 3)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(12):
        step(optimizer, head(body(x)).sum())
    """
    )
    said = channel.trainer.facts["unused_gradients"]
    assert said == {"tensors": 4, "parameters": 6 * 8 + 8 + 8 * 3 + 3, "used": 12, "modules": ["Sequential"]}
    assert set(others(channel.trainer)) == {IN_EVALUATION | WITH_GRADIENTS | OF_APART}


@pytest.mark.long
def test_of_a_part_of_a_model_its_name_is_said(either):
    channel, _ = either.run(
        PARTS
        + """
    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone, self.head = net(), nn.Linear(3, 3)
        def forward(self, x):
            return self.head(self.backbone(x))
    model = Whole()
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
    for _ in range(12):
        step(optimizer, model(x).sum())
    """
    )
    assert channel.trainer.facts["unused_gradients"]["modules"] == ["backbone"]


@pytest.mark.long
def test_gradients_that_are_used_or_were_computed_once_are_not(either):
    """Two optimizers of which one steps seldom, a frozen part, and gradients of a phase that is over."""
    channel, _ = either.run(
        PARTS
        + """
    body, head, seldom = net(), nn.Linear(3, 3), nn.Linear(3, 3)
    head(seldom(body(x))).sum().backward()  # once
    body.requires_grad_(False)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    other = torch.optim.SGD(seldom.parameters(), lr=0.1)
    for index in range(12):
        step(optimizer, head(seldom(body(x))).sum())
        if index % 3 == 2:
            other.step()
            other.zero_grad()
    """
    )
    assert not channel.trainer.facts.get("unused_gradients")


@pytest.mark.long
def test_nothing_of_the_script_is_kept_alive(either):
    _, output = either.run(
        PARTS
        + """
    import gc, weakref
    gc.disable()
    model, teacher = net(), net().eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(12):
        with torch.no_grad():
            teacher(x)
        step(optimizer, model(x).sum())
    kept = [weakref.ref(each) for each in (teacher, next(teacher.parameters()), optimizer)]
    del teacher
    print([each() is not None for each in kept[:2]])
    """
    )
    assert output == "[False, False]\n"
