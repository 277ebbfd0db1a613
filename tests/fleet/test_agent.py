"""`fullbore agent` as an administrator runs it: real processes in real control groups, on a fake NVML; and what goes
wrong around it."""

from __future__ import annotations

import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error

import pytest
from agents import Agent, end, sleepers

from tests.conftest import BINARY

IDLE = {"waves": {"utilization": [0, 0, 1], "sm_active": [0, 0, 1], "memory_used": [0, 0, 1]}}
LOOKS = 12  # seconds in which the agent has looked twice at who uses what


def gpu(*pids: int, **more) -> dict:
    return {"processes": [{"pid": pid, "memory_gib": 1, "sm": 50} for pid in pids], **more}


def process(root: pathlib.Path, pid: int, cgroup: bytes, has_status: bool = True) -> None:
    """A process of a machine that is made of files."""
    directory = root / "proc" / str(pid)
    directory.mkdir(parents=True)
    (directory / "cgroup").write_bytes(b"0::" + cgroup + b"\n")
    if has_status:
        (directory / "status").write_text(f"Uid:\t{1000 + pid % 7}\t0\t0\t0\n")


def answers(agent: Agent) -> bool:
    return bool(agent.samples("fullbore_gpu_holders"))


@pytest.mark.long
def test_who_holds_each_device_and_what_it_does(agent, jobs):
    works, idles, waits = jobs.start("job_71", 2), jobs.start("sG0VQ3J3AZ2K00"), jobs.start("job_73", gpus="2")
    (stranger,) = sleepers(1)
    stepd = subprocess.Popen(["bash", "-c", 'exec -a "slurmstepd: [72.0]" sleep 600'])
    jobs.processes += [stranger, stepd]
    jobs.put("sG0VQ3J3AZ2K00/step_0/slurm", stepd.pid)
    running = agent({"gpus": [gpu(*works), gpu(idles[0], stranger.pid, **IDLE), gpu(**IDLE)]})
    running.wait_for(answers)

    assert running.value("fullbore_gpu_holder_processes", gpu="0", job_id="71") == 2
    assert running.value("fullbore_gpu_holder_idle_seconds", gpu="0", job_id="71") == 0
    assert running.value("fullbore_gpu_holder_memory_bytes", gpu="0", job_id="71") == 2 << 30
    # By its process's own samples, for the device as a whole idles; and from the second look on.
    running.wait_for(lambda a: a.value("fullbore_gpu_holder_worked", gpu="1", job_id="72") == 1)
    held = running.wait_for(lambda a: a.samples("fullbore_gpu_holder_without_process_seconds", gpu="2", job_id="73"))
    assert held[0].labels["user"] == "root"
    running.wait_for(lambda a: a.value("fullbore_gpu_holder_without_process_seconds", gpu="2") > 3)
    (stray,) = running.samples("fullbore_gpu_stray_processes")
    assert (stray.labels["gpu"], stray.labels["reason"], stray.value) == ("1", "no_job", 1)

    end(jobs.processes[jobs.processes.index(stepd)])
    for each in jobs.processes:
        if each.pid == waits[0]:
            end(each)
    running.wait_for(lambda a: a.samples("fullbore_gpu_holders", gpu="2"))


def test_without_nvml_the_host_is_shown_and_it_says_so(agent):
    running = agent(None)
    assert running.value("fullbore_agent_source_up", source="nvml") == 0
    assert running.value("fullbore_memory_total_bytes") > 0
    assert running.said.count("no GPUs can be read here") == 1
    assert not running.samples("fullbore_gpu_info")


@pytest.mark.long
def test_an_nvml_that_hangs_is_told_from_a_device_that_idles(agent):
    running = agent({"gpus": [gpu(os.getpid()), gpu(hangs_at=3)]})
    running.wait_for(lambda a: a.value("fullbore_agent_source_up", source="nvml") == 1)
    running.wait_for(lambda a: a.value("fullbore_agent_source_up", source="nvml") == 0)
    assert running.value("fullbore_agent_nvml_age_seconds") > 19
    assert not running.samples("fullbore_gpu_holder_idle_seconds")
    assert running.value("fullbore_memory_total_bytes") > 0
    running.wait_for(lambda a: "NVML has not answered for 20 s" in a.said)
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(timeout=5) == 0


