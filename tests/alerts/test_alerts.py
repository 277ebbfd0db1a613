"""Rules on real runs that give cause for each kind of alert, told to a real receiver."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from alert_runs import TRAINING, history, owed, rules, running  # noqa: E402

from scripts.ports import free_port  # noqa: E402

ALERTMANAGER = shutil.which("prometheus-alertmanager")
MEMORY_GROUPS = pathlib.Path("/sys/fs/cgroup/memory")


@pytest.mark.long
def test_what_goes_wrong_in_a_training_is_told_once_and_so_is_its_end(fullbore, torch_python, receiver):
    script = fullbore.script("train.py", TRAINING)
    file = rules(
        fullbore,
        """
        [[alert]]
        name = "waits"
        finding = "input-bound"
        above = 0.6
        for = "3s"
        notify = ["log", "webhook:URL"]
        [[alert]]
        name = "stuck"
        steps = "none"
        for = "2s"
        notify = ["webhook:URL"]
        [[alert]]
        name = "failed"
        run = "failed"
        notify = ["log", "webhook:URL"]
        """,
        receiver.url,
    )
    here = script.parent
    process, runs = fullbore.start(torch_python, script, "600", flags=["--rules", file])
    run_file = running(runs)
    time.sleep(10)  # of health
    assert receiver.heard == []

    receiver.down = True
    (here / "slow").touch()
    until = time.monotonic() + 60
    while not receiver.refused and time.monotonic() < until:
        time.sleep(0.05)
    assert receiver.refused
    receiver.down = False
    waits = receiver.wait_for("waits", "firing")
    assert "data" in waits["what"] and waits["fix"] and waits["lost"]["seconds"] > 0
    (here / "slow").unlink()
    receiver.wait_for("waits", "resolved")

    (here / "hang").touch()
    assert "nothing computes" in receiver.wait_for("stuck", "firing")["what"]
    time.sleep(4)  # who looks afterwards knows the last step to the nanosecond, and sees a shorter pause
    (here / "hang").unlink()
    receiver.wait_for("stuck", "resolved")

    (here / "crash").touch()
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 3
    assert "status 3" in receiver.wait_for("failed", "firing")["what"]

    for alert, states in {
        "waits": ["firing", "resolved"],
        "stuck": ["firing", "resolved"],
        "failed": ["firing"],
    }.items():
        assert receiver.states(alert) == states
        assert [each["state"] for each in history(fullbore, run_file) if each["alert"] == alert] == states[-1:]
    assert said.count("alert 'waits'") == 2 and said.count("alert 'waits' is over") == 1
    assert "alert 'failed'" in said
    assert b"hook/secret" not in run_file.read_bytes()

    replayed = fullbore.call("alerts", "test", file, run_file, "--json", "-")
    assert {rule["alert"]: rule["fired"] for rule in json.loads(replayed.stdout)["rules"]} == {
        "waits": 1,
        "stuck": 1,
        "failed": 1,
    }


@pytest.mark.long
def test_a_disk_that_fills_is_told(fullbore, receiver, tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", place], capture_output=True).returncode:
        pytest.skip("no right to mount a small file system")
    try:
        file = rules(
            fullbore, '[[alert]]\nname = "disk"\ndisk = "full"\nfor = "1s"\nnotify = ["webhook:URL"]', receiver.url
        )
        script = fullbore.script("fill.sh", 'head -c 3m /dev/zero > "$1/big"; sleep 12; rm "$1/big"; sleep 8; true')
        done = fullbore.run("sh", script, place, flags=["--rules", file])
        assert done.code == 0, done.stderr
        assert str(place) in receiver.wait_for("disk", "firing")["what"]
        assert receiver.states("disk") == ["firing", "resolved"]
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.long
def test_memory_that_grows_to_its_limit_is_told_before_it_ends(fullbore, receiver):
    if not os.access(MEMORY_GROUPS / "memory.limit_in_bytes", os.W_OK):
        pytest.skip(f"needs a writable memory cgroup: {MEMORY_GROUPS} (root, cgroup v1)")
    group = MEMORY_GROUPS / f"fullbore-alerts-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(800 << 20))
        file = rules(
            fullbore,
            '[[alert]]\nname = "memory"\nmemory = "ends"\nwithin = "3m"\nfor = "1s"\nnotify = ["webhook:URL"]',
            receiver.url,
        )
        script = fullbore.script(
            "grow.py",
            "import time\nkept = []\nfor _ in range(350):\n    kept.append(b'x' * 700_000)\n    time.sleep(0.1)\n",
        )
        done = fullbore.run(
            sys.executable, script, flags=["--rules", file], preexec_fn=lambda: (group / "tasks").write_text("0")
        )
        assert done.code == 0, done.stderr
        assert "enough for" in receiver.wait_for("memory", "firing")["what"]
        assert receiver.states("memory") == ["firing", "resolved"]
    finally:
        until = time.monotonic() + 30
        while (group / "tasks").read_text() and time.monotonic() < until:
            time.sleep(0.1)
        group.rmdir()


def test_a_killed_command_is_told_on_the_terminal(fullbore):
    done = fullbore.run("sh", "-c", "sleep 2; kill -TERM $$", flags=["--rules", "default"])
    assert done.code == 143
    assert "alert 'run failed': the run was ended by signal 15" in done.stderr
    (only,) = history(fullbore, done.run_file)
    assert only["state"] == "firing"
    listed = fullbore.call("alerts", done.run_file).stdout.decode()
    assert "run failed" in listed and "still fires" in listed


@pytest.mark.long
def test_what_went_well_is_not_spoken_of(fullbore):
    done = fullbore.run("sleep", "3", flags=["--rules", "default"])
    assert done.code == 0 and "alert" not in done.stderr
    assert history(fullbore, done.run_file) == []
    assert b"no alert fired" in fullbore.call("alerts", done.run_file).stdout


@pytest.mark.long
def test_who_watches_may_be_killed_and_started_again(fullbore, receiver):
    file = rules(
        fullbore,
        '[[alert]]\nname = "used"\nseries = "memory_used"\nabove = 1\nfor = "1s"\nnotify = ["webhook:URL"]',
        receiver.url,
    )
    process, runs = fullbore.start("sleep", "300")
    run_file = running(runs)
    watch = [arg for arg in fullbore.arguments([])[:1]] + ["alerts", "watch", str(run_file), "--rules", str(file)]
    first = subprocess.Popen(watch, stdout=subprocess.DEVNULL)
    receiver.wait_for("used", "firing")
    until = time.monotonic() + 60
    while owed(run_file):  # killed earlier, it could not know that it was heard
        assert time.monotonic() < until
        time.sleep(0.05)
    first.kill()
    first.wait()
    second = subprocess.Popen(watch, stdout=subprocess.DEVNULL)
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    receiver.wait_for("used", "resolved")
    assert second.wait(timeout=60) == 0
    assert receiver.states("used") == ["firing", "resolved"]


def watchers_of(run_file: pathlib.Path) -> list[int]:
    """The processes that `run --rules` has started for a run."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid,stat,args"], capture_output=True, text=True).stdout.splitlines()
    words = [line.split(None, 2) for line in listed if "alerts watch" in line and str(run_file) in line]
    return [int(pid) for pid, state, _ in words if not state.startswith("Z")]


