"""Whatever dies, fills up or breaks, the training goes on and the recording stays readable."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from waiting import PATIENCE_S, recorded_until_ns, wait_for, wait_until_recorded  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Trains until the file "enough" exists, then says how many steps it took.
TRAIN = """
import os, sys, torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
loader = DataLoader(TensorDataset(torch.randn(64, 8)), batch_size=4)
limit = int(os.environ.get("STEPS", 10**9))
steps = 0
while steps < limit and not os.path.exists("enough"):
    for (x,) in loader:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        steps += 1
        if steps == 100:
            print("training", os.getpid(), flush=True)
        if steps > 2000:
            torch.randn(50_000).sort()  # a few milliseconds
        if steps >= limit:
            break
    if "then" in globals():
        then(steps)
open("steps", "w").write(str(steps))
print("ended", steps, flush=True)
"""


@pytest.fixture
def train(fullbore):
    return fullbore.script("train.py", TRAIN)


def recorded_steps(fullbore, runs: pathlib.Path) -> int:
    (run,) = json.loads(fullbore.call("runs", "-o", runs, "--json", "-").stdout)
    return run["steps"]


def alive(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.long
def test_kill_9_of_us_leaves_the_training_and_a_readable_run(fullbore, torch_python, train):
    process, runs = fullbore.start(torch_python, train)
    trainer = int(process.stdout.readline().split()[1])
    wait_for(lambda: recorded_steps(fullbore, runs) >= 100, "steps on the disk")
    reached_ns = time.monotonic_ns()
    wait_until_recorded(runs, 2)  # it goes on writing
    process.kill()
    process.wait()
    (run_file,) = runs.glob("*.fbr")
    report = fullbore.explain(run_file)
    assert "exit_status" not in report
    assert recorded_until_ns(runs) >= reached_ns + 2e9, "what was on the disk was lost"
    assert b"unfinished" in fullbore.call("runs", "-o", runs).stdout
    (channel,) = runs.glob("*.channel.*")
    assert alive(trainer), "and its channel is left alone"

    (fullbore.directory / "enough").touch()
    wait_for((fullbore.directory / "steps").exists, "the training goes on to its end")
    wait_for(lambda: not alive(trainer), "the training ends")
    assert int((fullbore.directory / "steps").read_text()) > 100
    assert fullbore.call("runs", "-o", runs).code == 0
    assert channel.exists(), "a recorder elsewhere may have the same numbers"
    be_silent(channel)
    assert fullbore.call("runs", "-o", runs).code == 0
    assert not channel.exists(), "the next command clears away what dead processes left"


def be_silent(channel: pathlib.Path) -> None:
    """As if nobody had recorded there for eleven minutes."""
    note = channel / "recorder"
    then = note.stat().st_mtime - 660
    os.utime(note, (then, then))


def test_the_next_run_clears_away_long_silent_channels(fullbore):
    runs = fullbore.directory / "same"
    process, _ = fullbore.start("sh", "-c", "echo started; exec sleep 60", runs=runs)
    assert process.stdout.readline() == b"started\n"  # its run file and its channel are there
    (channel,) = runs.glob("*.channel.*")
    be_silent(channel)
    assert fullbore.call("run", "-q", "-o", runs, "--", "true").code == 0
    assert channel.exists(), "its recorder is known to live"
    process.kill()
    process.wait()
    be_silent(channel)
    assert fullbore.call("run", "-q", "-o", runs, "--", "true").code == 0
    assert not channel.exists()


def test_a_recorder_keeps_sending_heartbeats(fullbore):
    process, runs = fullbore.start("sh", "-c", "echo started; exec sleep 60")
    assert process.stdout.readline() == b"started\n"
    (channel,) = runs.glob("*.channel.*")
    be_silent(channel)
    silent = (channel / "recorder").stat().st_mtime
    wait_for(lambda: (channel / "recorder").stat().st_mtime > silent, "a sign of life")


@pytest.mark.long
def test_kill_9_of_the_training_is_saved_and_reported(fullbore, torch_python, train):
    code = "import os, signal\ndef then(steps):\n    if steps > 300: os.kill(os.getpid(), signal.SIGKILL)\n"
    train.write_text(code + TRAIN)
    done = fullbore.run(torch_python, train)
    assert done.code == 128 + signal.SIGKILL
    assert done.report["exit_status"] == 128 + signal.SIGKILL
    assert "out_of_memory" not in done.report
    assert "SIGKILL" in done.stderr or "signal 9" in done.stderr or "137" in done.stderr
    assert 300 <= recorded_steps(fullbore, done.runs) <= 320


@pytest.fixture
def small_memory() -> Iterator[pathlib.Path]:
    """The file that moves a process into a cgroup with 64 MB."""
    above = pathlib.Path("/sys/fs/cgroup/memory")
    if not os.access(above / "cgroup.procs", os.W_OK):
        pytest.skip("no memory cgroup (version 1) in which this user may create groups")
    group = above / f"fullbore-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(64 << 20))
        yield group / "cgroup.procs"
    finally:
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        wait_for(lambda: is_removed(group), "an empty group")


def is_removed(group: pathlib.Path) -> bool:
    try:
        group.rmdir()
    except OSError:  # a process that has just ended stays in it for a moment
        return False
    return True


# Longer than the recorder takes to notice which cgroup the command is in: a second, and some more on a busy machine.
NOTICED = "sleep 4"
HOG = "x = []\nwhile True: x.append(bytearray(1 << 20))"


@pytest.mark.long
def test_an_out_of_memory_kill_is_recognised(fullbore, small_memory):
    script = fullbore.script("hog.sh", f"echo $$ >{small_memory}\n{NOTICED}\nexec {sys.executable} -c '{HOG}'\n")
    done = fullbore.run("sh", script)
    assert done.code == 128 + signal.SIGKILL
    assert done.report["out_of_memory"] is True
    assert "memory" in done.stderr


@pytest.mark.long
def test_a_child_killed_for_memory_is_noticed_if_the_command_only_fails(fullbore, small_memory):
    """As with loader workers: the trainer survives and raises an exception."""
    lines = [f"echo $$ >{small_memory}", NOTICED, f"{sys.executable} -c '{HOG}'", "sleep 1", "exit 1"]
    script = fullbore.script("hog.sh", "\n".join(lines) + "\n")
    done = fullbore.run("sh", script)
    assert done.code == 1
    assert done.report["out_of_memory"] is True


def test_an_out_of_memory_kill_elsewhere_is_not_ours(fullbore, small_memory):
    process, runs = fullbore.start("sh", "-c", "echo ready; while [ ! -e enough ]; do sleep 0.1; done; exit 1")
    process.stdout.readline()
    other = subprocess.run(["sh", "-c", f"echo $$ >{small_memory}; exec {sys.executable} -c '{HOG}'"])
    assert other.returncode == -signal.SIGKILL
    (fullbore.directory / "enough").touch()
    process.communicate(timeout=PATIENCE_S)
    (run_file,) = runs.glob("*.fbr")
    assert "out_of_memory" not in fullbore.explain(run_file)


def fill(disk: pathlib.Path) -> pathlib.Path:
    filler = disk / "filler"
    with open(filler, "ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    return filler


def wait_until_unwritable(runs: pathlib.Path, for_s: float) -> None:
    """Waits until the recorder, which writes every second, has failed to do so for that long."""
    wait_for(lambda: time.monotonic_ns() - recorded_until_ns(runs) > for_s * 1e9, "writes that fail")


@pytest.mark.long
def test_a_disk_that_fills_up_costs_one_message(fullbore, torch_python, train, small_disk):
    process, _ = fullbore.start(torch_python, train, runs=small_disk / "runs")
    process.stdout.readline()
    fill(small_disk)
    wait_until_unwritable(small_disk / "runs", 4)
    (fullbore.directory / "enough").touch()
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert out.startswith(b"ended ")
    assert err.count(b"the command continues") == 1, err.decode()
    (run_file,) = (small_disk / "runs").glob("*.fbr")
    assert fullbore.explain(run_file)["run_id"]


@pytest.mark.long
def test_a_disk_with_space_again_loses_nothing(fullbore, torch_python, train, small_disk):
    train.write_text(TRAIN.replace("steps > 2000", "steps > 100"))  # slowly, so that the ring is not overwritten
    process, _ = fullbore.start(torch_python, train, runs=small_disk / "runs", flags=["-q"])
    process.stdout.readline()
    filler = fill(small_disk)
    wait_until_unwritable(small_disk / "runs", 2.5)
    filler.unlink()
    (fullbore.directory / "enough").touch()
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert recorded_steps(fullbore, small_disk / "runs") == int(out.split()[-1])


@pytest.fixture(scope="module")
def small_run(tmp_path_factory, torch_python) -> pathlib.Path:
    """A real run's file."""
    from tests.conftest import Fullbore

    place = tmp_path_factory.mktemp("small")
    fullbore = Fullbore(place)
    done = fullbore.run(torch_python, fullbore.script("train.py", TRAIN), env={"STEPS": "400"})
    assert done.code == 0
    return done.run_file


