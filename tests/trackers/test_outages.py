"""A tracker that is down, slow or refuses disturbs no run, and gets what it missed when it is back."""

from __future__ import annotations

import pathlib
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from tracker_servers import wait_for  # noqa: E402

from scripts.ports import free_port  # noqa: E402

STEPS = 400  # of at least 20 ms


@pytest.mark.long
def test_what_a_collector_missed_arrives_when_it_is_back(fullbore, training, searched, collector):
    collector.status = 503
    flags = ["--log", f"otlp:{collector.url}"]
    run, _ = fullbore.start(sys.executable, training, str(2 * STEPS), flags=flags, env=searched)
    time.sleep(10)
    collector.status = 200
    _, said = run.communicate(timeout=120)
    assert run.returncode == 0
    wait_for(lambda: collector.points("fullbore.steps")[-1:] and True, "all is there")
    wait_for(lambda: True if last_step(collector) == 2 * STEPS else None, "the last step")
    moments = [int(point["timeUnixNano"]) for point in collector.points("fullbore.steps")]
    assert moments == sorted(set(moments)), "each once, in order"
    assert max(b - a for a, b in zip(moments, moments[1:], strict=False)) <= 2_500_000_000, "without a gap"
    assert said.count(b"takes nothing now") == 1 and said.count(b"has got what it missed") == 1


def last_step(collector) -> float:
    return collector.points("fullbore.steps")[-1]["asDouble"]


@pytest.mark.long
def test_one_that_is_down_is_said_once_and_the_run_goes_on(fullbore, training, searched):
    flags = ["--log", f"otlp:http://127.0.0.1:{free_port()}"]
    ended = fullbore.run(sys.executable, training, str(STEPS), flags=flags, env=searched)
    assert ended.code == 0 and ended.stdout == b"trained\n"
    assert ended.stderr.count("takes nothing now") == 1
    assert ended.stderr.count("has not taken all yet") == 1


@pytest.mark.long
def test_one_that_refuses_is_asked_no_more(fullbore, training, searched, collector):
    collector.status = 403
    flags = ["--log", f"otlp:{collector.url}"]
    ended = fullbore.run(sys.executable, training, str(STEPS), flags=flags, env=searched)
    assert ended.code == 0 and ended.stdout == b"trained\n"
    assert ended.stderr.count("refuses what it is sent") == 1 and "status 403" in ended.stderr
    assert "started again" not in ended.stderr and "has not taken all" not in ended.stderr


@pytest.mark.long
def test_a_slow_one_keeps_nobody_waiting(fullbore, training, searched, collector):
    collector.pause_s = 6
    flags = ["--log", f"otlp:{collector.url}"]
    ended = fullbore.run(sys.executable, training, str(STEPS), flags=flags, env=searched)
    assert ended.code == 0 and ended.stdout == b"trained\n"
    wait_for(lambda: True if last_step(collector) == STEPS else None, "the last step")


@pytest.mark.long
def test_the_process_of_the_training_is_the_same_with_a_tracker(fullbore, searched, tmp_path):
    """What `--log` adds runs elsewhere: environment, threads and modules are those of a run without."""
    script = fullbore.script(
        "look.py",
        "import os, sys\nimport fullbore\n"
        "for _ in fullbore.watch(range(5)):\n    fullbore.step()\n"
        "environment = {n: '' if n.startswith('FULLBORE_') else v for n, v in os.environ.items()}\n"
        "print(environment, sorted(sys.modules), len(os.listdir('/proc/self/task')))\n",
    )
    plain = fullbore.run(sys.executable, script, env=searched)
    logged = fullbore.run(sys.executable, script, flags=["--log", "tensorboard:boards"], env=searched)
    assert plain.code == logged.code == 0
    assert logged.stdout == plain.stdout


def test_a_tracker_that_is_not_known_is_said_before_the_command_starts(fullbore):
    ended = fullbore.run("touch", "started", flags=["--log", "comet"])
    assert ended.code == 2 and "tensorboard:DIR" in ended.stderr
    assert not (fullbore.directory / "started").exists()
