"""What the callbacks put into the loggers of Lightning and Transformers."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

LIGHTNING = """
import time
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, Dataset
from fullbore.integrations.lightning import FullboreCallback

class Slow(Dataset):
    def __len__(self):
        return 1200
    def __getitem__(self, number):
        time.sleep(0.003)
        return torch.randn(16)

class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 1)
    def training_step(self, batch, index):
        return self.layer(batch).square().mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

logger = CSVLogger("logs", version="")
quiet = dict(enable_progress_bar=False, enable_checkpointing=False, enable_model_summary=False)
trainer = Trainer(max_epochs=1, accelerator="cpu", logger=logger, callbacks=[FullboreCallback(every_s=1)], **quiet)
trainer.fit(Model(), DataLoader(Slow(), batch_size=4))
"""
TRANSFORMERS = """
import json, time
import torch
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments
from fullbore.integrations.transformers import FullboreCallback

class Slow(Dataset):
    def __len__(self):
        return 1200
    def __getitem__(self, number):
        time.sleep(0.003)
        return {"x": torch.randn(16), "labels": torch.zeros(1)}

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 1)
    def forward(self, x, labels):
        return {"loss": (self.layer(x) - labels).square().mean()}

arguments = TrainingArguments("out", max_steps=300, per_device_train_batch_size=4, use_cpu=True, report_to=[],
                              save_strategy="no", logging_steps=50, disable_tqdm=True)
trainer = Trainer(Model(), arguments, train_dataset=Slow())
trainer.add_callback(FullboreCallback(trainer, every_s=1))
trainer.train()
print("history:", json.dumps(trainer.state.log_history))
"""


def logged_by_lightning(tmp_path) -> list[dict[str, str]]:
    (file,) = (tmp_path / "logs").rglob("metrics.csv")
    return [row for row in csv.DictReader(file.open()) if row.get("fullbore/data_wait")]


def test_lightning_logs_shares_and_verdict(fullbore, package_environment, tmp_path):
    pytest.importorskip("lightning")
    done = fullbore.run(sys.executable, fullbore.script("train.py", LIGHTNING), env=package_environment)
    assert done.code == 0, done.stderr
    rows = logged_by_lightning(tmp_path)
    assert len(rows) > 1, "while it ran, and at its end"
    assert float(rows[-1]["fullbore/data_wait"]) > 0.25 and float(rows[-1]["fullbore/samples_per_s"]) > 10
    assert any(key.startswith("fullbore/verdict/") and value for key, value in rows[-1].items())
    (words,) = (tmp_path / "logs").rglob("hparams.yaml")
    assert re.search("fullbore/verdict: .{10}", words.read_text())


def test_transformers_logs_shares_and_verdict(fullbore, package_environment):
    pytest.importorskip("transformers")
    done = fullbore.run(sys.executable, fullbore.script("train.py", TRANSFORMERS), env=package_environment)
    assert done.code == 0, done.stderr
    history = json.loads(done.stdout.decode().partition("history: ")[2].splitlines()[0])
    rows = [row for row in history if "fullbore/data_wait" in row]
    assert len(rows) > 1 and rows[-1]["step"] == 300
    # What is due at that step is logged, too: for the loss all ranks meet, and the others would wait.
    assert [row["step"] for row in history if "loss" in row] == [50, 100, 150, 200, 250, 300]
    assert rows[-1]["fullbore/data_wait"] > 0.25 and len(rows[-1]["fullbore/verdict"]) > 10
    assert any(key.startswith("fullbore/verdict/") for key in rows[-1])


@pytest.mark.parametrize("program, needs", [(LIGHTNING, "lightning"), (TRANSFORMERS, "transformers")])
def test_without_fullbore_run_nothing_happens(fullbore, package_environment, tmp_path, program, needs):
    pytest.importorskip(needs)
    path = fullbore.script("train.py", program.replace("1200", "40").replace("max_steps=300", "max_steps=10"))
    environment = fullbore.environment(package_environment)
    done = subprocess.run([sys.executable, path], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "fullbore/" not in done.stdout
    assert not [file for file in tmp_path.rglob("metrics.csv") if "fullbore" in file.read_text()]
