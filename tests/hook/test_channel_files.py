"""The channel's files inside the script's process: descriptors, directories that are not ours, disks that fail."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest
from channel_reader import FETCH, Channel
from test_marks import LOOP, SEARCH

LOOP_AGAIN = """
import fullbore, os

def loop(steps=40):
    for _ in fullbore.watch(range(steps)):
        fullbore.step()

loop()
"""


@pytest.fixture(params=["native", "python"])
def marked(request, bare):
    bare.path = request.param
    return bare


def on_disk(runner) -> dict[str, str]:
    """Told that the next channel is not in memory."""
    return {**SEARCH, "FULLBORE_CHANNEL_DISK": str(runner.directory / f"channel{runner.runs + 1}")}


@pytest.mark.parametrize("mapped", [True, False])
def test_a_script_that_closes_all_descriptors_keeps_its_files_to_itself(marked, mapped):
    script = LOOP_AGAIN + (
        """
os.closerange(3, 256)
files = [open(f"checkpoint{i}", "wb") for i in range(8)]
for file in files:
    file.write(b"weights")
    file.flush()
loop(400)
os.write(files[0].fileno(), b"!")
for file in files:
    file.close()
"""
    )
    channel, _ = marked.run(script, env=SEARCH if mapped else on_disk(marked))
    for path in marked.directory.glob("checkpoint*"):
        assert path.read_bytes() == b"weights" + b"!" * (path.name == "checkpoint0")
    assert len(channel.trainer.steps) == 440
    assert channel.trainer.one("bye")["steps"] == 440


def test_the_scripts_files_get_the_numbers_that_they_get_without_us(marked):
    script = LOOP_AGAIN + "print([os.open('/dev/null', os.O_RDONLY) for _ in range(100)])"
    _, output = marked.run(script, env=SEARCH)
    result, _ = marked.start([marked.python, marked.script(script)], SEARCH, hooked=False)
    assert output == result.stdout


def test_a_worker_that_closed_its_descriptors_leaves_alone_what_has_their_numbers(either):
    """That of its scheduling statistics is kept from fetch to fetch, and closed after a fork."""
    channel, output = either.run(
        """
    import os, time
    from torch.utils.data import DataLoader, Dataset

    class Slow(Dataset):
        def __len__(self):
            return 6
        def __getitem__(self, index):
            time.sleep(0.003)
            return float(index)

    for batch in DataLoader(Slow()):
        pass
    os.closerange(3, 256)
    files = [open(f"file{i}", "wb") for i in range(16)]
    child = os.fork()
    if child == 0:
        for file in files:
            os.fstat(file.fileno())
        os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    for batch in DataLoader(Slow()):
        pass
    for file in files:
        os.fstat(file.fileno())
    """
    )
    assert output == "7\n"
    assert [record.d >= 0 for record in channel.trainer.of(FETCH)] == [True] * 12


def test_each_record_is_written_through_where_the_channel_is_not_in_memory(marked):
    channel, _ = marked.run(LOOP, env=on_disk(marked))
    assert [record.sequence for record in channel.trainer.records] == list(range(1, len(channel.trainer.records) + 1))
    assert len(channel.trainer.steps) == 10


def test_what_could_not_be_written_leaves_no_gap(marked):
    """A limit stands for a full disk: readers wait for each number."""
    script = LOOP_AGAIN + (
        """