@pytest.mark.long
def test_run_starts_who_watches_again_when_it_was_killed(fullbore, receiver):
    text = '[[alert]]\nname = "used"\nseries = "memory_used"\nabove = 1\nfor = "1s"\nnotify = ["webhook:URL"]'
    process, runs = fullbore.start("sleep", "300", flags=["--rules", rules(fullbore, text, receiver.url)])
    run_file = running(runs)
    receiver.wait_for("used", "firing")
    until = time.monotonic() + 90
    while owed(run_file):
        assert time.monotonic() < until
        time.sleep(0.05)
    (first,) = watchers_of(run_file)
    os.kill(first, signal.SIGKILL)
    while watchers_of(run_file) in ([], [first]):
        assert time.monotonic() < until
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    assert b"started again" in process.communicate(timeout=60)[1]
    receiver.wait_for("used", "resolved")
    assert receiver.states("used") == ["firing", "resolved"]


@pytest.mark.long
def test_serve_watches_every_run_and_survives_a_restart(fullbore, receiver):
    file = rules(
        fullbore,
        '[[alert]]\nname = "used"\nseries = "memory_used"\nabove = 1\nfor = "1s"\nnotify = ["webhook:URL"]',
        receiver.url,
    )
    process, runs = fullbore.start("sleep", "300")
    run_file = running(runs)
    serve = [*fullbore.arguments([])[:1], "serve", "--dir", str(runs), "--listen", "127.0.0.1:0", "--rules", str(file)]
    first = subprocess.Popen(serve, stderr=subprocess.PIPE)
    url = first.stderr.readline().decode().split()[2]
    receiver.wait_for("used", "firing")
    until = time.monotonic() + 60
    while owed(run_file):
        assert time.monotonic() < until
        time.sleep(0.05)
    shown = json.load(urllib.request.urlopen(f"{url}api/v1/alerts", timeout=30))
    assert [each["alert"] for each in shown["firing"]] == ["used"]
    assert "secret" not in json.dumps(shown)
    first.kill()
    first.communicate()
    second = subprocess.Popen(serve, stderr=subprocess.DEVNULL)
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    receiver.wait_for("used", "resolved")
    second.terminate()
    second.wait(timeout=60)
    assert receiver.states("used") == ["firing", "resolved"]


