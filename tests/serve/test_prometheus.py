"""A real Prometheus scrapes `fullbore serve`, and one of its rules fires."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request

import pytest

from scripts.ports import free_port

CONFIGURATION = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [rules.yml]
scrape_configs:
  - job_name: fullbore
    static_configs: [{{targets: ["{address}"]}}]
"""
RULES = """
groups:
  - name: fullbore
    rules:
      - alert: WaitsForData
        expr: fullbore_share_ratio{share="data_wait"} > 0.5
"""


def ask(port: int, path: str):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
        return json.load(answer)["data"]


def wait_for(what, seconds: float = 90):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if found := what():
                return found
        except OSError:
            pass
        time.sleep(0.3)
    pytest.fail("it did not come")


@pytest.fixture
def prometheus(serving, tmp_path):
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not installed")
    (tmp_path / "prometheus.yml").write_text(CONFIGURATION.format(address=serving.address))
    (tmp_path / "rules.yml").write_text(RULES)
    port = free_port()
    log = (tmp_path / "log").open("w")
    process = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={tmp_path}/prometheus.yml",
            f"--storage.tsdb.path={tmp_path}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stderr=log,
    )
    yield port
    process.kill()
    process.wait()


@pytest.mark.long
def test_prometheus_takes_the_metrics_and_fires_a_rule(prometheus, serving):
    def target():
        targets = ask(prometheus, "/api/v1/targets")["activeTargets"]
        assert all(each["lastError"] == "" for each in targets)
        return any(each["health"] == "up" for each in targets)

    wait_for(target)

    def value(query: str) -> float:
        found = wait_for(lambda: ask(prometheus, "/api/v1/query?query=" + urllib.parse.quote(query))["result"])
        (only,) = found
        return float(only["value"][1])

    live = serving.ask("/api/v1/runs/made-live-0").json
    assert value('fullbore_share_ratio{run="made-live-0",share="data_wait"}') == pytest.approx(0.6)
    assert value('fullbore_step_seconds{run="made-live-0"}') == pytest.approx(0.1)
    assert value('fullbore_gpu_utilization_ratio{run="made-live-0",gpu="0"}') == pytest.approx(0.47)
    assert value('fullbore_samples_per_second{run="made-live-0"}') == pytest.approx(80)
    assert value('fullbore_steps_total{run="made-live-0"}') > 0
    assert value('fullbore_runs{state="ended"}') == 6
    assert live["findings"][0]["id"] == "input-bound"

    def fired():
        alerts = ask(prometheus, "/api/v1/alerts")["alerts"]
        return [each for each in alerts if each["state"] == "firing"]

    (alert,) = wait_for(fired)
    assert alert["labels"]["alertname"] == "WaitsForData"
    assert alert["labels"]["run"] == "made-live-0"


def test_the_metrics_are_of_running_runs_only_and_promtool_agrees(serving):
    answer = serving.ask("/metrics")
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    text = answer.body.decode()
    assert text.endswith("# EOF\n")
    samples = [line for line in text.splitlines() if 'run="' in line]
    assert samples and all('run="made-live-0"' in line for line in samples)
    assert "fullbore_cut_runs{} 0" in text
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    checked = subprocess.run(["promtool", "check", "metrics"], input=answer.body, capture_output=True)
    assert b"parse error" not in checked.stderr.lower() + checked.stdout.lower()
