"""Frameworks that wrap loaders and optimizers: each wait, fetch and step is recorded once."""

from __future__ import annotations

import pytest
from channel_reader import BACKWARD, FETCH, NEXT
from conftest import WARNINGS

LIGHTNING = """
    import lightning as L
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    class Model(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(6, 1)
        def training_step(self, batch, _):
            return self.net(batch[0]).sum()
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    loader = DataLoader(TensorDataset(torch.ones(50, 6)), batch_size=8)
    trainer = L.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Model(), loader)
"""

ACCELERATE = """
    import accelerate
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    accelerator = accelerate.Accelerator(cpu=True)
    model = torch.nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.ones(50, 6)), batch_size=8)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for _ in range(2):
        for x, in loader:
            optimizer.zero_grad()
            accelerator.backward(model(x).sum())
            optimizer.step()
"""


@pytest.mark.long
@pytest.mark.parametrize("framework, script", [("lightning", LIGHTNING), ("accelerate", ACCELERATE)])
def test_what_a_framework_wraps_is_counted_once(newest, framework, script):
    newest.needs(framework)
    if framework == "lightning" and WARNINGS == "error":
        pytest.skip("Lightning itself triggers deprecation warnings of torch")
    channel, _ = newest.run(script)
    trainer = channel.trainer
    assert len(trainer.steps) == 14 and len(trainer.of(BACKWARD)) == 14
    assert [r.a for r in trainer.batches] == [8, 8, 8, 8, 8, 8, 2] * 2
    assert len(trainer.of(FETCH)) == 14 and {r.id for r in trainer.of(NEXT)} == {1}
    assert framework in trainer.facts["frameworks"]
    assert trainer.say("loader")[0]["where"].startswith(str(newest.directory / "train.py"))
