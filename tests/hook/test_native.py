"""The hook's extension and the Python code that stands in for it: both record the same, and nobody notices which."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
from channel_reader import CORES, FETCH, FORWARD, LINE, NEXT, OTHER, SYNC, Channel
from conftest import HOOK, NATIVE
from test_loader import LOADER
from test_trainer import PARTS
from test_warnings import pythons

EXTENSION = [str(path) for path in pathlib.Path(NATIVE).glob("_native*")]
built = pytest.mark.skipif(not EXTENSION, reason="the hook's extension is not built")

# Loads the extension as the hook does.
LOAD = f"""
import os, sys, threading
sys.path.insert(0, {str(HOOK.parent)!r})
os.environ["FULLBORE_HOOK_NATIVE"] = {NATIVE!r}
from hook.core import native
assert native.PATH == "native", native.reason
from hook.core import channel, runtime
hook, enter, leave = runtime.hook, runtime.enter, runtime.leave
"""


def in_python(python: str, code: str, directory: pathlib.Path, *flags: str) -> str:
    sanitizers = {k: v for k, v in os.environ.items() if k == "LD_PRELOAD" or k.endswith("SAN_OPTIONS")}
    env = {"FULLBORE_CHANNEL": str(directory), "PATH": "/usr/bin:/bin", **sanitizers}
    done = subprocess.run([python, *flags, "-c", LOAD + code], env=env, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


EVERYTHING = (
    PARTS
    + """
    def main():
        model, loss_of = Net(), nn.CrossEntropyLoss()
        first = torch.optim.SGD(model.body.parameters(), lr=0.1)
        second = torch.optim.SGD(model.head.parameters(), lr=0.1)
        for epoch in range(4):
            for number, (x, y) in enumerate(DataLoader(Numbers(50), batch_size=4)):
                first.zero_grad()
                loss_of(model(x), y).backward()
                first.step()
                if number % 5 == 0:
                    second.step()
            model.eval()
            for batch in DataLoader(Numbers(3), batch_size=2):
                model(batch[0])
            model.train()
        for _ in range(80):
            first.step()
    main()
    """
)


@pytest.mark.long
@built
def test_both_paths_record_the_same(newest):
    """All but times, which no two runs have in common; the samples' own times are in `a` of a fetch."""
    seen = {}
    for newest.path in ("native", "python"):
        trainer = newest.run(EVERYTHING)[0].trainer
        assert trainer.facts["hook_path"] == newest.path
        seen[newest.path] = [
            (r.kind, r.id, r.thread, r.a & 0xFFFFFFFF, *((r.b, r.c, r.d) if r.kind != FETCH else ()))
            for r in trainer.records
            if r.kind not in (LINE, OTHER) and not r.makes_iterator
        ]
        assert all(r.begin <= r.end for r in trainer.records)
    assert len(seen["native"]) > 400
    assert seen["native"] == seen["python"]


@built
@pytest.mark.parametrize("python", pythons())
def test_one_binary_serves_each_python(python, tmp_path):
    code = """
span = enter(channel.FORWARD)
assert enter(channel.BACKWARD)[1] == channel.FORWARD
leave(span, channel.FORWARD, a=1)
hook.open()
for number in range(9000):
    span = enter(channel.SYNC)
    leave(span, channel.SYNC, 2, b=number)
print(hook.channel.ring.written())
"""
    assert in_python(python, code, tmp_path, "-W", "error") == "9000\n"
    trainer = Channel(tmp_path).trainer
    assert [r.sequence for r in trainer.records] == list(range(9000 - 8192 + 1, 9001))  # it has wrapped around
    assert all((r.id, r.a, r.b) == (2, 0, r.sequence - 1) for r in trainer.records)


@built
@pytest.mark.parametrize("python", pythons())
def test_threads_write_side_by_side(python, tmp_path):
    code = """
hook.open()
sys.setswitchinterval(1e-5)
def work(number):
    for i in range(1500):
        span = enter(channel.SYNC)
        leave(span, channel.SYNC, a=number, b=i)
threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    in_python(python, code, tmp_path)
    records = Channel(tmp_path).trainer.records
    assert [r.sequence for r in records] == list(range(1, 7501))
    by_thread = {number: [r.b for r in records if r.a == number] for number in range(5)}
    assert all(seen == list(range(1500)) for seen in by_thread.values())


@built
def test_a_forked_child_writes_nowhere_until_it_has_a_ring_of_its_own(tmp_path):
    code = """
hook.open()
span = enter(channel.FORWARD)  # open in both
child = os.fork()
leave(span, channel.FORWARD, a=1 if child else 2)
if child == 0:
    hook.open()
    assert hook.here() is not span[0]
    leave(enter(channel.SYNC), channel.SYNC)
    os._exit(0)
os.waitpid(child, 0)
"""
    in_python(sys.executable, code, tmp_path)
    written = sorted([(r.kind, r.a) for r in process.records] for process in Channel(tmp_path).processes)
    assert written == [[(FORWARD, 1)], [(SYNC, 0)]]


@built
def test_a_daemon_thread_may_be_inside_a_phase_when_the_interpreter_exits(tmp_path):
    code = """