def test_a_polite_kill_ends_it(agent):
    running = agent({"gpus": [gpu()]})
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(timeout=5) == 0
    assert running.said.splitlines() == [f"fullbore agent: http://{running.address}/metrics"]


def test_a_port_that_is_taken_is_named_with_the_next_step():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run([BINARY, "agent", "--listen", address], capture_output=True, text=True, timeout=20)
    assert done.returncode == 2
    assert f"cannot listen on '{address}': Address already in use" in done.stderr
    assert "hint: " in done.stderr


def test_another_address_than_loopback_takes_the_token(agent, tmp_path):
    done = subprocess.run([BINARY, "agent", "--listen", "0.0.0.0:0"], capture_output=True, text=True, timeout=20)
    assert done.returncode == 2 and "there is no token" in done.stderr
    token = tmp_path / "token"
    token.write_text("a-token-for-the-tests\n")
    token.chmod(0o600)
    running = agent(None, "--token-file", token, listen="0.0.0.0:0")
    running.address = running.address.replace("0.0.0.0", "127.0.0.1")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        running.text()
    assert "# EOF" in running.text(Authorization="Bearer a-token-for-the-tests")
    assert running.text("/healthz") == "ok\n"


def test_what_others_typed_and_exported_stays_on_the_node(agent, jobs):
    secret = "hunter2-is-a-secret"
    (task,) = jobs.start("job_71", gpus="0")
    hidden = subprocess.Popen(["bash", "-c", 'exec -a "$0" sleep 600', secret], env={**os.environ, "TOKEN": secret})
    jobs.processes.append(hidden)
    jobs.put("job_71/step_0/user/task_1", hidden.pid)
    running = agent({"gpus": [gpu(task, hidden.pid)]})
    running.wait_for(answers)
    assert secret not in running.text() and secret not in running.said


@pytest.mark.skipif(shutil.which("setpriv") is None or os.geteuid() != 0, reason="needs root and setpriv")
@pytest.mark.parametrize("capable", [False, True])
def test_it_needs_no_root_and_says_what_it_cannot_see(agent, jobs, tmp_path, capable):
    jobs.start("job_71", gpus="0")
    for directory in [tmp_path, *tmp_path.parents[:-2]]:  # what nobody shall reach lies there
        directory.chmod(0o755)
    both = "+sys_ptrace,+dac_read_search"
    means = ["--inh-caps", both, "--ambient-caps", both] if capable else ["--inh-caps=-all", "--bounding-set=-all"]
    prefix = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *means, "--"]
    running = agent({"gpus": [gpu(**IDLE)]}, prefix=prefix)
    running.wait_for(answers)
    assert running.value("fullbore_agent_sees", what="environments") == capable
    assert running.value("fullbore_gpu_holders", gpu="0") == (1 if capable else 0)
    assert running.said.count("environments of others cannot be read") == (0 if capable else 1)


@pytest.mark.long
def test_processes_that_come_and_go_while_it_looks(agent):
    running = agent({"gpus": [gpu(*range(100_000, 100_050))]})
    until = time.monotonic() + LOOKS / 2
    while time.monotonic() < until:
        for each in [subprocess.Popen(["true"]) for _ in range(20)]:
            each.wait()
    assert running.process.poll() is None
    assert running.value("fullbore_agent_unseen_processes") == 50


def test_names_with_quotes_line_breaks_and_broken_characters_stay_inside_their_labels(agent, tmp_path):
    root = tmp_path / "root"
    process(root, 1, b"/init.scope")
    process(root, 10, b'/system.slice/a"b\\c\xff\xfe{}=,\x1b[31m.service')
    process(root, 11, b"/system.slice/b.service\n1:name=x:/\n\xff")
    running = agent({"gpus": [gpu(10, 11), {"name": 'H"100\n\\'}]}, "--root", root)
    running.wait_for(answers)
    text = running.text()
    assert r'unit="a\"b\\c\\xff\\xfe{}=,\\x1b[31m.service"' in text
    assert r'name="H\"100 \\"' in text
    assert all(line.isprintable() for line in text.splitlines())
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    families = {family.name for family in parser.text_string_to_metric_families(text)}
    assert {"fullbore_gpu_holder_seconds", "fullbore_node", "process_cpu_seconds"} <= families


