"""A training that waits for its data, and prints by its own clock which share of its steps it waited."""

from __future__ import annotations

import textwrap

# Its argument: how many seconds a sample takes to load. The first ten steps do not count.
TRAIN = textwrap.dedent("""
    import sys, time
    import torch

    load_s = float(sys.argv[1]) if len(sys.argv) > 1 else 0.003

    class Slow(torch.utils.data.Dataset):
        def __len__(self):
            return 8 * 120
        def __getitem__(self, index):
            time.sleep(load_s)
            return torch.ones(64)

    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    waited = begun = None
    batches = iter(torch.utils.data.DataLoader(Slow(), batch_size=8))
    for step in range(120):
        if step == 10:
            waited, begun = 0.0, time.perf_counter()
        before = time.perf_counter()
        batch = next(batches)
        if step >= 10:
            waited += time.perf_counter() - before
        optimizer.zero_grad()
        model(batch).sum().backward()
        time.sleep(0.02)
        optimizer.step()
    print("waited", waited / (time.perf_counter() - begun), flush=True)
""")


def waited(said: str) -> float:
    """What it printed."""
    word, share = said.split()[-2:]
    assert word == "waited", said
    return float(share)