hook.open()
def forever():
    while True:
        leave(enter(channel.SYNC), channel.SYNC)
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
while hook.channel.ring.written() < 3000: pass
"""
    in_python(sys.executable, code, tmp_path)
    assert Channel(tmp_path).trainer.records


@built
def test_wrong_arguments_switch_the_hook_off_and_raise_nothing(tmp_path):
    calls = ("leave(1, 2)", "leave(None)", "enter()", "enter('x')", "hook.leave_next(1, 2, 3)", "hook.enter_fetch(1)")
    for call in calls:
        directory = tmp_path / call
        directory.mkdir()
        assert in_python(sys.executable, f"hook.open(); print({call}, hook.on)", directory) == "None False\n", call
        (message,) = Channel(directory).trainer.say("message")
        assert "switched itself off" in message["text"]


@built
def test_control_c_inside_the_hook_is_the_scripts(tmp_path):
    code = """
def here(): raise KeyboardInterrupt
hook.here = here
try: enter(1)
except KeyboardInterrupt: print("passed on", hook.on)
"""
    assert in_python(sys.executable, code, tmp_path) == "passed on True\n"


@pytest.mark.long
@pytest.mark.parametrize("binary", ["missing", "broken"])
def test_a_python_that_cannot_load_it_takes_the_python_path(newest, binary):
    place = newest.directory / "native"
    place.mkdir()
    if binary == "broken":
        (place / "_native.abi3.so").write_bytes(b"no library")
    channel, output = newest.run(
        LOADER + "    train(DataLoader(Slow(), batch_size=20)); print('trained')\n",
        env={"FULLBORE_HOOK_NATIVE": str(place)},
    )
    assert output == "trained\n"
    assert channel.trainer.facts["hook_path"] == "python"
    assert len(channel.trainer.steps) == 2


def test_samples_that_turn_out_cheap_are_timed_in_the_first_batches_only(either):
    channel, _ = either.run(
        LOADER
        + """
    data = DataLoader(list(torch.randn(64 * 40, 6)), batch_size=64)
    for _ in range(2):
        for _ in data: pass
    """
    )
    slowest = [r.a >> 32 for r in channel.trainer.of(FETCH)]
    assert len(slowest) == 80 and all(r.a & 0xFFFFFFFF == 64 for r in channel.trainer.of(FETCH))
    # A moment without a core brings the timing back for a batch or two.
    assert slowest[8:].count(0) > 60


@pytest.mark.long
def test_readiness_is_asked_only_where_there_are_workers(either):
    channel, _ = either.run(
        LOADER
        + """
    if __name__ == "__main__":
        from torch.utils.data import dataloader
        train(DataLoader(Slow(), batch_size=20))
        train(DataLoader(Slow(), batch_size=10, num_workers=1))
    """
    )
    ready = {ident: [r.b for r in channel.trainer.of(NEXT, ident) if r.a > 0] for ident in (1, 2)}
    assert ready[1] == [-1, -1]
    assert len(ready[2]) == 4 and min(ready[2]) >= 0


def test_a_stand_in_is_as_good_as_the_dataset(either):
    """While samples are timed, the fetcher's dataset is ours."""
    _, output = either.run(
        LOADER
        + """
    import gc, weakref
    class Mine(Slow):
        colour = "blue"
        def __getitem__(self, index):
            return index
    mine = Mine()
    batches = iter(DataLoader(mine, batch_size=4))
    next(batches)
    inside = batches._dataset_fetcher.dataset
    print(inside.colour, len(inside), inside[7], hasattr(inside, "nothing"), type(inside).__name__)
    mine.loop, gone = batches, weakref.ref(mine)  # a cycle through the stand-in
    del mine, batches, inside
    gc.collect()
    print(gone())
    """
    )
    assert output == "blue 40 7 False TimedDataset\nNone\n"


@pytest.mark.long
@built
def test_a_trial_that_takes_turns_says_at_each_step_what_it_had_of_the_cores(newest):
    script = (
        PARTS
        + """
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        end = time.thread_time() + 0.001
        while time.thread_time() < end:
            pass
        optimizer.step()
    """
    )
    trainer = newest.run(script, env={"FULLBORE_TURNS": "1"})[0].trainer
    cores = trainer.of(CORES)
    assert [record.end for record in cores] == [step.end for step in trainer.steps]
    assert all(later.a >= earlier.a for earlier, later in zip(cores, cores[1:])), "waited for a core"
    computed_ns = [later.b - earlier.b for earlier, later in zip(cores, cores[1:])]
    assert all(ns >= 1_000_000 for ns in computed_ns)
    assert all(1_000_000 <= later.c - earlier.c for earlier, later in zip(cores, cores[1:])), "of the thread"
    assert not newest.run(script)[0].trainer.of(CORES), "it would cost each step of every run"
