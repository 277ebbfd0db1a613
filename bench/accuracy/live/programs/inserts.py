"""What programs do after a step besides training: code for a loop's `before` and `every_step`.

Each insert names the change that removes it, so that the exam can take the report's advice.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Insert:
    before: str
    every_step: str
    settings: dict[str, object]
    removed: dict[str, object]  # the settings with which it costs nothing, or a tenth where the advice is "every N"
    imports: tuple[str, ...] = ()
    definitions: str = ""
    about: str = ""


def log_gradients(rng: random.Random) -> Insert:
    """Statistics of every parameter, as JSON, flushed each step."""
    return Insert(
        before="log = open($log, 'w')",
        every_step="""
if step % $log_every == 0:
    row = {"step": step, "loss": loss.item()}
    for name, p in model.named_parameters():
        values = (p.grad if p.grad is not None else p).detach().flatten()[:$LOGGED]
        row[name] = values.tolist()
    log.write(json.dumps(row) + "\\n")
    log.flush()
""".replace("$LOGGED", str(rng.choice([1500, 3000, 5000]))),
        settings={"log": "gradients.jsonl", "log_every": 1},
        removed={"log_every": 10},
        about="writes gradients as JSON each step",
    )


def synced_log(rng: random.Random) -> Insert:
    """A CSV row per step that is forced to the disk, and a rewritten progress file."""
    return Insert(
        before="history = []",
        every_step="""
if step % $log_interval == 0:
    history.append({"step": step, "loss": loss.item(), "norm": sum(p.norm().item() for p in model.parameters())})
    del history[:-$KEEP]
    with open($log, "w") as f:
        json.dump(history, f, indent=1)
        f.flush()
        os.fsync(f.fileno())
""".replace("$KEEP", str(rng.choice([300, 600]))),
        settings={"log": "history.json", "log_interval": 1},
        removed={"log_interval": 10},
        imports=("import os",),
        about="rewrites its history file each step and forces it to the disk",
    )


def checkpoints(rng: random.Random) -> Insert:
    every = rng.choice([5, 10, 20])
    return Insert(
        before="",
        every_step="""
if $save_every and step % $save_every == 0:
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, $checkpoint)
    torch.save({"archive": torch.zeros($ARCHIVE)}, $checkpoint + ".buffer")
""".replace("$ARCHIVE", str(every * rng.choice([300_000, 500_000]))),
        settings={"save_every": every, "checkpoint": "last.pt"},
        removed={"save_every": 4 * every},
        about=f"saves a checkpoint every {every} steps",
    )


def validation(rng: random.Random) -> Insert:
    every, batches = rng.choice([(10, 10), (20, 25), (25, 40)])
    return Insert(
        before="",
        every_step=f"""
if $val_every and step % $val_every == 0:
    model.eval()
    with torch.no_grad():
        for _ in range({batches}):
            model(x)
    model.train()
""",
        settings={"val_every": every},
        removed={"val_every": 4 * every},
        about=f"validates {batches} batches every {every} steps",
    )


def garbage(rng: random.Random) -> Insert:
    """Many live objects, and a full collection each few steps: what people add to "free memory"."""
    objects = rng.choice([300_000, 500_000])
    return Insert(
        before=f"kept = [{{'id': i, 'tags': [i]}} for i in range({objects})]",
        every_step="""
if $collect_every and step % $collect_every == 0:
    gc.collect()
""",
        settings={"collect_every": rng.choice([1, 2])},
        removed={"collect_every": 0},
        imports=("import gc",),
        about="collects garbage by hand between steps, with many live objects",
    )


def metrics(rng: random.Random) -> Insert:
    """A metric counted in a Python loop over the batch, each step."""
    return Insert(
        before="matrix = [[0] * 10 for _ in range(10)]",
        every_step=f"""
if $metrics_every and step % $metrics_every == 0:
    for threshold in range({rng.choice([100, 200])}):
        update_confusion(matrix, y.tolist(), [(v * 7 + threshold) % 10 for v in y.tolist()])
        scores = f1_scores(matrix)
""",
        settings={"metrics_every": 1},
        removed={"metrics_every": 10},
        definitions="""
def update_confusion(matrix, truth, predicted):
    for t, p in zip(truth, predicted):
        matrix[t][p] += 1


def f1_scores(matrix):
    scores = []
    for c in range(10):
        hit = matrix[c][c]
        wrong = sum(matrix[r][c] for r in range(10)) + sum(matrix[c]) - 2 * hit
        scores.append(2 * hit / max(1, 2 * hit + wrong))
    return scores
""",
        about="computes a confusion matrix and F1 in Python loops each step",
    )


def subprocesses(rng: random.Random) -> Insert:
    return Insert(
        before="",
        every_step="""
if $probe_every and step % $probe_every == 0:
    load = subprocess.run(["cat", "/proc/loadavg"], capture_output=True, text=True).stdout.split()[0]
""",
        settings={"probe_every": 1},
        removed={"probe_every": 10},
        imports=("import subprocess",),
        about="starts a subprocess each step to note the machine's load",
    )


def sleeping(rng: random.Random) -> Insert:
    pause = rng.choice([0.01, 0.02, 0.03])
    return Insert(
        before="",
        every_step="""
if $throttle > 0:
    time.sleep($throttle)
""",
        settings={"throttle": pause},
        removed={"throttle": 0.0},
        about="sleeps after each step, left over from a demo",
    )


def kept_graphs(rng: random.Random) -> Insert:
    """The classic leak: a list of losses, computed for a log, that keep their graphs and so all activations."""
    return Insert(
        before="history = []",
        every_step="""
if step % $track_every == 0:
    tracked = model(x)
    tracked = tracked[0] if isinstance(tracked, tuple) else tracked
    history.append(tracked.mean().detach() if $detach_history else tracked.mean())
    del history[:-4000]
""",
        settings={"detach_history": False, "track_every": rng.choice([3, 4])},
        removed={"detach_history": True},
        about="keeps losses with their graphs in a list",
    )


def kept_batches(rng: random.Random) -> Insert:
    """A cache without a bound."""
    return Insert(
        before="seen = {}",
        every_step="""
if len(seen) < $cache_size:
    seen[step] = (x.clone(), loss.detach())
""",
        settings={"cache_size": 6000},
        removed={"cache_size": 0},
        about="keeps a copy of every batch in a dictionary",
    )


def none(rng: random.Random) -> Insert:
    """A line of progress now and then, as every program has."""
    return Insert(
        before="",
        every_step="if step % $print_every == 0:\n    print(f'step {step} loss {loss.item():.4f}')",
        settings={"print_every": rng.choice([50, 100])},
        removed={},
        about="prints now and then",
    )
