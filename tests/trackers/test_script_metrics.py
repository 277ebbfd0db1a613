"""What a script gives to MLflow, W&B and TensorBoard itself is taken along from the real ones."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import pytest

STEPS = 40

LOOP = """
import sys, time
import fullbore
{before}
for i in range({steps}):
    fullbore.step()
    {body}
    time.sleep(0.05)
{after}
print("trained")
"""


def script(fullbore: Any, before: str, body: str, after: str = "") -> pathlib.Path:
    return fullbore.script("own.py", LOOP.format(steps=STEPS, before=before, body=body, after=after))


def metrics(fullbore: Any, ended: Any) -> dict[str, Any]:
    assert ended.code == 0 and b"trained" in ended.stdout, ended.stderr
    return {metric["name"]: metric for metric in fullbore.explain(ended.run_file).get("logged", [])}


@pytest.mark.long
def test_mlflows_metrics_are_taken_and_not_sent_back(fullbore, searched, tracker_python, mlflow):
    before = f"import mlflow\nmlflow.set_tracking_uri({mlflow.uri!r})\nmlflow.start_run()"
    body = "mlflow.log_metric('loss', 1 / (i + 1), step=i); mlflow.log_metrics({'lr': 0.5, 'epoch': 1.0}, step=i)"
    path = script(fullbore, before, body + "; print(f'f1={i / 7:.3f}')")
    with mlflow.serve():
        ended = fullbore.run(tracker_python, path, flags=["--log", "mlflow"], env=searched)
        found = metrics(fullbore, ended)
        assert set(found) == {"loss", "lr", "f1"} and found["loss"]["loggers"] == ["mlflow"]
        assert found["loss"]["last"] == 1 / STEPS and found["loss"]["last_step"] == STEPS - 1
        (run,) = mlflow.runs()
        assert len(mlflow.history(run, "loss")) == STEPS, "the script's own"
        assert mlflow.history(run, "logged/f1") and not mlflow.history(run, "logged/loss")


@pytest.mark.long
def test_wandbs_metrics_are_taken(fullbore, searched, tracker_python):
    before = "import wandb, numpy\nrun = wandb.init(project='mine')"
    body = "wandb.log({'loss': numpy.float32(2.5), 'train': {'acc': i / 10}, 'text': 'x'})"
    path = script(fullbore, before, body, "run.log({'eval_loss': 0.25}); run.finish()")
    ended = fullbore.run(tracker_python, path, env={**searched, "WANDB_MODE": "offline", "WANDB_SILENT": "true"})
    found = metrics(fullbore, ended)
    assert set(found) == {"loss", "train.acc", "eval_loss"}
    assert found["loss"]["last"] == 2.5 and found["eval_loss"]["values"] == 1
    assert found["train.acc"]["last"] == (STEPS - 1) / 10 and found["loss"]["loggers"] == ["wandb"]


@pytest.mark.long
def test_torchs_writer_for_tensorboard_has_read_what_was_on_a_device(fullbore, searched, tracker_python):
    pytest.importorskip("torch")
    site = next(pathlib.Path(tracker_python).parents[1].glob("lib/python3*/site-packages"))
    before = f"import torch\nsys.path.append({str(site)!r})\nfrom torch.utils.tensorboard import SummaryWriter\n"
    before += "writer = SummaryWriter('board')"
    body = "writer.add_scalar('loss', torch.tensor([2.5], requires_grad=True), i)"
    body += "; writer.add_scalar('new', 3.5, i, new_style=True); writer.add_scalars('both', {'a': 1.0, 'b': 2.0}, i)"
    found = metrics(fullbore, fullbore.run(sys.executable, script(fullbore, before, body), env=searched))
    assert {name: metric["last"] for name, metric in found.items() if "both" not in name} == {"loss": 2.5, "new": 3.5}
    assert sorted(metric["last"] for name, metric in found.items() if "both" in name) == [1.0, 2.0]
