"""The CUDA part, on stand-ins: events that complete on command, and torch's `meta` device in place of a GPU."""

from __future__ import annotations

import types

from channel_reader import H2D, Channel
from hook_package import load

device = load("torch.device")
runtime = load("core.runtime")
channel = load("core.channel")
steps = load("core.steps")


class Event:
    """An event on a stream, complete once `done` says so; the events are 5 ms of device time apart."""

    made: list = []
    done: set = set()

    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        Event.made.append(self)

    def query(self):
        return Event.made.index(self) in Event.done

    def elapsed_time(self, other):
        return 5.0 * (Event.made.index(other) - Event.made.index(self))


def fake_torch(monkeypatch, capturing=False):
    stats = {
        "allocated_bytes.all.current": 10,
        "reserved_bytes.all.current": 20,
        "allocated_bytes.all.peak": 15,
        "num_alloc_retries": 1,
    }
    cuda = types.SimpleNamespace(
        Event=type("Event", (Event,), {"synchronize": lambda self: None}),
        Stream=type("Stream", (), {"synchronize": lambda self: None}),
        synchronize=lambda: None,
        is_initialized=lambda: True,
        is_current_stream_capturing=lambda: capturing,
        memory_stats=lambda: stats,
        current_device=lambda: 0,
    )
    records = []
    monkeypatch.setattr(Event, "made", [])
    monkeypatch.setattr(Event, "done", set())
    monkeypatch.setattr(device, "attach_tensor", lambda Tensor: None)
    monkeypatch.setattr(device, "attach_synchronisation", lambda cuda: None)
    monkeypatch.setattr(runtime.hook, "record", lambda *fields: records.append(fields))
    monkeypatch.setattr(device.memory, "memory", device.memory.Memory())
    monkeypatch.setattr(runtime.hook, "fact", lambda key, value: None)
    return types.SimpleNamespace(cuda=cuda, Tensor=object, device=lambda kind, index: f"{kind}:{index}"), records


def test_device_time_is_read_only_from_completed_events(monkeypatch):
    torch, records = fake_torch(monkeypatch)
    watch, thread = device.Device(torch), runtime.Thread(0)
    for step in range(3):
        watch.after_step(None, thread, 1_000_000 * step)
    assert not [r for r in records if r[0] == channel.DEVICE_TIME]
    Event.done.update({0, 1})
    watch.after_step(None, thread, 3_000_000)
    (time,) = [r for r in records if r[0] == channel.DEVICE_TIME]
    assert time == (channel.DEVICE_TIME, 0, 0, 0, 1_000_000, 5_000_000)


def test_a_device_that_lags_far_behind_gets_no_more_events(monkeypatch):
    torch, _ = fake_torch(monkeypatch)
    watch, thread = device.Device(torch), runtime.Thread(0)
    for step in range(1000):
        watch.after_step(None, thread, step)
    assert len(Event.made) == device.MAX_PENDING_EVENTS


def test_memory_is_read_once_a_second(monkeypatch):
    torch, records = fake_torch(monkeypatch)
    watch, thread = device.Device(torch), runtime.Thread(0)
    for tenth in range(25):
        watch.after_step(None, thread, tenth * 100_000_000)
    memory = [r for r in records if r[0] == channel.MEMORY]
    assert [r[3] for r in memory] == [0, 1_000_000_000, 2_000_000_000]
    assert memory[0][5:] == (10, 20, 15, 1)


def test_nothing_follows_each_step_until_the_script_has_initialised_cuda(monkeypatch):
    torch, records = fake_torch(monkeypatch)
    monkeypatch.setattr(steps, "after_step", [])
    watch, thread = device.Device(torch), runtime.Thread(0)
    torch.cuda.is_initialized = lambda: False
    watch.look(None, thread, 0)
    assert steps.after_step == [] and records == []
    torch.cuda.is_initialized = lambda: True
    for at in range(2):
        watch.look(None, thread, at)
    assert steps.after_step == [watch.after_step]
    assert [r[0] for r in records] == [channel.MEMORY]


def test_a_stream_under_capture_is_left_alone(monkeypatch):
    torch, records = fake_torch(monkeypatch, capturing=True)
    device.Device(torch).after_step(None, runtime.Thread(0), 0)
    assert records == [] and Event.made == []


def test_copies_to_another_device_are_recorded_and_casts_are_not(newest):
    result, directory = newest.start(
        [
            newest.python,
            newest.script(
                """
                import sys, torch
                plain = torch.Tensor.to
                sys.modules["_fullbore_hook.torch.device"].attach_tensor(torch.Tensor)
                x = torch.ones(10)
                x.to("meta")
                x.to(torch.float64)
                x.to("cpu")
                assert x.item is not None and torch.ones(1).item() == 1.0 and x.tolist() == [1.0] * 10
                print(plain is torch.Tensor.to)
                """
            ),
        ]
    )
    assert (result.stdout, result.stderr) == ("False\n", "")
    trainer = Channel(directory).trainer
    (copy,) = trainer.of(H2D)
    assert copy.a == 40 and copy.b == 0
    assert trainer.one("where")["what"] == "h2d"


def test_without_cuda_tensors_are_not_patched(newest):
    _, output = newest.run(
        """
        import torch
        print(torch.version.cuda, "to" in vars(torch.Tensor), "item" in vars(torch.Tensor))
        """
    )
    assert output.startswith("None") is False or output == "None False False\n"
