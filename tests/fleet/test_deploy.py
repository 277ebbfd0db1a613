"""What deploy/ ships is what the agent says: rules fire and resolve, a real Prometheus and a real VictoriaMetrics
scrape a real agent, and every query of the dashboard is one of theirs."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
import urllib.error
from collections.abc import Iterator

import pytest
import yaml
from agents import Agent, end, sleepers
from ports import free_port
from prometheus import DEPLOY, RULES, Store, scrape_configuration

from tests.conftest import ROOT

DASHBOARD = json.loads((DEPLOY / "grafana" / "fullbore-agent.json").read_text())
HERE = pathlib.Path(__file__).parent
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Debian's package prometheus")


def promtool(*arguments: str | pathlib.Path) -> subprocess.CompletedProcess:
    return subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=120)


def tried(rules: pathlib.Path, directory: pathlib.Path) -> subprocess.CompletedProcess:
    test = directory / "rules_test.yml"
    test.write_text((HERE / "rules_test.yml").read_text().replace("RULES", str(rules)))
    return promtool("test", "rules", test)


@needs_promtool
def test_each_rule_fires_and_resolves(tmp_path):
    done = tried(RULES, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    named = {rule["alert"] for rule in yaml.safe_load(RULES.read_text())["groups"][0]["rules"]}
    tests = yaml.safe_load((HERE / "rules_test.yml").read_text())["tests"]
    fires = {each["alertname"] for test in tests for each in test["alert_rule_test"] if each["exp_alerts"]}
    assert fires == named


@needs_promtool
def test_a_rule_that_does_not_fire_is_noticed(tmp_path):
    dull = tmp_path / "rules.yml"
    dull.write_text(RULES.read_text().replace("> 900", "> 9000"))
    done = tried(dull, tmp_path)
    assert done.returncode != 0 and "FullboreGpuHeldWithoutProcess" in done.stdout + done.stderr


def test_each_rule_says_what_to_do():
    for rule in yaml.safe_load(RULES.read_text())["groups"][0]["rules"]:
        assert rule["labels"]["severity"] in ("critical", "warning", "info"), rule["alert"]
        assert len(rule["annotations"]["description"]) > 60, rule["alert"]


@needs_promtool
def test_the_scrape_configuration_is_one():
    done = promtool("check", "config", "--syntax-only", DEPLOY / "prometheus" / "scrape.yml")
    assert done.returncode == 0, done.stderr
    (config,) = yaml.safe_load((DEPLOY / "prometheus" / "scrape.yml").read_text())["scrape_configs"]
    (of_cluster,) = yaml.safe_load((DEPLOY / "kubernetes" / "scrape.yml").read_text())["scrape_configs"]
    for each in (config, of_cluster):
        assert each["job_name"] == "fullbore-agent" and each["honor_labels"]


@pytest.mark.parametrize("manifest", ["agent.yaml", "job.yaml"])
def test_manifests_are_valid_by_the_published_schemas(manifest):
    validate = pytest.importorskip("kubernetes_validate")
    for document in yaml.safe_load_all((DEPLOY / "kubernetes" / manifest).read_text()):
        validate.validate(document, validate.latest_version(), strict=True)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_the_unit_is_one(tmp_path):
    unit = tmp_path / "fullbore-agent.service"
    unit.write_text((DEPLOY / "fullbore-agent.service").read_text().replace("/usr/bin/fullbore", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def queries() -> list[tuple[str, str]]:
    """Title and expression of every query of the dashboard, its variables filled in as Grafana does."""
    found = []
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"].replace("$__rate_interval", "20s").replace("$__range", "1h")
            expression = expression.replace("$node", ".*").replace("$user", ".*")
            assert "$" not in expression, expression
            found.append((panel["title"], expression))
    return found


# Nothing of this was planted, or the machine has none: there the query must only be one.
MAY_BE_EMPTY = {"Processor and disk waits", "Network", "What they cannot see"}


@pytest.fixture
def busy_agent(agent, jobs) -> Iterator[Agent]:
    """Eight devices and 200 sleeping processes: of jobs that work, idle, are gone, of a user without one, shared."""
    idle = {"waves": {"utilization": [0, 0, 1], "sm_active": [0, 0, 1], "memory_used": [0, 0, 1]}}
    groups = [jobs.start(f"job_{100 + i}", 23) for i in range(6)]
    jobs.start("job_106", 1, gpus="6")
    others = sleepers(200 - sum(len(each) for each in groups) - 1)
    gpus = [{"processes": [{"pid": pid, "sm": 30} for pid in group]} for group in groups]
    gpus[3] |= idle
    gpus[4]["processes"] += [{"pid": each.pid, "sm": 0} for each in others]
    gpus += [idle, {"xid_at": [0, 79]}]
    yield agent({"gpus": gpus})
    for each in others:
        end(each)


def check_dashboard(store: Store) -> None:
    for title, expression in queries():
        try:
            found = store.query(expression)
        except urllib.error.HTTPError as error:
            pytest.fail(f"{title}: {expression}\n{error.read().decode()}")
        assert found or title in MAY_BE_EMPTY, f"{title}: nothing came of {expression}"


def check_samples(store: Store) -> None:
    store.wait_for('fullbore_gpu_holder_processes{job_id="106"} == 0')
    store.wait_for('fullbore_gpu_holder_seconds_total{job_id="106",state="no_process"} > 4')
    store.wait_for('rate(fullbore_gpu_holder_seconds_total{job_id="100",state="busy"}[20s]) > 0')
    assert len(store.query("fullbore_gpu_info")) == 8
    assert sum(float(each["value"][1]) for each in store.query("fullbore_gpu_holder_processes")) == 199
    assert store.query('fullbore_gpu_stray_processes{gpu="4",reason="no_job"}')
    assert not store.query('{__name__=~"exported_.*"}')


@pytest.mark.long
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs Debian's package prometheus")
def test_prometheus_scrapes_an_agent_loads_the_rules_and_answers_the_dashboard(busy_agent, tmp_path):
    port = free_port()
    command = ["prometheus", f"--config.file={scrape_configuration([busy_agent.address], tmp_path, str)}"]
    command += [f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address=127.0.0.1:{port}"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, stderr=log)
    try:
        store = Store(port)
        store.wait_for("up == 1")
        check_samples(store)
        check_dashboard(store)
        (target,) = store.ask("targets")["activeTargets"]
        assert target["lastError"] == "" and target["health"] == "up"
        (group,) = store.ask("rules")["groups"]
        assert len(group["rules"]) == len(yaml.safe_load(RULES.read_text())["groups"][0]["rules"])
        assert all(rule["health"] == "ok" for rule in group["rules"] if rule["lastEvaluation"][:4] != "0001")
    finally:
        end(process)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("victoria-metrics") is None, reason="needs Debian's package victoria-metrics")
def test_victoriametrics_takes_the_same_scrape(busy_agent, tmp_path):
    port = free_port()
    command = ["victoria-metrics", f"-promscrape.config={scrape_configuration([busy_agent.address], tmp_path)}"]
    command += [f"-storageDataPath={tmp_path}/data", f"-httpListenAddr=127.0.0.1:{port}", "-search.latencyOffset=1s"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, stderr=log, stdout=log)
    try:
        store = Store(port)
        store.wait_for("up == 1")
        check_samples(store)
        check_dashboard(store)
    finally:
        end(process)


@pytest.mark.long
def test_what_the_agent_says_is_documented(busy_agent):
    busy_agent.wait_for(lambda a: a.samples("fullbore_cpu_utilization_ratio"))
    types = re.findall(r"^# TYPE (fullbore_\S+) (\w+)", busy_agent.text(), re.MULTILINE)
    said = {name + {"counter": "_total", "info": "_info"}.get(kind, "") for name, kind in types}
    table = (ROOT / "src" / "record" / "metrics.inc").read_text()
    series = {f"fullbore_{name}" for name in re.findall(r'^METRIC\(\w+, "(\w+)"', table, re.MULTILINE)}
    units = r"_(?:ratio|bytes|bytes_per_second|per_second|watts|joules|hertz|celsius|cores)$"
    own = {name for name in said if name not in series and re.sub(units, "", name) not in series}
    documented = set(re.findall(r"`(fullbore_\w+)`", (ROOT / "docs" / "fleet.md").read_text()))
    assert {"fullbore_gpu_holders", "fullbore_agent_sees"} <= own
    assert own <= documented, own - documented


@pytest.mark.long
def test_the_dashboard_names_only_what_the_agent_says(busy_agent):
    busy_agent.wait_for(lambda a: a.samples("fullbore_cpu_utilization_ratio"))  # of two looks, like all rates
    families = set(re.findall(r"^# TYPE (\S+)", busy_agent.text(), re.MULTILINE))
    said = families | {f"{name}_total" for name in families} | {f"{name}_info" for name in families}
    may_lack = {"fullbore_psi_io_some_ratio", "fullbore_gpu_dram_active_ratio"}
    may_lack |= {"fullbore_net_receive_bytes_per_second", "fullbore_net_send_bytes_per_second"}
    for text in [RULES.read_text(), *(expression for _, expression in queries())]:
        named = set(re.findall(r"\bfullbore_[a-z0-9_]+\b|\bprocess_[a-z_]+_(?:total|bytes)\b", text))
        assert named - said <= may_lack, named - said
