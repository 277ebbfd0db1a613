"""A trial does its worst to the user's files: they stay as they are, and the script notices nothing."""

from __future__ import annotations

import os
import pathlib
import shutil
import stat
import subprocess
import sys

import pytest
from tune_scripts import processes_with

from tests.conftest import has_landlock

ENDING = "\nimport time\nwhile True:\n    print('rate 100', flush=True)\n    time.sleep(0.02)\n"
UNSTEADY = ENDING.replace("'rate 100'", "'rate', __import__('random').randrange(1000)")
PYTHON = "/usr/bin/python3"  # one that everybody may start
PRINTED = ("--metric", "rate ([0-9]+)", "--most", "5s")

# What each script asserts is what it would see without us; a failed assertion is a crashed trial.
SCRIPTS = {
    "reads_what_it_wrote_under_every_name": """
import os
open("runs/exp1/step", "w").write("2")
assert open("runs/latest/step").read() == "2"
open("runs/latest/new", "w").write("x")
assert os.path.exists("runs/exp1/new")
os.remove("runs/latest"); os.symlink("exp1", "runs/latest")
assert open("runs/latest/step").read() == "2"
""",
    "removes_and_moves": """
import os, shutil
shutil.rmtree("ckpt"); os.makedirs("ckpt"); assert os.listdir("ckpt") == []
os.rename("log.csv", "ckpt/old.csv"); assert not os.path.exists("log.csv")
open("ckpt/old.csv", "a").write("more")
""",
    "changes_modes_owners_times_and_attributes": """
import os, subprocess
os.chmod("log.csv", 0); os.utime("data.bin", (1, 1)); os.setxattr("data.bin", "user.x", b"1")
file = os.open("data.bin", os.O_RDONLY); os.fchmod(file, 0o600)
subprocess.run(["chmod", "-R", "a-w", "ckpt"], check=True)
subprocess.run(["touch", "-d", "2001-01-01", "ckpt/last.pt"], check=True)
assert os.stat("log.csv").st_mode & 0o777 == 0 and os.stat("data.bin").st_mtime == 1
""",
    "writes_by_the_c_library_and_by_other_programs": """
import ctypes, subprocess
libc = ctypes.CDLL(None, use_errno=True)
assert libc.creat(b"log.csv", 0o644) >= 0 and libc.truncate(b"data.bin", 0) == 0 and libc.unlink(b"ckpt/last.pt") == 0
subprocess.run("rm -rf runs && echo EVIL >new && mv data.bin moved", shell=True, check=True)
assert open("new").read() == "EVIL\\n" and open("log.csv").read() == ""
""",
    "uses_sqlite_by_every_name_and_through_its_log": """
import os, sqlite3
from sqlite3 import connect
with connect("wal.db") as database:
    assert database.execute("select count(*) from t").fetchone() == (5,)
    database.execute("delete from t")
database = sqlite3.connect("file:" + os.path.abspath("wal.db") + "?mode=ro", uri=True)
assert database.execute("select count(*) from t").fetchone() == (0,)
""",
    "opens_one_large_file_for_changing_in_several_processes": """
import multiprocessing, os
def size(answers):
    with open("large", "r+b") as file:
        answers.put(os.fstat(file.fileno()).st_size)
answers = multiprocessing.get_context("fork").Queue()
workers = [multiprocessing.get_context("fork").Process(target=size, args=(answers,)) for _ in range(4)]
[each.start() for each in workers]
assert [answers.get() for _ in workers] == [64 << 20] * 4
""",
    "writes_through_a_descriptor_that_a_shell_left_open": """
import os
try: os.write(3, b"EVIL")
except OSError: pass
""",
    "uses_shared_memory_and_what_was_staged_there": """
import os
from multiprocessing.shared_memory import SharedMemory
staged = os.environ["STAGED"]
assert open(staged).read() == "precious"
open(staged, "w").write("EVIL"); os.remove(staged)
memory = SharedMemory(create=True, size=1 << 20); memory.buf[0] = 1; memory.close(); memory.unlink()
""",
    "leaves_a_process_that_writes_later": """
import subprocess
subprocess.Popen(["env", "-i", "setsid", "sh", "-c", "trap '' TERM; while sleep 0.1; do echo LEFT >>log.csv; done"])
""",
}


