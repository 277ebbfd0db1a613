"""Settings reach the programs of frameworks, unmodified: every rank, and whatever builds on DataLoader."""

from __future__ import annotations

import importlib.util
import json

import pytest
from channel_reader import Channel
from test_distributed import two_ranks
from test_settings import PARTS, outcomes_of, run_cases

RANKS = """
    import json, os
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, TensorDataset
    from torch.utils.data.distributed import DistributedSampler

    meet = os.environ.get("MEET")
    where = {"init_method": meet, "rank": int(os.environ["RANK"]), "world_size": 2} if meet else {}
    dist.init_process_group("gloo", **where)
    model = DistributedDataParallel(torch.nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(40, 6))
    for x, in DataLoader(data, batch_size=4, sampler=DistributedSampler(data)):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)
"""
LIGHTNING = """
import lightning
class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 1)
    def training_step(self, batch, index):
        return self.net(batch[0]).square().mean()
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Module(), DataLoader(data, 4, shuffle=True))
print(json.dumps({"steps": trainer.global_step}))
"""
HF_TRAINER = """
import warnings
warnings.simplefilter("ignore")
import transformers
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 1)
    def forward(self, x, labels=None):
        return {"loss": self.net(x).square().mean()}
rows = [{"x": row[0], "labels": torch.zeros(1)} for row in data]
arguments = transformers.TrainingArguments("out", per_device_train_batch_size=4, num_train_epochs=1, report_to=[],
                                           save_strategy="no", disable_tqdm=True, use_cpu=True, logging_steps=1000)
trainer = transformers.Trainer(Model(), arguments, train_dataset=rows)
trainer.log = lambda *_, **__: None
trainer.train()
print(json.dumps({"steps": trainer.state.global_step}))
"""
ACCELERATE = """
import accelerate
accelerator = accelerate.Accelerator(cpu=True)
model = nn.Linear(4, 1)
model, optimizer, loader = accelerator.prepare(model, torch.optim.Adam(model.parameters()), DataLoader(data, 4))
for x, in loader:
    optimizer.zero_grad()
    accelerator.backward(model(x).square().mean())
    optimizer.step()
print(json.dumps({"steps": len(loader)}))
"""
PROGRAMS = {"lightning": LIGHTNING, "transformers": HF_TRAINER, "accelerate": ACCELERATE}


@pytest.mark.long
def test_every_rank_gets_the_settings(newest):
    wanted = {"batch_size": 10, "num_workers": 1, "bucket_cap_mb": 2, "static_graph": True, "precision": "bf16"}
    env = {"FULLBORE_SETTINGS": json.dumps(wanted)}
    result, directory = newest.start(two_ranks(newest, newest.script(RANKS)), env)
    assert result.returncode == 0, result.stderr
    ranks = sorted((p for p in Channel(directory).trainers if p.steps), key=lambda p: p.rank)
    assert [p.rank for p in ranks] == [0, 1]
    for process in ranks:
        assert outcomes_of(process) == dict.fromkeys(wanted, "applied")
        assert len(process.steps) == 2


@pytest.mark.long
def test_programs_of_frameworks_get_the_settings(newest):
    present = {name: text for name, text in PROGRAMS.items() if newest.has(name)}
    if not present:
        pytest.skip(f"none of these frameworks in {newest.python}")
    wanted = {"batch_size": 8, "num_workers": 1, "optimizer": "foreach", "precision": "bf16"}
    found = run_cases(newest, PARTS, {name: (text, wanted) for name, text in present.items()}, wanted)
    for name in present:
        process, [printed] = found[name]
        assert outcomes_of(process) == dict.fromkeys(wanted, "applied"), name
        assert len(process.steps) == printed["steps"] == 5, name


KERAS = """
import json
import numpy, keras
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
class Count(keras.callbacks.Callback):
    steps = 0
    def on_train_batch_end(self, batch, logs=None):
        Count.steps += 1
class Rows(keras.utils.PyDataset):
    def __len__(self):
        return 3
    def __getitem__(self, index):
        return numpy.zeros((5, 4)), numpy.zeros((5, 1))
given = (Rows(),) if GIVEN else (numpy.zeros((40, 4)), numpy.zeros((40, 1)))
model.fit(*given, callbacks=[Count()], verbose=0, **({} if GIVEN else {"batch_size": 4}))
print(json.dumps(Count.steps))
"""


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="no Keras here")
@pytest.mark.parametrize(
    ("given", "outcome", "steps"), [("", "applied", 4), ("Rows", "refused: a Rows makes the batches", 3)]
)
def test_keras_fit_gets_its_batch_size(bare, given, outcome, steps):
    backend = next(name for name in ("torch", "jax", "tensorflow") if importlib.util.find_spec(name))
    env = {"KERAS_BACKEND": backend, "FULLBORE_SETTINGS": '{"batch_size": 10, "num_workers": 2}'}
    channel, output = bare.run(f"GIVEN = {given!r}\n" + KERAS, env=env)
    (process,) = channel.trainers
    assert outcomes_of(process) == {"batch_size": outcome}
    assert int(output) == len(process.steps) == steps
