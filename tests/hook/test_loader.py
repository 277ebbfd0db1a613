"""Loaders and their workers: waits and fetches are recorded, and the script does not notice."""

from __future__ import annotations

import statistics

import pytest
from channel_reader import FETCH, GARBAGE, LINE, NEXT, OTHER, Channel

LOADER = """
    import sys, time
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset, IterableDataset

    class Slow(Dataset):
        def __len__(self):
            return 40
        def __getitem__(self, index):
            time.sleep(0.3 if index == 13 else 0.002)
            return torch.randn(6)

    class Stream(IterableDataset):
        def __iter__(self):
            for index in range(10):
                time.sleep(0.002)
                yield torch.randn(6)

    def collate(samples):
        time.sleep(0.01)
        return torch.stack(samples)

    def train(loader, epochs=1):
        model = nn.Linear(6, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(epochs):
            for x in loader:
                optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step()
"""


@pytest.mark.long
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_report_what_a_batch_costs(runner, method):
    if method == "forkserver" and runner.torch < (2, 0):
        pytest.skip("how spawn and forkserver differ does not depend on torch")
    channel, _ = runner.run(
        LOADER
        + """
    if __name__ == "__main__":
        train(DataLoader(Slow(), batch_size=4, num_workers=2, collate_fn=collate, multiprocessing_context=sys.argv[1]))
    """,
        method,
    )
    trainer, workers = channel.trainer, channel.workers
    assert trainer.one("loader")["args"]["start_method"] == method
    assert sorted(w.worker_id for w in workers) == [0, 1]
    assert all(w.parent == trainer.pid and w.one("hello")["role"] == "worker" for w in workers)
    assert all(w.one("hello")["ppid"] == trainer.pid for w in workers)
    assert {(r.kind, r.id) for w in workers for r in w.records} <= {(FETCH, 1), (LINE, 1), (OTHER, GARBAGE)}
    fetches = [r for w in workers for r in w.of(FETCH)]
    assert len(fetches) == 10
    for fetch in fetches:
        assert fetch.id == 1  # the trainer's number, however the worker was started
        assert fetch.a & 0xFFFFFFFF == 4
        assert fetch.c >= 10_000_000  # collate
        assert fetch.ns >= 4 * 2_000_000 + fetch.c
        assert 0 < fetch.b < fetch.ns + 1_000_000  # CPU
        assert 0 <= fetch.d
    slowest = sorted(r.a >> 32 for r in fetches)
    assert slowest[-1] >= 300_000 > statistics.median(slowest) and slowest[0] >= 2_000
    assert all(r.b >= 0 for r in trainer.batches)
    assert all(w.capacity == 1024 for w in workers) and trainer.capacity == 8192


@pytest.mark.long
def test_the_script_may_still_choose_how_workers_start(newest):
    channel, output = newest.run(
        LOADER
        + """
    import multiprocessing
    train(DataLoader(Slow(), batch_size=8))
    multiprocessing.set_start_method("spawn")
    print(multiprocessing.get_start_method())
    """
    )
    default = "forkserver" if newest.python_version >= (3, 14) else "fork"
    assert (channel.trainer.one("loader")["args"]["start_method"], output) == (default, "spawn\n")


@pytest.mark.long
def test_an_iterable_dataset_is_timed_sample_by_sample(runner):
    for workers in ("0", "1"):
        channel, _ = runner.run(
            LOADER
            + """
    train(DataLoader(Stream(), batch_size=4, num_workers=int(sys.argv[1]), collate_fn=collate))
    """,
            workers,
        )
        fetches = [r for p in channel.processes for r in p.of(FETCH)]
        assert [r.a & 0xFFFFFFFF for r in fetches] == [4, 4, 2]
        assert all(r.a >> 32 >= 2_000 and r.c >= 10_000_000 for r in fetches)
        assert [r.a for r in channel.trainer.of(NEXT) if not r.makes_iterator] == [4, 4, 2, 0]