@pytest.mark.long
@pytest.mark.skipif(ALERTMANAGER is None, reason="needs Debian's package prometheus-alertmanager")
def test_alertmanager_hears_of_an_alert_and_of_its_end(fullbore, receiver, tmp_path):
    port = free_port()
    (tmp_path / "am.yml").write_text(
        f"""
route: {{receiver: test, group_wait: 0s, group_interval: 1s, repeat_interval: 1h}}
receivers:
  - name: test
    webhook_configs: [{{url: '{receiver.url}'}}]
"""
    )
    command = [ALERTMANAGER, "--config.file=am.yml", f"--storage.path={tmp_path}/am", "--cluster.listen-address="]
    manager = subprocess.Popen(
        [*command, f"--web.listen-address=127.0.0.1:{port}"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=5)
                break
            except OSError:
                assert time.monotonic() < until, "it does not start"
                time.sleep(0.1)
        file = rules(
            fullbore,
            '[[alert]]\nname = "used"\nseries = "memory_used"\nabove = 1\nfor = "1s"\nnotify = ["alertmanager:URL"]',
            f"http://127.0.0.1:{port}",
        )
        process, runs = fullbore.start("sleep", "300", flags=["--rules", file])
        until = time.monotonic() + 60
        while not (groups := receiver_groups(receiver, "firing")) and time.monotonic() < until:
            time.sleep(0.1)
        (alert,) = groups[0]["alerts"]
        assert alert["labels"]["alertname"] == "used" and alert["labels"]["run"] == running(runs).stem
        assert "memory_used is" in alert["annotations"]["summary"]
        process.send_signal(signal.SIGINT)
        until = time.monotonic() + 60
        while not receiver_groups(receiver, "resolved") and time.monotonic() < until:
            time.sleep(0.1)
        assert len(receiver_groups(receiver, "firing")) == 1
        assert len(receiver_groups(receiver, "resolved")) == 1
    finally:
        manager.kill()
        manager.wait()


def receiver_groups(receiver, status: str) -> list[dict]:
    return [each for each in receiver.heard if each.get("status") == status]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[alert]]\nname = 'a'\nfinding = 'input-bond'\nabove = 0.2", "alerts.toml:3: alert 'a'"),
        (
            "[[alert]]\nname = 'a'\nrun = 'failed'\nnotify = ['command:/no/such/program']",
            "cannot run '/no/such/program'",
        ),
        ("[[alert", "alerts.toml:1"),
    ],
)
def test_wrong_rules_are_refused_before_the_command_starts(fullbore, text, said):
    file = rules(fullbore, text)
    done = fullbore.run("touch", "started", flags=["--rules", file])
    assert done.code == 2 and said in done.stderr and "hint:" in done.stderr
    assert not (fullbore.directory / "started").exists()


def test_the_defaults_are_a_file_to_start_from(fullbore):
    printed = fullbore.call("alerts", "--defaults")
    file = rules(fullbore, printed.stdout.decode())
    run = fullbore.run("true")
    tried = fullbore.call("alerts", "test", file, run.run_file)
    assert tried.code == 0 and b"none of" in tried.stdout, tried.stderr
    mistaken = fullbore.call("alerts", "test", file, "no-such-run")
    assert mistaken.code == 2 and "no run" in mistaken.stderr