def make_files(directory: pathlib.Path) -> None:
    for name in ("ckpt", "runs/exp1"):
        (directory / name).mkdir(parents=True)
    for name in ("ckpt/last.pt", "log.csv", "data.bin", "runs/exp1/step"):
        (directory / name).write_text(f"precious {name}\n")
    (directory / "runs/latest").symlink_to("exp1")
    (directory / "large").write_bytes(b"x" * (64 << 20))
    # Five rows that stand in the log only: another process has the database open.
    code = """
import os, sqlite3
database = sqlite3.connect("wal.db"); database.execute("pragma journal_mode=wal"); database.execute("create table t(a)")
database.commit(); database.execute("pragma wal_checkpoint(truncate)")
database.executemany("insert into t values(?)", [(i,) for i in range(5)]); database.commit(); os._exit(0)
"""
    subprocess.run([sys.executable, "-c", code], cwd=directory, check=True)


def state(directory: pathlib.Path) -> dict[str, tuple]:
    seen = {}
    for path in sorted(directory.rglob("*")):
        known = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        times = 0 if path.is_symlink() else known.st_mtime_ns
        attributes = os.listxattr(path, follow_symlinks=False)
        seen[str(path)] = (known.st_mode, known.st_uid, known.st_ino, times, attributes, content)
    return seen


def files_below(directory: pathlib.Path) -> list[pathlib.Path]:
    """While they come and go."""
    return [pathlib.Path(place) / name for place, _, names in os.walk(directory) for name in names]


def as_user(who: str, directory: pathlib.Path) -> list[str]:
    """The words in front of a command for that user, to whom the directory is given."""
    if who == "oneself":
        return []
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("only root can be somebody else")
    for each in (directory, *directory.rglob("*")):
        os.chown(each, 65534, 65534, follow_symlinks=False)
    for parent in directory.parents:
        if parent.stat().st_uid == os.geteuid() and not parent.stat().st_mode & stat.S_IXOTH:
            parent.chmod(parent.stat().st_mode | stat.S_IXOTH)
    return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "env", f"HOME={directory}"]