@pytest.mark.long
def test_ready_batches_distinguish_a_full_queue_from_an_empty_one(runner):
    channel, _ = runner.run(
        LOADER
        + """
    def slow_consumer(loader):
        for x in loader:
            time.sleep(0.08)
    slow_consumer(DataLoader(Slow(), batch_size=2, num_workers=2))
    def slow_collate(samples):
        time.sleep(0.08)
        return torch.stack(samples)
    train(DataLoader(Slow(), batch_size=2, num_workers=2, collate_fn=slow_collate))
    """
    )
    full, empty = ([r.b for r in channel.trainer.batches if r.id == ident] for ident in (1, 2))
    assert statistics.median(full) >= 2
    assert statistics.median(empty) <= 1


@pytest.mark.long
def test_persistent_workers_are_one_process_over_all_epochs(runner):
    channel, _ = runner.run(
        LOADER
        + """
    train(DataLoader(Slow(), batch_size=8, num_workers=1, persistent_workers=True, prefetch_factor=3), epochs=3)
    """
    )
    (worker,) = channel.workers
    assert len(worker.of(FETCH)) == 15
    assert [r.c for r in channel.trainer.batches] == [1, 0, 0, 0, 0] * 3
    (loader,) = channel.trainer.say("loader")
    assert loader["args"]["persistent_workers"] is True and loader["args"]["prefetch_factor"] == 3
    assert loader["args"]["default_collate"] is True


@pytest.mark.long
def test_a_collate_function_of_the_scripts_own_is_told_from_torchs(runner):
    channel, _ = runner.run(
        LOADER
        + """
    train(DataLoader(Slow(), batch_size=8, collate_fn=collate))
    """
    )
    (loader,) = channel.trainer.say("loader")
    assert loader["args"]["default_collate"] is False


@pytest.mark.long
def test_the_start_of_workers_belongs_to_the_first_wait(newest):
    channel, _ = newest.run(
        LOADER
        + """
    if __name__ == "__main__":
        loader = DataLoader(Slow(), batch_size=8, num_workers=1, multiprocessing_context="spawn")
        train(loader)  # in a for loop
        iterator = iter(loader)
        time.sleep(0.3)
        next(iterator)
    """
    )
    first, *_ = trainer = channel.trainer.of(NEXT)
    assert first.c == 1 and first.a == 8
    making, after = trainer[-2:]
    assert (making.c, making.a) == (1, 0) and (after.c, after.a) == (1, 8)
    assert after.begin - making.end >= 300_000_000


@pytest.mark.long
def test_a_loader_inside_a_loader_is_part_of_the_outer_wait(either):
    channel, _ = either.run(
        LOADER
        + """
    class Nested(IterableDataset):
        def __iter__(self):
            return iter(DataLoader(Slow(), batch_size=None))
    train(DataLoader(Nested(), batch_size=4))
    """
    )
    assert [r.id for r in channel.trainer.batches] == [1] * 10
    assert len(channel.trainer.of(FETCH)) == 10


@pytest.mark.long
def test_a_random_split_is_timed_sample_by_sample(either):
    channel, _ = either.run(
        LOADER
        + """
    part, _ = torch.utils.data.random_split(Slow(), [40, 0])
    train(DataLoader(part, batch_size=4))
    """
    )
    assert sum(r.a >> 32 >= 300_000 for r in channel.trainer.of(FETCH)) == 1


@pytest.mark.long
def test_the_users_getitems_is_still_called_with_the_whole_batch(either):
    channel, output = either.run(
        LOADER
        + """
    class Bulk(Slow):
        def __getitems__(self, indices):
            print(len(indices))
            return [torch.randn(6) for _ in indices]
    train(DataLoader(Bulk(), batch_size=16))
    """
    )
    assert output.split() == ["16", "16", "8"]
    assert [r.a & 0xFFFFFFFF for r in channel.trainer.of(FETCH)] == [16, 16, 8]


def test_cheap_samples_are_not_timed_individually_until_one_is_slow(newest):
    # By a clock that the samples move: with the real one, a moment without a core would count as slow.
    newest.path = "python"
    channel, _ = newest.run(
        LOADER
        + """
    class Cheap(Slow):
        def __len__(self):
            return 64 * 60
        def __getitem__(self, index):
            global now
            now += 5_000 if index < 64 * 40 else 100_000
            return index
    now = time.monotonic_ns()
    for part in ("worker", "readings"):
        sys.modules["_fullbore_hook.torch." + part].clock = lambda: now
    for _ in DataLoader(Cheap(), batch_size=64): pass
    """
    )
    slowest = [r.a >> 32 for r in channel.trainer.of(FETCH)]
    assert slowest == [5] * 8 + [0] * 33 + [100] * 19