import resource, time
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, most))
loop(30)
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
time.sleep(1.1)  # until it tries again
loop(50)
"""
    )
    channel, _ = marked.run(script, env=on_disk(marked))
    records = channel.trainer.records
    assert [record.sequence for record in records] == list(range(1, len(records) + 1))
    assert 40 + 49 <= len(channel.trainer.steps) < 40 + 30 + 50


def test_a_ring_takes_a_small_part_of_the_memory_that_is_free(marked):
    memory = marked.directory / "memory"
    memory.mkdir(mode=0o700)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", memory]).returncode:
        pytest.skip("no right to mount")
    try:
        env = {**SEARCH, "FULLBORE_CHANNEL": str(memory)}
        result, _ = marked.start([marked.python, marked.script(LOOP)], env)
        assert (result.returncode, result.stdout, result.stderr) == (0, "trained\n", "")
        trainer = Channel(memory).trainer
        assert 4096 + trainer.capacity * 64 <= (8 << 20) / 64
        assert len(trainer.steps) == 10
    finally:
        subprocess.run(["umount", "-l", memory], check=True)


@pytest.mark.parametrize("how", ["a link", "writable by others", "another user's"])
def test_nothing_is_made_in_a_directory_that_may_not_be_ours(marked, how):
    precious = marked.directory / "precious"
    precious.mkdir(mode=0o700)
    channel = precious
    if how == "a link":
        channel = marked.directory / "channel"
        channel.symlink_to(precious)
    elif how == "writable by others":
        precious.chmod(0o777)
    elif os.geteuid() != 0:
        pytest.skip("not root: cannot act as another user")
    else:
        os.chown(precious, 1001, 1001)
    env = {**SEARCH, "FULLBORE_CHANNEL": str(channel)}
    result, _ = marked.start([marked.python, marked.script(LOOP)], env)
    assert (result.returncode, result.stdout, result.stderr) == (0, "trained\n", "")
    assert list(precious.iterdir()) == []


def note(pid: int, begin: str) -> str:
    return f"boot\n{os.readlink('/proc/self/ns/pid')}\n{pid}\n{begin}\n"


def begin_of(pid: int) -> str:
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


@pytest.mark.parametrize("left", ["alone", "beside another", "with a recorder", "beside a stranger"])
def test_the_last_process_of_a_killed_recorder_clears_the_memory(marked, left):
    channel = marked.directory / "memory"
    channel.mkdir(mode=0o700)
    me = os.getpid()
    (channel / "recorder").write_text(note(me, begin_of(me) if left == "with a recorder" else "1"))
    if left == "beside another":
        (channel / f"{me}-1.ring").touch()
    if left == "beside a stranger":
        (channel / "notes.txt").touch()
    env = {**SEARCH, "FULLBORE_CHANNEL": str(channel), "FULLBORE_CHANNEL_DISK": str(marked.directory)}
    result, _ = marked.start([marked.python, marked.script(LOOP)], env)
    assert (result.returncode, result.stdout, result.stderr) == (0, "trained\n", "")
    here = {path.name for path in channel.glob("*")}
    if left == "alone":
        assert not channel.exists()
    elif left == "beside a stranger":
        assert here == {"notes.txt"}
    else:
        assert "recorder" in here and len(here) >= 3


NO_TEXT = """
class Odd({base}):
    def __str__(self):
        raise {raised}

raise Odd(28, "No space left on device")
"""


@pytest.mark.parametrize("raised", ["ValueError", "self"])
@pytest.mark.parametrize("base", ["RuntimeError", "OSError"])
def test_a_script_that_ends_by_an_exception_without_a_text_says_its_goodbye(marked, base, raised):
    channel = marked.directory / "memory"
    channel.mkdir(mode=0o700)
    script = marked.script(LOOP_AGAIN + NO_TEXT.format(base=base, raised=raised))
    plain, _ = marked.start([marked.python, script], SEARCH, hooked=False)
    result, said = marked.start([marked.python, script], SEARCH)
    assert (result.returncode, result.stdout, result.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert Channel(said).trainer.one("bye")["steps"] == 40
    assert Channel(said).trainer.say("message") == []
    (channel / "recorder").write_text(note(os.getpid(), "1"))
    env = {**SEARCH, "FULLBORE_CHANNEL": str(channel), "FULLBORE_CHANNEL_DISK": str(marked.directory)}
    marked.start([marked.python, script], env)
    assert not channel.exists()
