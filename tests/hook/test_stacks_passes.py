"""What a sample says inside torch's passes: the model's own code, or what is hooked into it."""

from __future__ import annotations

import time

import pytest
from sampled_training import SAMPLES, act, beside, does, most, needs_lock, stacks

torch = pytest.importorskip("torch")
pytestmark = needs_lock


def watch(*_) -> None:
    time.sleep(0.01)


class Watches:
    def __call__(self, *_) -> None:
        watch()


class Slow(torch.nn.Module):
    def forward(self, x):
        watch()
        return 2 * x


def another_name(self, x):
    watch()
    return 2 * x


class Renamed(torch.nn.Module):
    forward = another_name


class SlowGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        watch()
        return 2 * gradient


def inside(run) -> int:
    seen = beside(run)
    assert most(seen, "feeds") == stacks.NOTHING
    assert (most(seen, "file"), most(seen, "function")) == (__file__, "watch")
    return does(seen)


@pytest.mark.parametrize("hook", [watch, lambda *_: watch(), Watches()], ids=["function", "lambda", "object"])
@pytest.mark.parametrize("kind", ["register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook"])
def test_a_hook_of_a_module_is_one(kind, hook):
    model = torch.nn.Linear(4, 4)
    getattr(model, kind)(hook)
    x = torch.ones(2, 4, requires_grad=True)
    assert inside(lambda: model(x).sum().backward()) == act.HOOK


@pytest.mark.parametrize("kind", ["register_hook", "register_post_accumulate_grad_hook"])
def test_a_hook_of_a_tensor_is_one(kind):
    weight = torch.ones(4, requires_grad=True)
    if not hasattr(weight, kind):
        pytest.skip("not in this torch")
    getattr(weight, kind)(watch)
    assert inside(lambda: weight.sum().backward()) == act.HOOK


def test_what_the_model_computes_is_no_hook():
    x = torch.ones(2, 4, requires_grad=True)
    hooked = Slow()
    hooked.register_forward_hook(lambda *_: None)
    patched = torch.nn.Linear(4, 4)
    patched.forward = lambda x: watch() or x
    for model in (Slow(), Renamed(), hooked, patched):
        assert inside(lambda: model(x)) != act.HOOK  # noqa: B023
    assert inside(lambda: SlowGradient.apply(x).sum().backward()) != act.HOOK


class Opaque(torch.nn.Module):
    """torch.compile runs code of its own making in place of its forward, which calls what cannot be compiled."""

    def __init__(self, call):
        super().__init__()
        self.call = torch.compiler.disable(call)

    def forward(self, x):
        self.call(2 * x)
        return 2 * x


@pytest.mark.long
@pytest.mark.skipif(not hasattr(torch, "compiler"), reason="not in this torch")
def test_the_forward_of_a_compiled_model_is_no_hook_and_its_hooks_are():
    x = torch.ones(2, 4)
    computes = torch.compile(Opaque(watch), backend="eager")
    hooked = torch.nn.Sequential(torch.compile(Opaque(id), backend="eager"))
    hooked.register_forward_hook(watch)
    for model, is_hook in ((computes, False), (hooked, True)):
        model(x)  # is compiled
        assert (inside(lambda: model(x)) == act.HOOK) == is_hook  # noqa: B023


def test_stacks_that_anomaly_detection_keeps_are_told_from_the_users():
    import traceback

    x = torch.ones(2, 4, requires_grad=True)

    def compute() -> None:
        for _ in range(50):
            (2 * x).sum()

    def looks_at_its_stack() -> None:
        for _ in range(50):
            traceback.format_stack()

    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        kept = [sample for sample in beside(compute) if sample.activity == act.ANOMALY]
    assert len(kept) > SAMPLES // 10  # about half of the time goes there
    assert does(beside(compute)) != act.ANOMALY
    assert does(beside(looks_at_its_stack)) != act.ANOMALY