@pytest.mark.long
def test_loaders_keep_their_signature_attributes_and_subclasses(runner):
    script = (
        LOADER
        + """
    import copy, inspect, pickle
    class Mine(DataLoader):
        def __init__(self, dataset, extra, **kwargs):
            self.extra = extra
            super().__init__(dataset, **kwargs)
        def __iter__(self):
            for batch in super().__iter__():
                yield batch * self.extra
    loader = Mine(Slow(), 3, batch_size=20)
    again = pickle.loads(pickle.dumps(DataLoader(Slow(), batch_size=20)))
    print([batch.shape[0] for batch in loader], [batch.shape[0] for batch in again])
    print(inspect.signature(DataLoader), inspect.signature(DataLoader.__init__))
    print(sorted(name for name in vars(DataLoader(Slow())) if not name.startswith("_fullbore")))
    print(DataLoader.__init__.__qualname__, DataLoader.__iter__.__name__, copy.copy(loader).extra)
    arguments = inspect.signature(DataLoader.__init__).parameters
    rebuilt = DataLoader(**{k: v for k, v in vars(again).items() if k in arguments and k != "batch_sampler"
                            and k != "multiprocessing_context"})
    print(len(rebuilt))
    """
    )
    path = runner.script(script)
    with_hook, channel = runner.start([runner.python, path])
    without, _ = runner.start([runner.python, path], hooked=False)
    assert with_hook.stdout == without.stdout and with_hook.stderr == without.stderr and without.returncode == 0
    assert [r.a for r in Channel(channel).trainer.batches] == [20, 20, 20, 20]


@pytest.mark.long
def test_an_error_in_a_worker_reaches_the_script_as_usual(runner):
    _, output = runner.run(
        LOADER
        + """
    class Broken(Slow):
        def __getitem__(self, index):
            raise ValueError(f"no sample {index}")
    for workers in (0, 1):
        try:
            train(DataLoader(Broken(), batch_size=4, num_workers=workers))
        except ValueError as error:
            print("no sample 0" in str(error))
    """
    )
    assert output.split() == ["True", "True"]


@pytest.mark.long
def test_what_a_sampler_takes_to_draw_an_epochs_order_is_said_for_each_epoch(runner):
    channel, _ = runner.run(
        LOADER
        + """
    class Order(torch.utils.data.Sampler):
        def __init__(self, seconds):
            self.seconds = seconds
        def __len__(self):
            return 40
        def __iter__(self):
            time.sleep(self.seconds)
            return iter(range(40))

    if __name__ == "__main__":
        for workers in (0, 1):
            train(DataLoader(Slow(), batch_size=20, sampler=Order(0.05), num_workers=workers), epochs=2)
    """
    )
    draws = [draw["id"] for draw in channel.trainer.say("draw") if draw["ns"] >= 50_000_000]
    assert draws == [1, 1, 2, 2]


@pytest.mark.long
def test_a_worker_says_in_which_line_it_is_seen_while_it_fetches(runner):
    channel, script = runner.run(
        LOADER
        + """
    if __name__ == "__main__":
        train(DataLoader(Slow(), batch_size=4, num_workers=1), epochs=4)
    """
    )
    assert not [record for record in channel.trainer.of(LINE) if record.id]
    seen = [(worker, record) for worker in channel.workers for record in worker.of(LINE)]
    lines = [next(line for line in worker.say("line") if line["id"] == record.a) for worker, record in seen]
    assert "__getitem__" in {line["function"] for line in lines}, "at times it is seen putting the samples together"
    assert {record.id for _, record in seen} == {1}