def test_beyond_5000_series_the_rest_is_counted(agent, tmp_path):
    root = tmp_path / "root"
    process(root, 1, b"/init.scope")
    for pid in range(10, 810):
        process(root, pid, f"/docker/{pid:012x}{0:052x}".encode())
    running = agent({"gpus": [gpu(*range(10 + 100 * i, 110 + 100 * i)) for i in range(8)]}, "--root", root)
    running.wait_for(answers)
    text = running.text()
    assert sum(not line.startswith("#") for line in text.splitlines()) == 5000
    assert running.value("fullbore_cut_series") > 1000
    assert running.value("fullbore_agent_source_up", source="nvml") == 1


@pytest.mark.long
def test_10000_processes_take_little_memory(agent):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:  # on a disk, so many files take a minute
        root = pathlib.Path(directory)
        process(root, 1, b"/init.scope")
        for pid in range(10, 10_010):
            group = f"/system.slice/slurmstepd.scope/job_{pid % 50}/step_0/user/task_{pid}"
            process(root, pid, group.encode(), has_status=False)
        running = agent({"gpus": [gpu(*range(10 + i, 1610, 8)) for i in range(8)]}, "--root", root)
        running.wait_for(answers)
        time.sleep(LOOKS)
        assert running.value("process_resident_memory_bytes") < 64e6
        assert running.value("fullbore_agent_unseen_processes") == 0
        assert len(running.samples("fullbore_gpu_holder_processes", gpu="0")) == 25
        end(running.process)


def test_processes_in_no_job_are_their_users(agent):
    started = sleepers(20)
    try:
        running = agent({"gpus": [gpu(*(each.pid for each in started))]})
        running.wait_for(answers)
        (held,) = running.samples("fullbore_gpu_holder_processes")
        assert held.value == 20 and held.labels["user"] == pwd.getpwuid(os.geteuid()).pw_name
    finally:
        for each in started:
            end(each)


def within_a_namespace(jobs, group: str, **environment: str) -> int:
    """A task with numbers of its own for its processes, as a job in a container: its number on this machine."""
    apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sleep", "600"]
    outer = subprocess.Popen(apart, env={**os.environ, **environment})
    jobs.processes.append(outer)
    children = pathlib.Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
    deadline = time.monotonic() + 10
    while not (found := children.read_text().split()) and time.monotonic() < deadline:
        time.sleep(0.02)
    for pid in (outer.pid, int(found[0])):
        jobs.put(group, pid)
    return int(found[0])


@pytest.mark.long
def test_jobs_whose_processes_have_numbers_of_their_own_are_told_apart(agent, jobs):
    # Both are number 1 to themselves; NVML lists them by the machine's numbers.
    first = within_a_namespace(jobs, "job_71/step_0/user/task_0")
    second = within_a_namespace(jobs, "job_72/step_0/user/task_0")
    within_a_namespace(jobs, "job_73/step_0/user/task_0", SLURM_JOB_GPUS="2")
    for job in ("job_71", "job_72"):
        jobs.start(job, 0)  # slurmstepd, which is in the machine's
    running = agent({"gpus": [gpu(first), gpu(second, **IDLE), gpu(**IDLE)]})
    running.wait_for(answers)
    for number, job in enumerate(("71", "72")):
        (held,) = running.samples("fullbore_gpu_holder_processes", gpu=str(number))
        assert (held.labels["job_id"], held.value) == (job, 1)
    running.wait_for(lambda a: a.samples("fullbore_gpu_holder_without_process_seconds", gpu="2", job_id="73"))
    assert not running.samples("fullbore_gpu_stray_processes")
    assert running.value("fullbore_agent_sees", what="processes") == 1


@pytest.mark.skipif(shutil.which("unshare") is None or os.geteuid() != 0, reason="needs root and unshare")
def test_an_agent_in_a_container_says_that_it_does_not_see_the_machines_processes(agent):
    apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    running = agent({"gpus": [gpu(os.getpid())]}, prefix=apart)
    running.wait_for(answers)
    assert running.value("fullbore_agent_sees", what="processes") == 0
    assert running.said.count("or this is a container without the host's pids") == 1
