"""Slurm with our plugin: a real cluster of one node, jobs of an ordinary user, and no word of us in any script."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator

import pytest
from slurm_site import BINARY, PLUGIN, PYTHON, USER, Site, host, other_python, site, why_not
from waiting_training import TRAIN, waited

pytestmark = [pytest.mark.long, pytest.mark.alone]  # other clusters leave channels beside those of this one

ENDS = "echo hello; exit 7"  # as every job must that nothing of ours may touch


@pytest.fixture(scope="module")
def cluster_with_plugin() -> Iterator[Site]:
    if why_not():
        pytest.skip(why_not())
    with site() as made:
        yield made


@pytest.fixture
def slurm(cluster_with_plugin) -> Iterator[Site]:
    """With the usual plugstack.conf; afterwards no process and no channel of ours may be left."""
    cluster_with_plugin.configure()
    shutil.rmtree(cluster_with_plugin.runs, ignore_errors=True)
    cluster_with_plugin.runs.mkdir(mode=0o755)
    yield cluster_with_plugin
    cluster_with_plugin.wait_for_recorders()
    assert cluster_with_plugin.channels() == []


@pytest.fixture(scope="module")
def train() -> Iterator[pathlib.Path]:
    """Where other users may read it."""
    if other_python():
        pytest.skip(other_python())
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder).chmod(0o755)
        script = pathlib.Path(folder) / "train.py"
        script.write_text(TRAIN)
        yield script


@pytest.fixture(scope="module")
def two_nodes() -> Iterator[Site]:
    if why_not():
        pytest.skip(why_not())
    with site(others=["elsewhere"]) as made:
        yield made


def explain(run_file: pathlib.Path) -> dict:
    said = subprocess.run([BINARY, "explain", run_file, "--json", "-"], capture_output=True, text=True, check=True)
    return json.loads(said.stdout)


def rows(run_file: pathlib.Path, query: str) -> list[tuple]:
    return sqlite3.connect(f"file:{run_file}?immutable=1", uri=True).execute(query).fetchall()


def ended_as_without_us(about: dict[str, str]) -> None:
    assert (about["JobState"], about["ExitCode"], about["said"]) == ("FAILED", "7:0", "hello\n")


def test_a_training_is_recorded_without_a_word_in_its_script(slurm, train):
    about = slurm.run(f"exec {PYTHON} {train}", "--job-name=train")
    assert about["JobState"] == "COMPLETED", about["said"]
    assert slurm.files() == [f"slurm-{about['JobId']}.batch.fbr"]
    run_file = slurm.runs / USER / slurm.files()[0]
    report = explain(run_file)
    assert report["findings"][0]["id"] == "input-bound"
    assert report["findings"][0]["share"] == pytest.approx(waited(about["said"]), abs=0.05)
    facts = dict(rows(run_file, "SELECT key, value FROM machine"))
    assert (facts["user"], facts["job_id"], facts["job_partition"]) == (USER, about["JobId"], "low")
    assert facts["job_cores"] == "1"
    assert rows(run_file, "SELECT state, exit_status, command FROM stage") == [(1, 0, '["train"]')]
    owner = run_file.stat()
    assert (owner.st_uid, owner.st_mode & 0o777) == ((slurm.runs / USER).stat().st_uid, 0o600)


def test_each_step_is_a_run_and_no_time_counts_twice(slurm, train):
    about = slurm.run(f"sleep 2; srun --ntasks=1 {PYTHON} {train}; sleep 2")
    assert about["JobState"] == "COMPLETED", about["said"]
    job = about["JobId"]
    assert slurm.files() == [f"slurm-{job}.0.fbr", f"slurm-{job}.batch.fbr"]
    script, step = (slurm.runs / USER / f"slurm-{job}.{name}.fbr" for name in ("batch", "0"))
    assert explain(step)["findings"][0]["id"] == "input-bound"
    times = {path: rows(path, "SELECT end_ns - begin_ns FROM stage")[0][0] for path in (script, step)}
    database = slurm.folder / "fleet.db"
    subprocess.run([BINARY, "fleet", "collect", slurm.runs, "--to", database, "-q"], check=True)
    given = sqlite3.connect(database).execute("SELECT sum(given_ns) FROM run").fetchone()[0]
    # The process of a recorder is seen within a second, at its begin and its end.
    assert given / 1e9 == pytest.approx(times[script] / 1e9, abs=3)
    assert given < sum(times.values()) - 1e9


def test_a_job_that_a_recorded_one_submits_is_no_part_of_it(slurm):
    """Although it has its environment, and runs beside it."""
    about = slurm.run("sbatch --wait --wrap='env | grep FULLBORE_RUN=; sleep 3'; sleep 1")
    first, second = about["JobId"], str(int(about["JobId"]) + 1)
    assert about["JobState"] == "COMPLETED", about["said"]
    said = (slurm.home(USER) / f"slurm-{second}.out").read_text()
    assert said.startswith(f"FULLBORE_RUN=slurm-{second}.batch:")
    outer = slurm.runs / USER / f"slurm-{first}.batch.fbr"
    assert slurm.files() == [outer.name, f"slurm-{second}.batch.fbr"]
    assert rows(outer, "SELECT * FROM process WHERE role = 'recorder' OR command LIKE 'sleep 3%'") == []


def test_the_tasks_of_a_step_on_one_node_are_one_run(slurm, train):
    done = slurm.call("srun", "--ntasks=2", "--overcommit", PYTHON, train, user=USER)
    assert done.returncode == 0, done.stderr
    (name,) = slurm.files()
    assert re.fullmatch(r"slurm-\d+\.0\.fbr", name)
    assert len(explain(slurm.runs / USER / name)["ranks"]) == 2


def test_a_step_on_two_nodes_is_one_run_with_a_file_of_each(two_nodes, train):
    ranks = f"RANK=$SLURM_PROCID exec {PYTHON} {train}"
    done = two_nodes.call("srun", "--nodes=2", "--ntasks-per-node=1", "sh", "-c", ranks, user=USER)
    assert done.returncode == 0, done.stderr
    (name,) = two_nodes.files()
    run = two_nodes.runs / USER / name
    assert sorted(file.name for file in run.iterdir()) == sorted([f"{host()}.fbr", "elsewhere.fbr"])
    report = explain(run)
    assert [rank["rank"] for rank in report["ranks"]] == [0, 1]
    assert report["findings"][0]["id"] == "input-bound"


def test_an_array_of_50_jobs_is_50_runs(slurm):
    array = slurm.submit(ENDS, "--array=1-50", "--output=%A.%a.out", "--ntasks=1")
    for task in range(1, 51):
        about = slurm.wait(f"{array}_{task}")
        about["said"] = (slurm.home(USER) / f"{array}.{task}.out").read_text()
        ended_as_without_us(about)
    runs = slurm.files()
    assert len(runs) == 50
    assert {rows(slurm.runs / USER / name, "SELECT state, exit_status FROM stage")[0] for name in runs} == {(1, 7)}


def test_the_parts_of_a_heterogeneous_job_are_runs(two_nodes):
    about = two_nodes.run("srun --het-group=0,1 echo a part", "--ntasks=1", ":", "--ntasks=1")
    assert (about["JobState"], about["said"]) == ("COMPLETED", "a part\na part\n")
    first = int(about["HetJobId"])
    assert two_nodes.files(f"{first}.") == [f"slurm-{first}.{step}.fbr" for step in ("0", "batch")]
    assert two_nodes.files(f"{first + 1}.") == [f"slurm-{first + 1}.0.fbr"]


def test_the_user_has_the_last_word(slurm):
    for flag, env in (("--fullbore=off", {}), ("--comment=x", {"SLURM_FULLBORE": "off"})):
        about = slurm.run("env | grep -c FULLBORE_; srun -n1 echo a step", flag, env=env)
        assert about["said"] == "0\na step\n"
    assert slurm.files() == []
    assert list(slurm.runs.iterdir()) == [], "not even a directory"
    slurm.configure(f"optional {PLUGIN} dir={slurm.runs} binary={BINARY} wait_ms=10000\n")
    assert slurm.run("true")["JobState"] == "COMPLETED"
    assert slurm.files() == []
    asked = slurm.run("echo $FULLBORE_WINDOWS; srun -n1 true", "--fullbore")
    assert asked["said"] == "off\n"
    assert slurm.files() == [f"slurm-{asked['JobId']}.{step}.fbr" for step in ("0", "batch")]
    windows = slurm.run("echo $FULLBORE_WINDOWS", "--fullbore=windows")
    assert windows["said"] == "\n", "as often as fullbore finds right"
    refused = slurm.call("sbatch", "--fullbore=offline", "--wrap=true", user=USER)
    assert refused.returncode != 0
    assert "offline" in refused.stderr
    assert "off|on|windows" in slurm.call("srun", "--help").stdout


def test_without_a_site_directory_runs_lie_where_the_job_works(slurm):
    slurm.configure(f"optional {PLUGIN} default=on binary={BINARY} wait_ms=10000\n")
    about = slurm.run("true")
    slurm.wait_for_recorders()
    place = slurm.home(USER) / ".fullbore"
    assert (place / "runs" / f"slurm-{about['JobId']}.batch.fbr").exists()
    shutil.rmtree(place)


def test_secrets_never_enter_a_run(slurm):
    script = "srun -n1 env HF_TOKEN=secret-three sh -c 'sleep 2' x --api-key secret-four\nsleep 2"
    about = slurm.run(script, env={"WANDB_API_KEY": "secret-one", "FULLBORE_X_TOKEN": "secret-two"})
    assert about["JobState"] == "COMPLETED", about["said"]
    held = b"".join((slurm.runs / USER / name).read_bytes() for name in slurm.files())
    assert b"HF_TOKEN=" in held
    assert b"--api-key" in held
    assert b"secret-" not in held


def test_a_path_of_many_kilobytes_reaches_the_tasks(slurm):
    path = ":".join(f"/modules/{number:04}/lib/python" for number in range(400))
    about = slurm.run("echo ${#PYTHONPATH}; echo $PYTHONPATH | tail -c 30", env={"PYTHONPATH": path})
    length, end = about["said"].split()
    assert int(length) >= len(path) and path.endswith(end)


# What is wrong with us, as a line of plugstack.conf; `{ours}` is all as it should be, but for the directory.
OURS = f"optional {PLUGIN} default=on binary={BINARY} wait_ms=10000"
WRONG = {
    "the library is missing": "optional /nowhere/libfullbore_slurm.so default=on",
    "the library is no library": "optional {not_a_library} default=on",
    "a word is not understood": "{ours} dri={runs}",
    "the program is missing": "{ours} dir={runs} binary=/nowhere/fullbore",
    "the program hangs": "{ours} dir={runs} binary={hangs} wait_ms=100",
    "the program fails": "{ours} dir={runs} binary=/bin/false",
    "the directory's parent is missing": "{ours} dir=/nowhere/at/all",
    "the directory is a file": "{ours} dir={file}",
    "the directory is the user's, and read-only": "{ours} dir={locked}",
    "its disk is full": "{ours} dir={full}",
}


@pytest.fixture
def places(slurm) -> Iterator[dict[str, object]]:
    """What a wrong plugstack.conf names."""
    made = {name: slurm.folder / name for name in ("not_a_library", "hangs", "file", "locked", "full")}
    made["not_a_library"].write_text("no library\n")
    made["file"].write_text("no directory\n")
    made["hangs"].write_text("#!/bin/sh\nexec sleep 31\n")
    made["hangs"].chmod(0o755)
    made["locked"].mkdir(mode=0o755)
    (made["locked"] / USER).mkdir(mode=0o500)
    shutil.chown(made["locked"] / USER, USER)
    made["full"].mkdir(mode=0o755)
    tiny = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=755", "tmpfs", made["full"]])
    if tiny.returncode == 0:
        (made["full"] / USER).mkdir(mode=0o700)
        shutil.chown(made["full"] / USER, USER)
        (made["full"] / "filled").write_bytes(bytes(56 << 10))
    yield {**made, "ours": OURS, "runs": slurm.runs}
    slurm.wait_for_recorders()
    subprocess.run(["umount", made["full"]], check=False)
    for path in made.values():
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_job_ends_as_without_us_where(wrong, slurm, places):
    slurm.configure(WRONG[wrong].format(**places) + "\n")
    ended_as_without_us(slurm.run(ENDS))
    done = slurm.call("srun", "--ntasks=2", "--overcommit", "sh", "-c", ENDS, user=USER)
    assert (done.returncode, done.stdout) == (7, "hello\nhello\n"), done.stderr
    slurm.configure()
    assert slurm.files() == []
    left = [path for name in ("locked", "full") for path in (places[name] / USER).glob("*")]
    assert left == []


def test_a_job_that_asked_for_us_runs_where_there_is_no_plugin(slurm):
    for flag in ("--fullbore", "--fullbore=windows"):
        slurm.configure()
        job = slurm.submit("srun -n1 echo hello; exit 7", flag, "--hold", "--output=%j.out", "--error=%j.err")
        slurm.configure("optional /nowhere/libfullbore_slurm.so default=on\n")
        slurm.call("scontrol", "release", job)
        about = slurm.wait(job)
        about["said"] = (slurm.home(USER) / f"{job}.out").read_text()
        ended_as_without_us(about)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM])
def test_a_job_ends_as_without_us_where_its_recorder_gets(number, slurm, train):
    job = slurm.submit(f"{PYTHON} {train} >&2; {ENDS}", "--output=%j.out", "--error=%j.err")
    until = time.monotonic() + 60
    while not slurm.recorders():
        assert time.monotonic() < until, "no recorder"
        time.sleep(0.05)
    (recorder,) = slurm.recorders()
    time.sleep(1)
    os.kill(recorder, number)
    about = slurm.wait(job)
    about["said"] = (slurm.home(USER) / f"{job}.out").read_text()
    ended_as_without_us(about)
    assert "waited" in (slurm.home(USER) / f"{job}.err").read_text()
    if number == signal.SIGSTOP:
        os.kill(recorder, signal.SIGCONT)
    slurm.wait_for_recorders()
    slurm.run("true")  # whoever records next removes what a killed one left


def test_a_disk_that_fills_up_in_the_middle_changes_nothing_but_the_record(slurm, train, places):
    if not os.path.ismount(places["full"]):
        pytest.skip("no tmpfs can be mounted here")
    subprocess.run(["mount", "-o", "remount,size=400k", places["full"]], check=True)
    slurm.configure(WRONG["its disk is full"].format(**places) + "\n")
    ended_as_without_us(slurm.run(f"{PYTHON} {train} >/dev/null; {ENDS}"))
    slurm.configure()


def test_a_recorder_is_not_in_the_control_groups_of_its_job():
    groups = pathlib.Path("/sys/fs/cgroup")
    if why_not() or not os.access(groups / "freezer" / "tasks", os.W_OK) or not (groups / "memory" / "tasks").exists():
        pytest.skip(why_not() or "needs control groups of version 1: freezer and memory")
    limits = f"CgroupPlugin=cgroup/v1\nCgroupMountpoint={groups}\nConstrainRAMSpace=yes\n"
    settings = {"ProctrackType": "proctrack/cgroup", "TaskPlugin": "task/cgroup"}
    with site(limits, SelectTypeParameters="CR_CPU_Memory", **settings) as slurm:
        job = slurm.submit("cat /proc/self/cgroup; sleep 3", "--mem=100", "--output=%j.out")
        slurm.wait(job, {"RUNNING"})
        time.sleep(1)
        (recorder,) = slurm.recorders()
        of_recorder = pathlib.Path(f"/proc/{recorder}/cgroup").read_text()
        assert slurm.wait(job)["JobState"] == "COMPLETED"
        of_task = (slurm.home(USER) / f"{job}.out").read_text()
        assert re.search(r":freezer:/slurm.*step_batch", of_task)
        assert re.search(r":memory:/slurm.*step_batch", of_task)
        assert "slurm" not in of_recorder
        assert slurm.files() == [f"slurm-{job}.batch.fbr"]
        until = time.monotonic() + 20
        while left := list(groups.glob(f"*/slurm*/*/job_{job}")):
            assert time.monotonic() < until, left
            time.sleep(0.1)


def test_a_cancelled_job_is_cancelled_and_its_run_says_so(slurm):
    job = slurm.submit("exec sleep 600")
    slurm.wait(job, {"RUNNING"})
    time.sleep(1)
    slurm.call("scancel", job)
    assert slurm.wait(job)["JobState"] == "CANCELLED"
    (name,) = slurm.files()
    assert rows(slurm.runs / USER / name, "SELECT state, exit_status FROM stage") == [(1, 128 + signal.SIGTERM)]


def test_a_job_that_is_requeued_is_recorded_anew(slurm):
    job = slurm.submit('[ -n "$SLURM_RESTART_COUNT" ] || exec sleep 600; srun -n1 true', "--requeue")
    slurm.wait(job, {"RUNNING"})
    time.sleep(1)
    slurm.call("scontrol", "requeue", job)
    slurm.wait(job, {"PENDING", "RUNNING"})
    assert slurm.wait(job)["JobState"] == "COMPLETED"
    assert slurm.files() == [f"slurm-{job}.{step}.fbr" for step in ("0-r1", "batch-2", "batch")]
    second = dict(rows(slurm.runs / USER / f"slurm-{job}.batch-2.fbr", "SELECT key, value FROM machine"))
    assert second["job_restarts"] == "1"


def test_a_job_outlives_its_slurmd_and_is_recorded_to_its_end(slurm):
    job = slurm.submit(f"sleep 4; {ENDS}", "--output=%j.out")
    slurm.wait(job, {"RUNNING"})
    time.sleep(1)
    slurm.lose_slurmd()
    time.sleep(5)
    slurm.start_slurmd()  # to which Slurm says that the job has ended
    about = slurm.wait(job)
    about["said"] = (slurm.home(USER) / f"{job}.out").read_text()
    ended_as_without_us(about)
    (name,) = slurm.files()
    assert rows(slurm.runs / USER / name, "SELECT state, exit_status FROM stage") == [(1, 7)]


def test_a_job_whose_node_goes_down_fails_as_slurm_says_and_its_run_is_over(slurm):
    job = slurm.submit("exec sleep 600", "--no-requeue")
    slurm.wait(job, {"RUNNING"})
    time.sleep(1)
    node = ("scontrol", "update", f"NodeName={host()}")
    slurm.call(*node, "State=DOWN", "Reason=planted")
    try:
        assert slurm.wait(job)["JobState"] == "NODE_FAIL"
        (name,) = slurm.files()
    finally:
        slurm.call(*node, "State=RESUME")
    assert rows(slurm.runs / USER / name, "SELECT state FROM stage") == [(1,)]
    about = slurm.run(ENDS)
    ended_as_without_us(about)
    assert f"slurm-{about['JobId']}.batch.fbr" in slurm.files()