def check_damaged(fullbore, path: pathlib.Path) -> int:
    """Opened as far as possible, or a clear error; never a crash."""
    done = fullbore.call("explain", path, "--json", "-")
    assert done.code in (0, 1), f"{path}: {done.code} {done.stderr}"
    if done.code == 0:
        assert json.loads(done.stdout)["schema"]
    else:
        assert done.stderr.startswith("fullbore: ") and str(path) in done.stderr
    return done.code


@pytest.mark.long
def test_a_run_file_truncated_anywhere_does_not_crash(fullbore, small_run):
    whole = small_run.read_bytes()
    page = 4096
    cuts = {0, 1, 15, 16, 17, 99, 100, 101, 511, 512, len(whole) - 1, len(whole)}
    cuts |= {at + by for at in range(page, len(whole), page) for by in (-1, 0, 1)}
    cuts |= set(random.Random(1).sample(range(len(whole)), 30))
    if len(cuts) > 200:
        cuts = set(random.Random(2).sample(sorted(cuts), 200)) | {0, len(whole)}

    def check(cut: int) -> int:
        path = fullbore.directory / f"cut{cut}.fbr"
        path.write_bytes(whole[:cut])
        return check_damaged(fullbore, path)

    with ThreadPoolExecutor(2) as pool:
        codes = dict(zip(cuts, pool.map(check, cuts)))
    assert codes[len(whole)] == 0
    assert codes[0] == codes[17] == 1
    assert sum(code == 0 for code in codes.values()) > len(codes) / 4, "most of a file is most of a run"
    assert fullbore.call("runs", "-o", fullbore.directory).code == 0


