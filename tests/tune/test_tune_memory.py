"""`fullbore tune` where memory ends: in a cgroup, as a container or a job of a cluster is limited."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import threading
import time

import pytest
from tune_scripts import processes_with

pytestmark = [pytest.mark.alone, pytest.mark.long]  # which batch is tried next depends on rates that are measured

MB = 1 << 20
LIMIT = 500 * MB
ABOVE = pathlib.Path("/sys/fs/cgroup/memory")

# A step takes 30 ms and hardly more with more samples, so that nothing but memory ends the batch. What a step holds
# grows with the batch, or suddenly, as where a library chooses another algorithm.
SCRIPT = """
import os, time, torch
from torch.utils.data import DataLoader, TensorDataset

PAGES = {
    "steady": lambda batch: 128 * batch,
    "sudden": lambda batch: batch * (32 if batch <= 64 else 400),
}[os.environ["GROWTH"]]

if __name__ == "__main__":
    torch.set_num_threads(1)
    steps = int(os.environ.get("STEPS", 10**9))
    batch = int(os.environ.get("BATCH", 16))
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = TensorDataset(torch.ones(1, 4).expand(10**7, -1))
    for step, (x,) in enumerate(DataLoader(data, batch_size=batch)):
        if step == steps:
            break
        optimizer.zero_grad()
        held = torch.empty(PAGES(len(x)), 1024)
        held[:, 0] = 1  # a page each
        loss = model(x).square().mean() + 0 * held[0, 0]
        time.sleep(0.03)
        loss.backward()
        optimizer.step()
"""


class MemoryGroup:
    """A cgroup, and the most memory that was in it, by our own count: without what could be dropped."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def enter(self) -> None:
        (self.path / "cgroup.procs").write_text("0")

    def kills(self) -> int:
        counters = dict(line.split() for line in (self.path / "memory.oom_control").read_text().splitlines())
        return int(counters["oom_kill"])

    def held(self) -> int:
        counters = dict(line.split() for line in (self.path / "memory.stat").read_text().splitlines())
        return int(counters["total_rss"]) + int(counters.get("total_shmem", 0))

    @contextlib.contextmanager
    def watched(self):
        most = [0]
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(0.02):
                most[0] = max(most[0], self.held())

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield most
        finally:
            ended.set()
            thread.join()


@pytest.fixture
def memory_group():
    if not os.access(ABOVE / "cgroup.procs", os.W_OK):
        pytest.skip("no memory cgroup (version 1) in which this user may create groups")
    path = ABOVE / f"fullbore-tune-{os.getpid()}"
    try:
        path.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}")
    try:
        (path / "memory.limit_in_bytes").write_text(str(LIMIT))
        yield MemoryGroup(path)
    finally:
        for pid in (path / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        while path.exists():
            with contextlib.suppress(OSError):  # a process that has just ended stays in it for a moment
                path.rmdir()
            time.sleep(0.03)


def largest_batch(fullbore, tune, torch_python, memory_group, growth: str) -> tuple[int, list[int]]:
    """The one that is recommended, and those that died."""
    script = fullbore.script("train_to_the_cliff.py", SCRIPT)
    said = tune(
        *("--knobs", "batch", "--precision", "10%", "--most", "3s", "--budget", "5m", "--", torch_python, script),
        env={"GROWTH": growth},
        preexec_fn=memory_group.enter,
    )
    died = [trial["settings"]["batch_size"] for trial in said["trials"] if trial["outcome"] == "out-of-memory"]
    assert {trial["outcome"] for trial in said["trials"]} <= {"ok", "out-of-memory"}
    assert memory_group.kills() == len(died), "each in a trial of its own: neither the recorder nor tune"
    assert processes_with(script.name) == []
    return said["recommended"]["settings"]["batch_size"], died


def holds(fullbore, torch_python, memory_group, growth: str, batch: int, steps: int) -> tuple[int, int]:
    """The exit status of the program itself with that batch, and the most memory that it held."""
    environment = {"GROWTH": growth, "STEPS": str(steps), "BATCH": str(batch)}
    with memory_group.watched() as most:
        done = subprocess.run(
            [torch_python, fullbore.directory / "train_to_the_cliff.py"],
            env=fullbore.environment(environment),
            preexec_fn=memory_group.enter,
        )
    return done.returncode, most[0]


def test_the_largest_batch_leaves_a_tenth_of_the_memory_in_a_run_ten_times_as_long(
    fullbore, tune, torch_python, memory_group
):
    chosen, died = largest_batch(fullbore, tune, torch_python, memory_group, "steady")
    assert died == [], "where two batches tell what a sample takes, nothing has to die"
    status, held = holds(fullbore, torch_python, memory_group, "steady", chosen, steps=250)
    assert (status, held < 0.9 * LIMIT) == (0, True)
    status, held = holds(fullbore, torch_python, memory_group, "steady", 2 * chosen, steps=5)
    assert status != 0 or held > 0.9 * LIMIT, "twice as much would not do"


def test_a_cliff_that_nobody_could_foresee_is_found_and_the_machine_stays_up(
    fullbore, tune, torch_python, memory_group
):
    chosen, died = largest_batch(fullbore, tune, torch_python, memory_group, "sudden")
    assert died and min(died) > chosen
    status, held = holds(fullbore, torch_python, memory_group, "sudden", chosen, steps=20)
    assert (status, held < 0.9 * LIMIT) == (0, True)
