"""Unmodified programs such as users write, with common frameworks: what is recorded is what they did."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from run_file import ranks  # noqa: E402

SYSTEM_PYTHON = "/usr/bin/python3"

LIGHTNING = """
import lightning, torch
from torch.utils.data import DataLoader, TensorDataset

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    def training_step(self, batch, index):
        x, y = batch
        return torch.nn.functional.cross_entropy(self.net(x), y)
    def validation_step(self, batch, index):
        x, y = batch
        self.log("loss", torch.nn.functional.cross_entropy(self.net(x), y))
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())

data = TensorDataset(torch.randn(330, 16), torch.randint(0, 2, (330,)))
trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Module(), DataLoader(data, batch_size=8, shuffle=True, num_workers=2, persistent_workers=True),
            DataLoader(data, batch_size=50))
print("steps", trainer.global_step, "samples", 2 * len(data))
"""

HF_TRAINER = """
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.manual_seed(0)
config = BertConfig(vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
                    max_position_embeddings=32)

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 330
    def __getitem__(self, i):
        return {"input_ids": torch.randint(0, 64, (12,)), "attention_mask": torch.ones(12, dtype=torch.long),
                "labels": torch.tensor(i % 2)}

arguments = TrainingArguments("out", num_train_epochs=2, per_device_train_batch_size=8, report_to=[], use_cpu=True,
                              save_strategy="no", logging_strategy="no", disable_tqdm=True, dataloader_num_workers=1)
trainer = Trainer(BertForSequenceClassification(config), arguments, train_dataset=Data())
trainer.train()
print("steps", trainer.state.global_step, "samples", 2 * 330)
"""

ACCELERATE = """
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = torch.nn.Linear(16, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = TensorDataset(torch.randn(320, 16), torch.randint(0, 2, (320,)))
model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=8, shuffle=True))
steps = 0
for epoch in range(3):
    for x, y in loader:
        with accelerator.accumulate(model):
            accelerator.backward(torch.nn.functional.cross_entropy(model(x), y))
            optimizer.step()
            optimizer.zero_grad()
            steps += accelerator.sync_gradients
print("steps", int(steps), "samples", 3 * len(data))
"""

DISTRIBUTED = """
import os, sys, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
data = TensorDataset(torch.randn(800, 16), torch.randint(0, 2, (800,)))
loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
model = DistributedDataParallel(torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
steps = samples = 0
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        steps += 1
        samples += len(x)
if dist.get_rank() == 0:
    print("steps", steps, "samples", samples)
dist.barrier()
dist.destroy_process_group()
sys.stdout.flush()
os._exit(0)  # torch 2.13's gloo threads sometimes abort a regular exit, also without fullbore: 2 of 6 runs here
"""

TORCHVISION = """
import os, numpy, torch, torchvision
from PIL import Image
from torch.utils.data import DataLoader
from torchvision import transforms

numpy.random.seed(0)
for kind in ("cat", "dog"):
    os.makedirs(f"photos/{kind}", exist_ok=True)
    for i in range(60):
        Image.fromarray(numpy.random.randint(0, 255, (48, 48, 3), dtype="uint8")).save(f"photos/{kind}/{i}.jpg")
folder = torchvision.datasets.ImageFolder("photos", transforms.Compose([transforms.Resize(32), transforms.ToTensor()]))
loader = DataLoader(folder, batch_size=8, shuffle=True, num_workers=2)
model = torchvision.models.squeezenet1_1(num_classes=2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
steps = samples = 0
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        steps += 1
        samples += len(x)
print("steps", steps, "samples", samples)
"""


def check(fullbore, command: list[str], count: int = 1) -> list[dict]:
    """Runs a program with and without us: its own counts are the truth. Returns what was recorded, by rank."""
    environment = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    plain = subprocess.run(
        command, env=fullbore.environment(environment), cwd=fullbore.directory, capture_output=True, timeout=180
    )
    assert plain.returncode == 0, plain.stderr.decode()
    done = fullbore.run(*command, env=environment)
    assert done.code == 0, done.stderr
    assert without_times(done.stdout) == without_times(plain.stdout), "the output differs from that without us"
    steps, samples = map(int, re.search(rb"steps (\d+) samples (\d+)", done.stdout).groups())
    recorded = ranks(done.run_file)
    assert [(r["rank"], r["steps"], r["samples"]) for r in recorded] == [(n, steps, samples) for n in range(count)]
    assert [rank["rank"] for rank in done.report["ranks"]] == list(range(count))
    assert done.report["findings"], "a verdict"
    assert done.report["messages"] == []
    return recorded


def training_loader(rank: dict) -> dict:
    (loader,) = [loader for loader in rank["loaders"] if loader["feeds_training"]]
    return loader


def without_times(output: bytes) -> bytes:
    """Frameworks print how long things took, and numbers derived from that."""
    return re.sub(rb"[\d.]+(e-?\d+)?", b"N", re.sub(rb"(?m)^\{'train_runtime'.*$", b"", output)).strip()


@pytest.fixture
def needs():
    def skip_without(module: str) -> None:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed here")

    return skip_without


def test_lightning_fit(fullbore, torch_python, needs):
    needs("lightning")
    (rank,) = check(fullbore, [torch_python, str(fullbore.script("fit.py", LIGHTNING))])
    loader = training_loader(rank)
    assert (loader["batch_size"], loader["num_workers"], loader["persistent_workers"]) == (8, 2, True)
    assert loader["dataset"] == "TensorDataset"
    assert len(rank["loaders"]) == 2, "the validation loader is not recorded separately"


def test_hf_trainer(fullbore, torch_python, needs):
    needs("transformers")
    needs("accelerate")
    (rank,) = check(fullbore, [torch_python, str(fullbore.script("finetune.py", HF_TRAINER))])
    loader = training_loader(rank)
    assert (loader["batch_size"], loader["num_workers"]) == (8, 1)
    assert loader["dataset"] == "Data"
    assert "BertForSequenceClassification" in rank["facts"]["model"]


def test_accelerate_with_gradient_accumulation(fullbore, torch_python, needs):
    needs("accelerate")
    (rank,) = check(fullbore, [torch_python, str(fullbore.script("train.py", ACCELERATE))])
    assert training_loader(rank)["num_workers"] == 0


def test_torchrun_with_two_processes(fullbore, torch_python):
    script = fullbore.script("ddp.py", DISTRIBUTED)
    command = [torch_python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    recorded = check(fullbore, command, count=2)
    assert [rank["facts"]["world_size"] for rank in recorded] == ["2", "2"]
    assert [training_loader(rank)["batch_size"] for rank in recorded] == [8, 8]


def test_the_distributions_torch_with_torchvision(fullbore):
    if not os.access(SYSTEM_PYTHON, os.X_OK):
        pytest.skip(f"no {SYSTEM_PYTHON} here")
    probe = subprocess.run([SYSTEM_PYTHON, "-c", "import torch, torchvision"], capture_output=True)
    if probe.returncode:
        pytest.skip(f"{SYSTEM_PYTHON} has no torch and torchvision: apt-get install python3-torchvision")
    (rank,) = check(fullbore, [SYSTEM_PYTHON, str(fullbore.script("photos.py", TORCHVISION))])
    loader = training_loader(rank)
    assert (loader["dataset"], loader["num_workers"], loader["batch_size"]) == ("ImageFolder", 2, 8)