def has_view(fullbore, front: list[str]) -> bool:
    done = subprocess.run([*front, fullbore.binary, "doctor"], cwd=fullbore.directory, capture_output=True, text=True)
    return "  ok  trials change none of your files" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize("who", ["oneself", "nobody"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_files_stay_as_they_were_and_the_script_sees_what_it_would_see(fullbore, tmp_path, name, who):
    files = tmp_path / "files"
    files.mkdir()
    make_files(files)
    (files / "t.py").write_text(SCRIPTS[name] + ENDING)
    staged = pathlib.Path(f"/dev/shm/fullbore-test-{os.getpid()}")
    staged.write_text("precious")
    front = as_user(who, tmp_path)
    if front:
        os.chown(staged, 65534, 65534)
    before = state(files)
    try:
        if not has_view(fullbore, front):
            pytest.skip("no namespaces here")
        command = [*front, fullbore.binary, "measure", "-o", tmp_path / "kept", *PRINTED, "--", PYTHON, "t.py"]
        done = subprocess.run(
            ["bash", "-c", 'exec 3>>log.csv; exec "$@"', "bash", *command],
            cwd=files,
            env=fullbore.environment({"STAGED": str(staged)}),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert '"outcome":"ok"' in done.stdout, done.stdout
        assert staged.read_text() == "precious"
    finally:
        staged.unlink()
    assert state(files) == before
    assert processes_with("LEFT") == []
    assert [path.suffix for path in (tmp_path / "kept").iterdir()] == [".fbr"], "nothing of the trial is left"


@pytest.mark.long
def test_reading_a_large_file_for_the_trial_copies_nothing(fullbore, tmp_path, torch_python):
    """HDF5 as everybody reads it, by workers that open it at once."""
    subprocess.run(
        [torch_python, "-c", "import h5py, numpy; h5py.File('d.h5', 'w')['x'] = numpy.ones((1 << 14, 1024), 'f4')"],
        cwd=fullbore.directory,
        check=True,
    )
    script = fullbore.script(
        "t.py",
        """
import glob, os, torch
from torch.utils.data import DataLoader, Dataset
class Samples(Dataset):
    file = None
    def __len__(self): return 100000
    def __getitem__(self, i):
        if self.file is None:
            import h5py
            self.file = h5py.File("d.h5", "r")
        return torch.from_numpy(self.file["x"][i % 100])
for batch in DataLoader(Samples(), batch_size=8, num_workers=4, multiprocessing_context="fork"):
    assert batch.sum() == 8 * 1024
    print("rate 100", flush=True)
""",
    )
    started = subprocess.Popen(
        [fullbore.binary, "measure", "-o", tmp_path / "kept", *PRINTED, "--", torch_python, script],
        cwd=fullbore.directory,
        env=fullbore.environment(),
        stdout=subprocess.PIPE,
    )
    most = 0
    while started.poll() is None:
        for path in files_below(tmp_path / "kept"):
            try:
                most = max(most, path.lstat().st_size)
            except OSError:
                pass
    assert b'"outcome":"ok"' in started.stdout.read()
    assert most < 32 << 20, "the file of 64 MB was copied"


def test_killed_without_a_chance_it_leaves_no_process_and_no_files(fullbore, tmp_path):
    script = fullbore.script(
        "handles_sigterm.py",
        """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, lambda *_: print("saving a checkpoint soon"))
if len(sys.argv) == 1:
    subprocess.Popen(["env", "-i", sys.executable, __file__, "child"], start_new_session=True)
open(f"big{len(sys.argv)}", "wb").write(b"x" * 1_000_000)
"""
        + UNSTEADY,
    )
    kept = tmp_path / "kept"
    started = fullbore.begin(
        fullbore.binary, "measure", "-o", kept, "--metric", "rate ([0-9]+)", "--", sys.executable, script
    )
    while sum(path.name.startswith("big") for path in files_below(kept)) < 2:
        assert started.poll() is None
    started.kill()
    started.wait()
    while processes_with("handles_sigterm.py") or list(kept.glob("fullbore-trial*")):
        pass  # the test's time limit says that one stayed
    assert not list(fullbore.directory.glob("big*"))


def test_a_trial_that_cannot_be_recorded_is_not_started(fullbore):
    mine = fullbore.script("ckpt.pt", "precious")
    script = fullbore.script("t.py", "open('ckpt.pt', 'w').write('OVERWRITTEN')" + ENDING)
    done = fullbore.call(
        "measure", "-o", "/proc/nowhere", *PRINTED, "--", sys.executable, script, env={"TMPDIR": "/proc/nowhere"}
    )
    assert done.code == 1
    assert "is not started" in done.stderr
    assert mine.read_text() == "precious"


def test_where_no_process_can_be_made_the_trial_does_not_run_in_our_place(fullbore, tmp_path):
    front = as_user("nobody", tmp_path)
    mine = fullbore.script("ckpt.pt", "precious")
    mine.chmod(0o666)
    script = fullbore.script("t.py", "open('ckpt.pt', 'w').write('OVERWRITTEN')" + ENDING)
    done = subprocess.run(
        [*front, "prlimit", "--nproc=1", fullbore.binary, "measure", *PRINTED, "--", PYTHON, script],
        cwd=fullbore.directory,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "cannot create a process" in done.stderr
    assert mine.read_text() == "precious"


def test_a_trial_that_fills_the_disk_is_ended_and_says_so(fullbore, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    script = fullbore.script(
        "t.py",
        """
import itertools, time
for i in itertools.count():
    print("rate", 100 * (i % 7), flush=True)
    time.sleep(0.01)
    if i < 200:
        open(f"f{i}", "wb").write(b"x" * 100_000)
""",
    )
    small = tmp_path / "small"
    small.mkdir()
    call = [fullbore.binary, "measure", "-o", small, "--metric", "rate ([0-9]+)", "--", sys.executable, script]
    mount = f'mount -t tmpfs -o size=32m,mode=0700 small "{small}"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mount + ' && exec "$@"', "sh", *call],
        cwd=fullbore.directory,
        env=fullbore.environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert '"outcome":"refused"' in done.stdout, done.stdout + done.stderr
    assert "more than half of what was free" in done.stdout


WRITES = """
import shutil, subprocess
open("ckpt.pt", "w").write("OVERWRITTEN")
assert open("ckpt.pt").read() == "OVERWRITTEN"
print(subprocess.run("echo EVIL >log.csv", shell=True).returncode)
"""


@pytest.mark.long
@pytest.mark.skipif(not has_landlock(), reason="a kernel without Landlock")
def test_without_namespaces_what_is_left_of_protection_is_said_before_the_first_trial(fullbore, blocked):
    files = [fullbore.script(name, "precious") for name in ("ckpt.pt", "log.csv")]
    script = fullbore.script("t.py", WRITES + ENDING)
    done = fullbore.call("measure", *PRINTED, "--", sys.executable, script, env={"LD_PRELOAD": blocked})
    assert b'"outcome":"ok"' in done.stdout
    assert "no private view" in done.stderr.splitlines()[0]
    assert "caches" in done.stderr and "modes, owners and times" in done.stderr
    assert "--cap-add SYS_ADMIN" in done.stderr or "sysctl" in done.stderr
    assert [each.read_text() for each in files] == ["precious", "precious"]
    doctor = fullbore.call("doctor", env={"LD_PRELOAD": blocked})
    assert b"no, but writing is refused (Landlock)" in doctor.stdout


def test_where_nothing_protects_a_trial_runs_only_if_asked_to(fullbore, blocked):
    mine = fullbore.script("log.csv", "precious")
    script = fullbore.script("t.py", WRITES + ENDING)
    without = {"LD_PRELOAD": blocked, "WITHOUT_LANDLOCK": "1"}
    for subcommand in ("measure", "tune"):
        done = fullbore.call(subcommand, *PRINTED, "--", sys.executable, script, env=without)
        assert done.code == 1
        assert "none is started" in done.stderr and "--unprotected" in done.stderr
        assert mine.read_text() == "precious"
    done = fullbore.call("measure", "--unprotected", *PRINTED, "--", sys.executable, script, env=without)
    assert b'"outcome":"ok"' in done.stdout, done.stderr
    assert mine.read_text() == "EVIL\n"


@pytest.mark.long
def test_a_cache_is_filled_once_for_all_trials_and_stays_as_it_was(fullbore, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    script = fullbore.script(
        "t.py",
        """
import os, pathlib
model = pathlib.Path(os.environ["TORCH_HOME"]) / "model"
downloads = 0 if model.exists() else 1
model.write_text("weights")
import time
while True:
    print(f"rate {100 + downloads}", flush=True)
    time.sleep(0.02)
""",
    )
    done = fullbore.call(
        *("tune", "--json", "answer.json", "--set", "n=1,2", "--exhaustive", *PRINTED, "--budget", "60s"),
        *("--", sys.executable, script, "{n}"),
        env={"TORCH_HOME": str(cache)},
    )
    assert done.stderr.count("100 samples/s") >= 1, done.stderr
    assert done.stderr.count("101 samples/s") == 1, "only the first trial downloads"
    assert list(cache.iterdir()) == []