def test_flipped_bytes_do_not_crash(fullbore, small_run):
    whole = small_run.read_bytes()

    def check(seed: int) -> None:
        dice = random.Random(seed)
        damaged = bytearray(whole)
        for _ in range(dice.choice([1, 3, 100])):
            damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
        path = fullbore.directory / f"flip{seed}.fbr"
        path.write_bytes(damaged)
        check_damaged(fullbore, path)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(check, range(120)))


def test_a_truncated_log_beside_the_run_file_does_not_crash(fullbore):
    """What a power failure leaves of a run that was being recorded."""
    process, runs = fullbore.start("sleep", "60")
    wait_for(lambda: any(log.stat().st_size > 0 for log in runs.glob("*.fbr-wal")), "a log")
    wait_until_recorded(runs, 2)  # so that it contains more than the beginning
    process.kill()
    process.wait()
    (run_file,) = runs.glob("*.fbr")
    main, log = run_file.read_bytes(), pathlib.Path(f"{run_file}-wal").read_bytes()
    assert log
    for cut in [0, 31, 32, *random.Random(3).sample(range(len(log)), 25), len(log)]:
        path = fullbore.directory / f"wal{cut}.fbr"
        path.write_bytes(main)
        pathlib.Path(f"{path}-wal").write_bytes(log[:cut])
        check_damaged(fullbore, path)


