"""What the tests of `fullbore fleet job` share: a training that saves, dies and goes on, and the job that it is of."""

from __future__ import annotations

import json
import pathlib

import jsonschema

SCHEMA = json.loads((pathlib.Path(__file__).parents[2] / "docs" / "fleet-job.schema.json").read_text())

# Goes on from its last checkpoint, of which it makes one every 100 steps, and validates after it, and writes
# by its own clock how long both took, and how long ago the last one was made.
TRAIN = """
    import json, os, pathlib, sys, time
    import torch

    die_at, truth, saved = int(sys.argv[1]), sys.argv[2], pathlib.Path("checkpoint.pt")

    class SlowToSave:
        def __reduce__(self):
            time.sleep(0.4)
            return (SlowToSave, ())

    class HeldOut(torch.utils.data.Dataset):
        def __len__(self):
            return 160
        def __getitem__(self, index):
            time.sleep(0.0025)
            return torch.ones(64)

    def validate():
        model.eval()
        with torch.no_grad():
            for batch in torch.utils.data.DataLoader(HeldOut(), batch_size=8):
                model(batch)
        model.train()

    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first = torch.load(saved, weights_only=False)["step"] if saved.exists() else 0
    saving, validating, last = 0.0, 0.0, None
    for step in range(first, 320):
        optimizer.zero_grad()
        loss = model(torch.ones(8, 64)).sum()
        time.sleep(0.02)
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            begun = time.perf_counter()
            torch.save({"step": step + 1, "model": model.state_dict(), "slow": SlowToSave()}, saved)
            last = time.perf_counter()
            saving += last - begun
            validate()
            validating += time.perf_counter() - last
        if step == die_at:
            lost = time.perf_counter() - last
            json.dump({"saving": saving, "validating": validating, "lost": lost}, open(truth, "w"))
            os._exit(9)
    json.dump({"saving": saving, "validating": validating, "lost": 0}, open(truth, "w"))
"""


def job(fullbore, *arguments, env: dict[str, str] | None = None) -> dict:
    said = fullbore.call("fleet", "job", *arguments, "--json", "-", env=env)
    assert said.code == 0, said.stderr
    found = json.loads(said.stdout)
    jsonschema.validate(found, SCHEMA)
    assert sum(bar["device_ns"] for bar in found["bars"]) == found["paid_ns"]
    for bar in found["bars"]:
        assert sum(run["device_ns"] for run in bar["runs"]) == bar["device_ns"]
    return found


def seconds(found: dict, kind: str, run: int | None = None) -> float:
    """Of all runs, or of one."""
    of = [each for bar in found["bars"] if bar["kind"] == kind for each in bar["runs"]]
    return sum(each["device_ns"] for each in of if run in (None, each["number"])) / 1e9
