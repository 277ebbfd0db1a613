"""Training loops as people write them. Each keeps its own clock: the wall time of every step, written as a JSON list.

`every_step` is code that a program runs after each step, `before` prepares it once; both see `model`, `optimizer`, `x`,
`y`, `loss` and `step`. A loop ends when its time is over, so that a run takes as long on any machine.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from .models import Model
from .pieces import indented

IMPORTS = ("import json", "import time", "import torch")
OPTIMIZERS = (
    "torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)",
    "torch.optim.Adam(model.parameters(), lr=1e-3)",
    "torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.01)",
)


@dataclass(frozen=True)
class Body:
    """What a loop is filled with."""

    model: Model
    loader: str  # the expression that makes an iterable of (x, y) for one epoch or for ever
    before: str = ""
    every_step: str = ""


def plain(rng: random.Random, body: Body) -> str:
    """No functions at all: the script is the loop."""
    return f"""
torch.manual_seed(0)
model = {body.model.make}
optimizer = {rng.choice(OPTIMIZERS)}
loader = {body.loader}
{body.before.strip()}
step_times = []
step = 0
start = last = time.perf_counter()
while time.perf_counter() - start < $seconds:
    for x, y in loader:
        optimizer.zero_grad()
{indented(body.model.piece.use, 8)}
        loss.backward()
        optimizer.step()
        step += 1
{indented(body.every_step, 8)}
        now = time.perf_counter()
        step_times.append(now - last)
        last = now
        if now - start > $seconds:
            break

with open($times, "w") as out:
    json.dump(step_times[$warmup:], out)
print("done:", step, "steps, loss", float(loss.detach()))
"""


def with_functions(rng: random.Random, body: Body) -> str:
    """train_one_epoch() and main()."""
    text = f"""
class StepClock:
    def __init__(self):
        self.begin = self.last = time.perf_counter()
        self.steps = []

    def tick(self):
        now = time.perf_counter()
        self.steps.append(now - self.last)
        self.last = now

    def expired(self):
        return self.last - self.begin > $seconds


{body.before.strip()}


def train_one_epoch(model, loader, optimizer, clock, step):
    model.train()
    running = 0.0
    for x, y in loader:
{indented(body.model.piece.use, 8)}
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        step += 1
{indented(body.every_step, 8)}
        running += loss.detach()
        clock.tick()
        if clock.expired():
            break
    return step, float(running)


def main():
    torch.manual_seed(1)
    model = {body.model.make}
    optimizer = {rng.choice(OPTIMIZERS)}
    loader = {body.loader}
    clock = StepClock()
    step = epoch = 0
    while not clock.expired():
        step, running = train_one_epoch(model, loader, optimizer, clock, step)
        epoch += 1
        print(f"epoch {{epoch}}: {{step}} steps, loss {{running:.3f}}")
    with open($times, "w") as f:
        json.dump(clock.steps[$warmup:], f)


if __name__ == "__main__":
    main()
"""
    return text if body.before else text.replace("\n\n\n\n\n", "\n\n\n")


def trainer_class(rng: random.Random, body: Body) -> str:
    """A small Trainer class with a fit() method."""
    return f"""
class Trainer:
    def __init__(self, model, loader):
        self.model = model
        self.loader = loader
        self.optimizer = {rng.choice(OPTIMIZERS)}
        self.durations = []

    def fit(self, seconds):
        model, optimizer = self.model, self.optimizer
        step = 0
{indented(body.before, 8)}
        begin = mark = time.monotonic()
        while mark - begin < seconds:
            for x, y in self.loader:
                loss = self.training_step(x, y)
                step += 1
{indented(body.every_step, 16)}
                self.durations.append(time.monotonic() - mark)
                mark += self.durations[-1]
                if mark - begin >= seconds:
                    return

    def training_step(self, x, y):
        model = self.model
{indented(body.model.piece.use, 8)}
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def save_times(self, path):
        with open(path, "w") as f:
            json.dump(self.durations[$warmup:], f)


if __name__ == "__main__":
    torch.manual_seed(0)
    trainer = Trainer({body.model.make}, {body.loader})
    trainer.fit($seconds)
    trainer.save_times($times)
"""


def iterations(rng: random.Random, body: Body) -> str:
    """Counts iterations, not epochs: next() on an iterator that starts anew."""
    return f"""
def cycle(loader):
    while True:
        yield from loader


def run():
    model = {body.model.make}
    model.train()
    optimizer = {rng.choice(OPTIMIZERS)}
    batches = cycle({body.loader})
{indented(body.before, 4)}
    stamps = [time.perf_counter()]
    step = 0
    while stamps[-1] - stamps[0] < $seconds:
        x, y = next(batches)
{indented(body.model.piece.use, 8)}
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        step += 1
{indented(body.every_step, 8)}
        stamps.append(time.perf_counter())
    return [after - before for before, after in zip(stamps, stamps[1:])]


if __name__ == "__main__":
    step_seconds = run()
    json.dump(step_seconds[$warmup:], open($times, "w"))
"""


def accumulating(rng: random.Random, body: Body) -> str:
    """Gradient accumulation: a step is several batches."""
    return f"""
def train():
    model = {body.model.make}
    optimizer = {rng.choice(OPTIMIZERS)}
    loader = {body.loader}
{indented(body.before, 4)}
    times, step = [], 0
    begun = tick = time.perf_counter()
    while tick - begun < $seconds:
        for i, (x, y) in enumerate(loader):
{indented(body.model.piece.use, 12)}
            (loss / $accumulate).backward()
            if (i + 1) % $accumulate:
                continue
            optimizer.step()
            optimizer.zero_grad()
            step += 1
{indented(body.every_step, 12)}
            times.append(time.perf_counter() - tick)
            tick = time.perf_counter()
            if tick - begun > $seconds:
                break
    with open($times, "w") as handle:
        json.dump(times[$warmup:], handle)


if __name__ == "__main__":
    train()
"""


LOOPS = (plain, with_functions, trainer_class, iterations)