@pytest.mark.long
@pytest.mark.parametrize("place", ["core/steps.py", "torch/loader.py", "__init__.py"])
def test_an_exception_inside_the_hook_is_a_message_and_the_training_goes_on(fullbore, torch_python, train, place):
    hook = fullbore.directory / "hook"
    shutil.copytree(ROOT / "python" / "fullbore" / "hook", hook)
    broken = hook / place
    text = broken.read_text()
    broken.write_text(text + "\nraise RuntimeError('planted')\n")
    done = fullbore.run(torch_python, train, env={"STEPS": "200", "FULLBORE_HOOK_DIR": str(hook / "site")})
    assert done.code == 0
    assert done.stdout.splitlines()[-1] == b"ended 200"
    assert "planted" in json.dumps(done.report["messages"])


def test_the_users_own_sitecustomize_still_runs(fullbore, torch_python):
    own = fullbore.directory / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("print('my own sitecustomize')\n")
    done = fullbore.run(torch_python, "-c", "print('script')", env={"PYTHONPATH": str(own)})
    assert done.stdout == b"my own sitecustomize\nscript\n"


@pytest.mark.long
def test_deleting_the_channel_during_the_run_loses_only_what_comes_later(fullbore, torch_python, train):
    code = "import shutil\ndef then(steps):\n    shutil.rmtree(os.environ['FULLBORE_CHANNEL'], ignore_errors=True)\n"
    train.write_text(code + TRAIN)
    done = fullbore.run(torch_python, train, env={"STEPS": "2500"})
    assert done.code == 0
    assert done.stdout.splitlines()[-1] == b"ended 2500"
    assert done.report is not None


HEADER = struct.pack("<8sIIIIqIiIi", b"FBCHAN1\0", 4096, 64, 64, 1, 1, 1, -1, 1, -1).ljust(4096, b"\0")
GARBAGE = {
    "random bytes": lambda dice: dice.randbytes(4096 + 64 * 64),
    "a good header, then random bytes": lambda dice: HEADER + dice.randbytes(64 * 64),
    "a good header, then too little": lambda dice: HEADER + bytes(64),
    "every byte set": lambda dice: HEADER + b"\xff" * 64 * 64,
    "an enormous capacity": lambda dice: HEADER[:16] + b"\xff\xff\xff\xff" + HEADER[20:] + bytes(64 * 64),
    "no capacity": lambda dice: HEADER[:16] + bytes(4) + HEADER[20:] + bytes(64 * 64),
    "good sequence numbers, random events": lambda dice: HEADER
    + b"".join(struct.pack("<H", n % 14) + dice.randbytes(54) + struct.pack("<Q", n) for n in range(1, 65)),
    "nothing": lambda dice: b"",
}  # fmt: skip
TEXT = [
    b'{"k": 1}\n{"k": null}\n{"k": "fact", "key": 3, "value": {}}\n[1]\n"x"\n{"k": "hello", "rank": 1e300}\n',
    b'{"k": "loader", "id": -99999999999, "args": {"batch_size": "four"}}\n{"k": "line", "id": {}}\n',
    b'{"k": "fact", "key": "deep", "value": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    b"x" * 3_000_000,
    bytes(range(256)) * 100,
]


def test_garbage_in_the_channel_neither_crashes_nor_hangs(fullbore):
    place = fullbore.directory / "garbage"
    place.mkdir()
    dice = random.Random(4)
    for number, make in enumerate(GARBAGE.values(), start=1):
        (place / f"{number}-1.ring").write_bytes(make(dice))
        (place / f"{number}-1.jsonl").write_bytes(TEXT[number % len(TEXT)])
    done = fullbore.run("sh", "-c", 'cp garbage/* "$FULLBORE_CHANNEL"; sleep 1.5; exit 3', timeout=120)
    assert done.code == 3, done.stderr
    assert done.report is not None


def test_a_ring_truncated_while_we_read_it_does_not_crash(fullbore):
    (fullbore.directory / "ring").write_bytes(HEADER + bytes(64 * 64))
    steps = 'cp ring "$FULLBORE_CHANNEL/1-1.ring"; sleep 1; : >"$FULLBORE_CHANNEL/1-1.ring"; sleep 1; exit 3'
    done = fullbore.run("sh", "-c", steps, timeout=120)
    assert done.code == 3, done.stderr
    assert done.report is not None
