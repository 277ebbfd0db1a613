"""An agent on each of two hosts, and a Prometheus on a third with the shipped configuration and rules: who says what,
while one of the hosts goes away and comes back."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator

import pytest
from agents import Agent, Jobs, end, start_agent
from hosts import Host, hosts, ip, why_not
from prometheus import Store, scrape_configuration

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(why_not() != "", reason=why_not()),
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs Debian's package prometheus"),
]

PORT = 9400
GET = "import sys, urllib.request; sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1], timeout=20).read())"
# A job that was given the first device and uses none, beside the agent. `ip netns exec` has taken the groups away.
WITH_JOB = """
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    (echo 0 > "/sys/fs/cgroup/$0/cgroup.procs"; SLURM_JOB_GPUS=0 exec sleep 600) &
    "$@"  # without exec: somebody has to take in who has ended
"""
IDLE = {"waves": {"utilization": [0, 0, 1], "sm_active": [0, 0, 1], "memory_used": [0, 0, 1]}}


class StoreOfHost(Store):
    """It answers on a network that this machine is no part of."""

    def __init__(self, host: Host) -> None:
        super().__init__(9090)
        self.host = host

    def ask(self, path: str, **query: str):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        command = ["ip", "netns", "exec", self.host.space, sys.executable, "-c", GET, url]
        done = subprocess.run(command, capture_output=True, timeout=60)
        if done.returncode != 0:
            raise OSError(done.stderr.decode())
        return json.loads(done.stdout)["data"]


class Node:
    """A host with an agent and a job that holds its device without a process."""

    def __init__(self, host: Host, job: str, jobs: Jobs, directory: pathlib.Path, token: pathlib.Path) -> None:
        self.host, self.job, self.jobs, self.token = host, job, jobs, token
        self.directory = directory / host.name
        self.directory.mkdir()
        self.instance = f"{host.address}:{PORT}"
        self.agent: Agent | None = None

    def group(self) -> pathlib.Path:
        return self.jobs.scope / f"job_{self.job}" / "step_0" / "user" / "task_0"

    def start(self) -> None:
        self.group().mkdir(parents=True, exist_ok=True)
        within = self.group().relative_to(self.jobs.scope.parents[1])
        prefix = [*self.host.prefix(), "sh", "-c", WITH_JOB, str(within)]
        listen = f"{self.host.address}:{PORT}"
        self.agent = start_agent(
            self.directory, {"gpus": [IDLE]}, "--token-file", self.token, listen=listen, prefix=prefix
        )

    def end_job(self) -> None:
        (self.jobs.scope / f"job_{self.job}" / "cgroup.kill").write_text("1")

    def end(self) -> None:
        if self.agent:
            end(self.agent.process)  # and all that runs on the host, with its namespace


def hurried(rules: str) -> str:
    """The shipped rules, with seconds where they wait for minutes."""
    return re.sub(r"for: \d+[mh]", "for: 2s", rules).replace("> 900", "> 5").replace("[1d]", "[1m]")


@pytest.fixture
def nodes(jobs, tmp_path) -> Iterator[tuple[Node, Node, StoreOfHost]]:
    with hosts("left", "right", "monitor") as (left, right, monitor):
        token = tmp_path / "token"
        token.write_text("a-token-for-the-tests\n")
        token.chmod(0o600)
        both = Node(left, "71", jobs, tmp_path, token), Node(right, "72", jobs, tmp_path, token)
        config = scrape_configuration([node.instance for node in both], tmp_path, hurried, token)
        command = [*monitor.prefix(), "prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/data"]
        with (tmp_path / "log").open("w") as log:
            process = subprocess.Popen([*command, "--web.listen-address=127.0.0.1:9090"], stderr=log)
        try:
            for node in both:
                node.start()
            yield *both, StoreOfHost(monitor)
        finally:
            end(process)
            for node in both:
                node.end()


def firing(store: Store, alert: str) -> set[str]:
    """The instances of which it does."""
    alerts = store.ask("alerts")["alerts"]
    return {
        each["labels"]["instance"]
        for each in alerts
        if each["labels"]["alertname"] == alert and each["state"] == "firing"
    }


def test_each_hosts_alerts_are_its_own_while_one_goes_away_and_comes_back(nodes):
    left, right, store = nodes
    store.wait_for("count(up == 1) == 2")
    for node in (left, right):
        # The job of the one is not the other's, though both have the same numbers of processes.
        held = store.wait_for(f'fullbore_gpu_holder_processes{{instance="{node.instance}"}}')
        assert [each["metric"]["job_id"] for each in held] == [node.job]
        (info,) = store.query(f'fullbore_node_info{{instance="{node.instance}"}}')
        assert info["metric"]["hostname"] == node.host.name
    both = {left.instance, right.instance}
    store.until(lambda: firing(store, "FullboreGpuHeldWithoutProcess") == both)
    assert firing(store, "FullboreAgentDown") == set()

    left.end()
    ip("-n", left.host.space, "link", "set", "eth0", "down")
    store.until(lambda: firing(store, "FullboreAgentDown") == {left.instance})
    store.until(lambda: firing(store, "FullboreGpuHeldWithoutProcess") == {right.instance})
    assert not store.query(f'fullbore_gpu_holders{{instance="{left.instance}"}}'), "what is not known is not shown"

    right.end_job()
    store.until(lambda: firing(store, "FullboreGpuHeldWithoutProcess") == set())
    assert firing(store, "FullboreAgentDown") == {left.instance}

    ip("-n", left.host.space, "link", "set", "eth0", "up")
    left.start()
    store.until(lambda: firing(store, "FullboreAgentDown") == set())
    store.until(lambda: firing(store, "FullboreGpuHeldWithoutProcess") == {left.instance})
