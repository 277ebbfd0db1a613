"""What a receiver hears that was out of order for a while, and what is heard of a watch that was started again.

A whole minute of it: bench/serve/alerts_endure.py.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
import urllib.request

import pytest
from alert_runs import PATIENCE_S, history, rules, running, wait_until_owed

RULES = '[[alert]]\nname = "used"\nseries = "memory_used"\nabove = 1\nfor = "1s"\nnotify = ["webhook:URL"]'


def wait_until_firing(url: str) -> None:
    """Until serve, at `url`, says that an alert fires."""
    until = time.monotonic() + PATIENCE_S
    while not json.load(urllib.request.urlopen(f"{url}api/v1/alerts", timeout=30))["firing"]:
        assert time.monotonic() < until, "nothing fires"
        time.sleep(0.05)


@pytest.mark.long
@pytest.mark.parametrize("outage", ["answers with an error", "refuses connections"])
def test_a_receiver_that_was_down_hears_of_an_alert_and_of_its_end_once(receiver, fullbore, outage):
    refuses = outage == "refuses connections"
    if refuses:
        receiver.leave()
    receiver.down = not refuses
    process, runs = fullbore.start("sleep", "300", flags=["--rules", rules(fullbore, RULES, receiver.url)])
    run_file = running(runs)
    try:
        wait_until_owed(run_file, "firing")
        time.sleep(4)  # some attempts
        process.send_signal(signal.SIGINT)
        wait_until_owed(run_file, "firing", "resolved")
        assert receiver.heard == []
        assert refuses or receiver.refused >= 2
    finally:  # or who watches would try for an hour
        receiver.down = False
        receiver.come_back()
    receiver.wait_for("used", "resolved")
    wait_until_owed(run_file)  # so nobody tries any more
    assert receiver.states("used") == ["firing", "resolved"]
    assert len({each["id"] for each in receiver.heard}) == 1
    assert len(history(fullbore, run_file)) == 1


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_what_serve_could_not_say_before_a_restart_it_says_once_afterwards(receiver, fullbore, how):
    file = rules(fullbore, RULES, receiver.url)
    receiver.leave()
    process, runs = fullbore.start("sleep", "300")
    run_file = running(runs)
    command = [fullbore.binary, "serve", "--dir", runs, "--listen", "127.0.0.1:0", "--rules", file]
    serving: list[subprocess.Popen] = []

    def end() -> None:
        serving[-1].send_signal(how)
        serving[-1].communicate(timeout=60)

    def start() -> str:
        serving.append(subprocess.Popen(command, stderr=subprocess.PIPE))
        return serving[-1].stderr.readline().decode().split()[2]

    try:
        start()
        wait_until_owed(run_file, "firing")
        fired = history(fullbore, run_file)
        end()
        start()
        time.sleep(3)  # it fires no second one
        end()
        receiver.come_back()
        url = start()
        receiver.wait_for("used", "firing")
        wait_until_owed(run_file)
        shown = json.load(urllib.request.urlopen(f"{url}api/v1/alerts", timeout=30))
        assert [each["fired_unix_ns"] for each in shown["firing"]] == [fired[0]["fired_unix_ns"]]
        end()
        url = start()
        wait_until_firing(url)
        process.send_signal(signal.SIGINT)
        receiver.wait_for("used", "resolved")
        wait_until_owed(run_file)
        assert receiver.states("used") == ["firing", "resolved"]
        assert len({each["id"] for each in receiver.heard}) == 1
        assert len(history(fullbore, run_file)) == 1
    finally:
        serving[-1].kill()
        serving[-1].communicate()
