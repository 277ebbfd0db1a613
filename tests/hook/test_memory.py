"""What the hook says of a device's memory: real optimizers and models on the CPU, which it takes for a device here, and
a stand-in for the allocator (tests/fakes/torch_device.py)."""

from __future__ import annotations

import pathlib
import types
import warnings

import pytest
from channel_reader import Channel
from hook_package import load

memory = load("torch.memory")

FAKES = str(pathlib.Path(__file__).parents[1] / "fakes")
WEIGHTS, PER_TOKEN = 512_000, 1000


def fact_of(newest, batches, ends_well=True):
    """Of a training on these batches."""
    script = f"import sys\nsys.path.insert(0, {FAKES!r})\nimport torch_device\ntorch_device.train({batches!r})\n"
    result, directory = newest.start([newest.python, newest.script(script)])
    assert (result.returncode == 0) == ends_well, result.stderr
    trainer = Channel(directory).trainer
    assert not [m for m in trainer.say("message") if m["severity"] == "error"], trainer.say("message")
    return trainer.facts["memory"]


def test_weights_gradients_and_states_are_weighed_by_the_objects(newest):
    fact = fact_of(newest, [(4, 100)] * 5)
    assert fact["weights"] == fact["gradients"] == {"float32": WEIGHTS}
    assert fact["states"] == {"exp_avg": {"float32": WEIGHTS}, "exp_avg_sq": {"float32": WEIGHTS}}
    assert fact["total"] == 12_000_000 and fact["outside"] == 1_000_000
    assert fact["reserved"] == 4 * WEIGHTS + 400 * PER_TOKEN + 100_000
    assert fact["peaks"] == [[4, 100, 400, 4 * WEIGHTS + 400 * PER_TOKEN, 1]]
    assert "under_way" not in fact


@pytest.mark.long
def test_peaks_are_those_of_ever_larger_batches(newest):
    fact = fact_of(newest, [(4, width) for width in (500, 100, 600, 300, 900, 200, 1200)])
    assert [peak[1] for peak in fact["peaks"]] == [500, 600, 900, 1200]
    assert fact["peaks"][-1] == [4, 1200, 4800, 4 * WEIGHTS + 4800 * PER_TOKEN, 6]


@pytest.mark.long
def test_the_batch_that_ends_the_run_is_under_way(newest):
    fact = fact_of(newest, [(4, 100), (4, 200), (4, 300), (4, 5000)], ends_well=False)
    assert [peak[1] for peak in fact["peaks"]] == [100, 200, 300]
    assert fact["under_way"] == [4, 5000, 20_000]


def tensors(torch):
    shared = torch.zeros(100)
    return [shared, shared[:10], torch.zeros(5, dtype=torch.float16), torch.empty(7, device="meta"), torch.zeros(0)]


def test_what_shares_memory_counts_once_and_other_devices_do_not():
    torch = pytest.importorskip("torch")
    assert memory.by_type(tensors(torch), torch.device("cpu"), set()) == {"float32": 400, "float16": 10}


def test_an_optimizer_that_calls_itself_empty_is_weighed_and_no_gradient_is_asked_of_what_is_computed():
    torch = pytest.importorskip("torch")

    class Empty(torch.optim.SGD):
        def __len__(self):
            return 0

    weight = torch.nn.Parameter(torch.zeros(8))
    optimizer, known = Empty([weight], lr=0.1), memory.held.Held()
    known.note(optimizer)
    model = torch.nn.Module()
    model.parameters = lambda: [weight * 2]  # as a wrapper that makes its weights may say
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = memory.weighed(known.alive(), [model], torch.device("cpu"))
    assert found["weights"] == {"float32": 64} and found["gradients"] == {}


def test_states_keep_their_names_however_deep_they_lie():
    torch = pytest.importorskip("torch")
    state = {"step": 3, "exp_avg": torch.zeros(2), "factors": [torch.zeros(3), {"inner": torch.zeros(4)}]}
    assert [name for name, _ in memory.tensors_of(state, "")] == ["exp_avg", "factors", "factors"]


