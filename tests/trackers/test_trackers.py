"""`fullbore run --log` and `fullbore export --to`, with the real trackers at the other end."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import urllib.parse

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from tracker_servers import ask, served  # noqa: E402

from scripts.ports import free_port  # noqa: E402

STEPS = 300  # of at least 20 ms


@pytest.fixture
def recorded(fullbore, training, searched):
    ended = fullbore.run(sys.executable, training, str(STEPS), env=searched)
    assert ended.code == 0, ended.stderr
    return ended.run_file


@pytest.mark.long
def test_mlflow_has_the_run_that_the_script_opened(fullbore, training, searched, tracker_python, mlflow):
    opened = f"import mlflow\nmlflow.set_tracking_uri({mlflow.uri!r})\nmlflow.start_run(run_name='mine')\n"
    script = fullbore.script("own.py", opened + training.read_text())
    with mlflow.serve():
        ended = fullbore.run(tracker_python, script, str(STEPS), flags=["--log", "mlflow"], env=searched)
        assert ended.code == 0 and b"trained" in ended.stdout, ended.stderr
        (run,) = mlflow.runs()
        assert run["info"]["run_name"] == "mine"
        steps = mlflow.history(run, "fullbore/step_s")
        assert len(steps) >= 3 and steps[-1]["step"] == STEPS
        assert all(0.02 <= each["value"] < 1 for each in steps)
        assert len(mlflow.history(run, "system/system_memory_usage_percentage")) >= 3
        tags = {tag["key"]: tag["value"] for tag in run["data"]["tags"]}
        assert tags["fullbore.run_id"] == ended.run_file.stem


@pytest.mark.long
def test_mlflow_gets_a_run_of_our_own_and_gets_it_once(fullbore, recorded, mlflow):
    with mlflow.serve():
        for _ in range(2):
            said = fullbore.call("export", recorded, "--to", f"mlflow:{mlflow.uri}")
            assert said.code == 0, said.stderr
        (run,) = mlflow.runs()
        assert run["info"]["run_name"] == recorded.stem and run["info"]["status"] == "FINISHED"
        waits = mlflow.history(run, "fullbore/samples_per_s")
        assert len({each["timestamp"] for each in waits}) == len(waits) >= 3
        tags = {tag["key"]: tag["value"] for tag in run["data"]["tags"]}
        assert tags["fullbore.finding"] == fullbore.explain(recorded)["findings"][0]["id"]


@pytest.mark.long
def test_tensorboard_lists_what_was_written(fullbore, training, searched, tracker_python, tmp_path):
    ended = fullbore.run(sys.executable, training, str(STEPS), flags=["--log", "tensorboard:boards"], env=searched)
    port, run = free_port(), ended.run_file.stem
    url = f"http://127.0.0.1:{port}/data"
    command = [tracker_python, "-m", "tensorboard.main", "--logdir", tmp_path / "boards", "--port", port]
    with served([*command, "--load_fast=false"], f"{url}/environment", tmp_path / "tensorboard.log"):
        tags = ask(f"{url}/plugin/scalars/tags")[run]
        assert {"fullbore/step_s", "fullbore/samples_per_s", "fullbore/data_wait"} <= tags.keys()
        query = urllib.parse.urlencode({"run": run, "tag": "fullbore/step_s"})
        points = ask(f"{url}/plugin/scalars/scalars?{query}")
        assert len(points) >= 3 and points[-1][1] == STEPS
        layout = ask(f"{url}/plugin/custom_scalars/layout")
        assert [each["title"] for each in layout["category"]] == ["training", "machine"]
        assert "fullbore/run/text_summary" in ask(f"{url}/plugin/text/tags")[run]


READ_WANDB = """
import json, struct, sys
from wandb.proto import wandb_internal_pb2 as messages

bytes_, at, record = open(sys.argv[1], "rb").read(), 7, b""  # a LevelDB log behind seven bytes
assert bytes_[:4] == b":W&B"
found = {"history": [], "summary": {}, "run": None, "exit": None}
while at + 7 <= len(bytes_):
    if 32768 - at % 32768 < 7:
        at += 32768 - at % 32768
        continue
    length, kind = struct.unpack_from("<HB", bytes_, at + 4)
    record += bytes_[at + 7 : at + 7 + length]
    at += 7 + length
    if kind not in (1, 4):
        continue
    message = messages.Record.FromString(record)
    record = b""
    which = message.WhichOneof("record_type")
    if which == "history":
        items = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in message.history.item}
        found["history"].append(items)
    elif which == "summary":
        found["summary"].update({i.key or "/".join(i.nested_key): i.value_json for i in message.summary.update})
    elif which == "run":
        found["run"] = [message.run.project, message.run.run_id]
    elif which == "exit":
        found["exit"] = message.exit.exit_code
print(json.dumps(found))
"""


@pytest.mark.long
def test_wandb_keeps_the_run_offline(fullbore, training, searched, tracker_python, tmp_path):
    env = {**searched, "WANDB_MODE": "offline"}
    ended = fullbore.run(tracker_python, training, str(STEPS), flags=["--log", "wandb:mine"], env=env)
    assert ended.code == 0 and "Biases" not in ended.stderr
    (kept,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    read = subprocess.run([tracker_python, "-c", READ_WANDB, kept], capture_output=True, text=True, check=True)
    found = json.loads(read.stdout)
    assert found["run"] == ["mine", ended.run_file.stem] and found["exit"] == 0
    steps = [each["fullbore/step"] for each in found["history"]]
    assert steps == sorted(steps) and steps[-1] == STEPS and len(steps) >= 3
    assert all(each["fullbore/step_s"] >= 0.02 for each in found["history"] if "fullbore/step_s" in each)


def test_wandb_that_is_not_installed_is_said(fullbore, recorded):
    said = fullbore.call("export", recorded, "--to", "wandb")
    assert said.code == 1 and "has no wandb" in said.stderr and "pip install wandb" in said.stderr


READ_OTLP = """
import sys
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

for line in sys.stdin:
    request = json_format.Parse(line, ExportMetricsServiceRequest())
    (resource,) = request.resource_metrics
    print(*(each.key for each in resource.resource.attributes))
    print(sum(len(metric.gauge.data_points) for metric in resource.scope_metrics[0].metrics))
"""


@pytest.mark.long
def test_a_collector_gets_requests_that_opentelemetry_reads(fullbore, recorded, collector, tracker_python):
    env = {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20secret"}
    said = fullbore.call("export", recorded, "--to", f"otlp:{collector.url}", env=env)
    assert said.code == 0, said.stderr
    lines = b"\n".join(collector.bodies)
    read = subprocess.run([tracker_python, "-c", READ_OTLP], input=lines, capture_output=True, check=True)
    attributes, points, *_ = read.stdout.decode().splitlines()
    assert {"service.name", "fullbore.run", "host.name"} <= set(attributes.split())
    assert int(points) > 20
    path, headers = collector.headers[0]
    assert path == "/v1/metrics" and headers["api-key"] == "a secret" and "secret" not in said.stderr
    assert [point["asDouble"] for point in collector.points("fullbore.steps")][-1] == STEPS