@pytest.mark.long
@pytest.mark.parametrize(
    ("raised", "is_of_shared_memory"),
    [
        (
            "RuntimeError('unable to allocate shared memory(shm) for file </torch_5_1>: No space left on device (28)')",
            True,
        ),
        ("RuntimeError('unable to write to file </torch_18692_1954506624>: No space left on device (28)')", True),
        ("OSError(28, 'No space left on device', '/data/cache/17.npy')", False),
        ("RuntimeError('unable to mmap 1638400 bytes from file </torch_7_1>: Cannot allocate memory (12)')", False),
        ("KeyError('shared memory: No space left on device')", False),
    ],
)
def test_want_of_shared_memory_is_said_where_the_script_ends_by_it(newest, raised, is_of_shared_memory):
    result, directory = newest.start(
        [
            newest.python,
            newest.script(
                LOADER
                + f"""
    class Failing(Slow):
        def __getitem__(self, index):
            if index == 12:
                raise {raised}
            return super().__getitem__(index)

    train(DataLoader(Failing(), batch_size=4, num_workers=1))
    """
            ),
        ],
        None,
    )
    assert result.returncode == 1
    said = [m for m in Channel(directory).trainer.say("message") if m.get("source") == "shared-memory"]
    assert len(said) == int(is_of_shared_memory)
    assert all("No space left" in m["text"] and m["severity"] == "info" for m in said)


KILLED = (
    LOADER
    + """
    import os, signal
    class Killed(Slow):
        def __getitem__(self, index):
            if index == 12:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().__getitem__(index)

    loader = DataLoader(Killed(), batch_size=4, num_workers=1)
"""
)


WITHOUT_HANDLER = """
    import torch.utils.data._utils.signal_handling as handling
    handling._error_if_any_worker_fails = lambda: None
"""


# Torch raises that the worker exited unexpectedly, from what its own handler of SIGCHLD has said.
@pytest.mark.long
def test_a_worker_that_a_signal_ended_is_told_with_the_signal(newest):
    assert ended_by(newest, KILLED + "    train(loader)\n") == ["Killed"]


# As where the connection to the worker breaks before Python runs that handler.
@pytest.mark.long
def test_a_worker_that_a_signal_ended_is_told_without_torchs_handler(newest):
    assert ended_by(newest, KILLED + WITHOUT_HANDLER + "    train(loader)\n") == ["Killed"]


@pytest.mark.long
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("raised", ["RuntimeError('a sample that cannot be read')", "EOFError()"])
def test_workers_that_only_tell_of_an_exception_are_not_told(newest, raised, method):
    script = (
        LOADER
        + f"""
    class Failing(Slow):
        def __getitem__(self, index):
            if index == 12:
                raise {raised}
            return super().__getitem__(index)

    if __name__ == "__main__":
        train(DataLoader(Failing(), batch_size=4, num_workers=2, multiprocessing_context="{method}"))
"""
    )
    assert ended_by(newest, script) == []


@pytest.mark.long
def test_of_several_workers_the_one_that_a_signal_ended_is_told(newest):
    script = KILLED.replace("num_workers=1", "num_workers=2")
    assert ended_by(newest, script + WITHOUT_HANDLER + "    train(loader)\n") == ["Killed"]


def ended_by(newest, script):
    result, directory = newest.start([newest.python, newest.script(script)], None)
    assert result.returncode == 1
    return [m["text"] for m in Channel(directory).trainer.say("message") if m.get("source") == "worker-killed"]


@pytest.mark.long
def test_what_the_script_got_over_is_not_said(newest):
    channel, _ = newest.run(
        LOADER
        + """
    try:
        raise RuntimeError("unable to allocate shared memory(shm) for file </torch_5_1>: No space left on device (28)")
    except RuntimeError:
        pass
    train(DataLoader(Slow(), batch_size=4, num_workers=1))
    """
    )
    assert not [m for m in channel.trainer.say("message") if m.get("source") == "shared-memory"]


@pytest.mark.long
def test_threads_beside_the_training_are_named_where_workers_are_forked(newest):
    channel, _ = newest.run(
        LOADER
        + """
    import threading
    ends = threading.Event()
    threading.Thread(target=ends.wait, name="validation", daemon=True).start()
    loader = DataLoader(Slow(), batch_size=4, num_workers=1)
    train(loader)
    assert threading.active_count() >= 2
    ends.set()
    """
    )
    assert channel.trainer.facts["threads_at_fork"] == ["validation"]


@pytest.mark.long
def test_threads_are_not_named_without_workers_nor_where_there_are_none(newest):
    channel, _ = newest.run(
        LOADER
        + """
    train(DataLoader(Slow(), batch_size=4, num_workers=2), epochs=3)
    train(DataLoader(Slow(), batch_size=4))
    """
    )
    assert "threads_at_fork" not in channel.trainer.facts