def test_a_batch_is_of_its_tokens_wherever_it_lies_in_the_call():
    torch = pytest.importorskip("torch")
    ids, mask = torch.zeros(4, 128, dtype=torch.int64), torch.ones(4, 128)
    assert memory.size_of((), {"attention_mask": mask, "input_ids": ids}) == (4, 128, 512)
    assert memory.size_of(({"x": ids},), {}) == (4, 128, 512)
    assert memory.size_of((torch.zeros(8, 3, 32, 32),), {}) == (8, 0, 8 * 3 * 32 * 32)
    assert memory.size_of((torch.zeros(4, 3, dtype=torch.int64),), {}) == (4, 0, 12)  # features, not tokens
    assert memory.size_of((7,), {}) is None


def test_where_there_are_tokens_what_is_made_of_them_is_no_larger_batch():
    tokens, made = memory.Size(4, 100, 400), memory.Size(400, 0, 400_000)
    assert memory.is_larger(tokens, made) and not memory.is_larger(made, tokens)
    assert memory.is_larger(made, None)


def test_of_too_many_peaks_every_second_stays_and_the_last():
    peaks = {memory.Size(1, 0, size): [size, size] for size in range(memory.MOST_PEAKS + 1)}
    kept = [size.elements for size in memory.thinned(peaks)]
    assert kept == [*range(0, memory.MOST_PEAKS, 2), memory.MOST_PEAKS]


def calls_in_a_step(count):
    torch = pytest.importorskip("torch")
    looks, cell = memory.Memory(), torch.nn.Linear(4, 4)
    looks.peaks = {memory.Size(2, 0, 8): [1000, 0]}
    for _ in range(count):
        looks.look(cell, (torch.zeros(2, 4),), {})
    return looks


def test_a_network_that_the_script_unrolls_has_no_batch_and_is_looked_at_no_more():
    micro_batches, unrolled = calls_in_a_step(memory.MOST_CALLS), calls_in_a_step(memory.MOST_CALLS + 1)
    assert not micro_batches.over and micro_batches.largest == (2, 0, 8) and micro_batches.peaks
    assert unrolled.over and unrolled.largest is None and not unrolled.peaks


def test_calls_are_counted_from_step_to_step(monkeypatch):
    looks = calls_in_a_step(memory.MOST_CALLS)
    monkeypatch.setattr(memory.hook, "steps", memory.hook.steps + 1)
    looks.count_call()
    assert not looks.over


def test_a_call_that_cannot_be_looked_at_ends_the_looks_and_nothing_else(monkeypatch):
    looks = memory.Memory()

    class Strange:
        def parameters(self):
            raise AttributeError("not a module like others")

    looks.look(Strange(), (), {})
    assert looks.over
    looks.look(types.SimpleNamespace(), (), {})


def test_what_a_look_takes_is_the_hooks_time(monkeypatch):
    now_ns = 1000

    class Slow:
        def parameters(self):
            nonlocal now_ns
            now_ns += 7_000_000
            return iter(())

    monkeypatch.setattr(memory, "clock", lambda: now_ns)
    monkeypatch.setattr(memory.hook, "extra_ns", 500)
    memory.Memory().look(Slow(), (), {})
    assert memory.hook.extra_ns == 7_000_500


SLOW = f"""
import sys, time
sys.path.insert(0, {FAKES!r})
import torch_device

memory = sys.modules["_fullbore_hook.torch.memory"]
quick = memory.size_of

def slow(args, kwargs):
    time.sleep(0.1)
    return quick(args, kwargs)

memory.size_of = slow
torch_device.train([(4, 100)] * 3)
"""


@pytest.mark.long
def test_what_the_looks_of_a_training_took_is_told_at_its_end(newest):
    result, directory = newest.start([newest.python, newest.script(SLOW)])
    assert result.returncode == 0, result.stderr
    assert Channel(directory).trainer.one("bye")["hook_ns"] >= 3 * 100_000_000
