"""The hook takes along what a script logs itself: with tensorboardX, Lightning's CSV files, Transformers' Trainer, and
by print. MLflow, W&B and torch's own writer for TensorBoard are asked in tests/trackers."""

from __future__ import annotations

import os
import pathlib
import textwrap
from typing import Any

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python"
SEARCH = {"PYTHONPATH": os.pathsep.join([str(PACKAGE / "fullbore" / "hook" / "site"), str(PACKAGE)])}

# A training of steps that do nothing.
LOOP = """
import math, time
import fullbore
{before}
for i in range({steps}):
    fullbore.step()
{body}
    time.sleep({sleep})
print("trained")
"""
WRITER = "from tensorboardX import SummaryWriter; writer = SummaryWriter('board')"


def script(body: str, before: str = WRITER, steps: int = 20, sleep: float = 0.02) -> str:
    body = textwrap.indent(body.strip(), " " * 4)
    return LOOP.format(before=before, body=body, steps=steps, sleep=sleep)


def points(process: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for line in process.say("logged"):
        for name, *point in line["points"]:
            found.setdefault(name, []).append(point)
    return found


def logged(bare, text: str, env: dict[str, str] | None = None) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    channel, output = bare.run(text, env={**SEARCH, **(env or {})})
    assert output.endswith("trained\n")
    (process,) = channel.trainers
    assert not process.say("message"), "the hook switched itself off"
    assert process.one("bye")["steps"] > 0
    return points(process), process.facts.get("logged", {})


def test_every_logger_is_waited_for(bare):
    text = "from fullbore.hook import finder; from fullbore.hook.own.loggers import LOGGERS\n"
    text += "print(set(LOGGERS) == {name for name, part in finder.TRACKERS.items() if part == 'own.loggers'})"
    done, _ = bare.start([bare.python, "-c", text], {"PYTHONPATH": str(PACKAGE)}, hooked=False)
    assert done.stdout == "True\n", done.stderr


def test_values_come_with_their_times_and_the_scripts_steps(bare):
    found, about = logged(bare, script("writer.add_scalar('train/loss', 1 / (i + 1), 100 + i)", sleep=0.21, steps=4))
    assert [(value, step) for _, value, step in found["train/loss"]] == [
        (pytest.approx(1 / (i + 1), rel=1e-6), 100 + i) for i in range(4)
    ]
    times = [t for t, _, _ in found["train/loss"]]
    assert times == sorted(times)
    assert about == {"train/loss": {"loggers": ["tensorboard"]}}


# As tensorboardX is, which imports torch if it is there.
EARLY = """
import tensorboardX
tensorboardX_writer = tensorboardX.writer.__dict__.copy()
for name in ("FileWriter", "SummaryWriter"):
    delattr(tensorboardX.writer, name)  # it is not whole yet
import fullbore
tensorboardX.writer.__dict__.update(tensorboardX_writer)
writer = tensorboardX.writer.SummaryWriter("board")
"""


def test_a_logger_that_imports_the_framework_itself_is_seen_from_the_first_steps_on(bare):
    body = "writer.add_scalar('loss', 1.0, i)"
    found, about = logged(bare, script(body, before="", steps=30).replace("import fullbore", EARLY, 1))
    assert about["loss"]["loggers"] == ["tensorboard"] and found["loss"][-1][2] == 29


def test_what_comes_too_fast_is_thinned_and_its_last_value_stays(bare):
    found, about = logged(bare, script("writer.add_scalar('loss', float(i), i)", steps=5_000, sleep=0.0002))
    (of_loss,) = found.values()
    assert of_loss[0][1:] == [0.0, 0] and of_loss[-1][1:] == [4_999.0, 4_999]
    assert len(of_loss) + about["loss"]["thinned"] == 5_000
    span_ns = of_loss[-1][0] - of_loss[0][0]
    assert len(of_loss) <= span_ns / 0.2e9 + 2


def test_what_is_no_number_is_counted_and_not_kept(bare):
    body = """
writer.add_scalar('nan', math.nan, i)
writer.add_scalar('inf', -math.inf, i)
writer.add_scalar('loss', 2.5, i)
writer.add_text('text', 'words')
writer.add_histogram('weights', np.arange(9))
"""
    found, about = logged(bare, script(body, before=WRITER + "; import numpy as np", steps=3))
    assert set(found) == {"loss"}
    assert about["nan"]["not_finite"] == 3 and about["inf"]["not_finite"] == 3 and len(about) == 3


def test_two_writers_of_one_tag_are_told_apart(bare):
    before = WRITER + "; other = SummaryWriter('board/val')"
    body = "writer.add_scalar('loss', 1.0, i)\nother.add_scalar('loss', 2.0, i)"
    found, _ = logged(bare, script(body, before=before, steps=3))
    assert {name: {value for _, value, _ in of} for name, of in found.items()} == {"loss": {1.0}, "val/loss": {2.0}}


def test_no_more_than_64_metrics_are_kept(bare):
    before = WRITER + "; writer.add_scalar('first', 1.0)"
    body = "for name in range(200): writer.add_scalar(f'm{name}', 1.0, i)"
    channel, _ = bare.run(script(body, before=before, steps=2), env=SEARCH)
    (process,) = channel.trainers
    found = points(process)
    assert len(found) == 64 and "first" in found
    assert process.facts["logged_left_out"] == 200 - 63


# A logger whose class and module are those of W&B: what a script can give to it is anything.
WANDB = """
class Run:
    follows = None
    def log(self, data, step=None, commit=None):
        if "fails" in data:
            raise ValueError("full")
        if self.follows:
            self.follows.add_scalar("inner", data["loss"], 1)
        return "its own"
"""


@pytest.fixture
def wandb(bare) -> str:
    place = bare.directory / "stand_in" / "wandb" / "sdk"
    place.mkdir(parents=True)
    for name in (place.parent, place):
        (name / "__init__.py").write_text("")
    (place / "wandb_run.py").write_text(WANDB)
    return "import sys; sys.path.insert(0, 'stand_in'); from wandb.sdk.wandb_run import Run; run = Run()"


HOSTILE = """
class Number:
    def __float__(self): raise RuntimeError("a script's own")
    __int__ = __index__ = __float__
class Float(float):
    def __float__(self): raise RuntimeError("a script's own")
    def __sub__(self, other): raise RuntimeError("a script's own")
    __eq__ = __lt__ = __sub__
    __hash__ = None
class Text(str):
    def __eq__(self, other): raise RuntimeError("a script's own")
    def startswith(self, *_): raise RuntimeError("a script's own")
    __hash__ = str.__hash__
class Dict(dict):
    def items(self): raise RuntimeError("a script's own")
    keys = __iter__ = __getitem__ = items
class Numpy:
    __module__ = "numpy"
    shape = size = property(lambda self: 1 / 0)
"""


def test_no_value_and_no_name_does_any_harm(bare, wandb):
    (bare.directory / "hostile.py").write_text(HOSTILE)
    before = wandb + "; sys.path.insert(0, '.'); from hostile import *"
    body = r"""
assert run.log({'loss': 1.5, 'lr': Number()}) == "its own"
run.log({'float': Float(2.5), Text('text'): 1.0, 1: 2.0, None: 3.0, '': 4.0})
run.log(Dict(inner=5.0))
run.log({'deep': {'a': {'b': {'c': 1.0}, 'ok': 6.0}}})
run.log({'esc\x1b[31m': 1.0, 'line\nbreak': 1.0, 'lone\ud800': 1.0, 'rtl\u202e': 1.0, 'x' * 10_000: 1.0})
run.log({'big': 10 ** 400, 'bool': True, 'words': 'x', 'none': None, 'list': [1.0], 'numpy': Numpy()})
run.log(data={'by_name': 7.0}, step=10 ** 30)
run.log({'system/cpu': 1.0, '_timestamp': 1.0, 'epoch': 1.0, 'fullbore/step_s': 1.0})
run.log({'stepped': 1.0, 'global_step': 12})
for wrong in ((), (1, 2, 3, 4), ([1.0],), ('loss',), (None,)):
    try: run.log(*wrong)
    except TypeError: pass
recursive = {}; recursive['loss'] = recursive; run.log(recursive)
"""
    found, about = logged(bare, script(body, before=before, steps=3))
    assert set(found) == {"loss", "float", "text", "inner", "deep.a.ok", "by_name", "stepped"}
    assert found["float"][0][1] == 2.5 and found["by_name"][0][2] is None and found["stepped"][0][2] == 12
    assert set(about) == set(found)


def test_the_error_of_a_logger_is_the_scripts(bare, wandb):
    body = "try: run.log({'loss': 1.0, 'fails': 1})\nexcept ValueError as error: assert str(error) == 'full'"
    found, _ = logged(bare, script(body, before=wandb, steps=2))
    assert set(found) == {"loss", "fails"}


def test_a_logger_within_a_logger_names_nothing_anew(bare, wandb):
    """As wandb does where it follows TensorBoard, and a trainer in each of its loggers."""
    before = f"{wandb}\n{WRITER}\nrun.follows = writer"
    body = "run.log({'loss': 1.0}, step=i)\nwriter.add_scalar('loss', 9.0, i)"
    found, about = logged(bare, script(body, before=before, steps=3))
    assert set(found) == {"loss"} and {value for _, value, _ in found["loss"]} == {1.0}
    assert about["loss"]["loggers"] == ["wandb", "tensorboard"]


def test_what_can_be_gone_through_only_once_is_left_to_the_logger(bare):
    text = """
from fullbore.hook.own import loggers
given = iter([1, 2])
print(loggers.of_mlflow_batch(None, "run", given), list(given))
"""
    done, _ = bare.start([bare.python, "-c", text], {"PYTHONPATH": str(PACKAGE)}, hooked=False)
    assert done.stdout == "None [1, 2]\n", done.stderr


def test_printed_numbers_are_taken_from_the_second_line_on(bare):
    body = """
print(f"step {i}: train loss {5 - i / 10:.4f}, val loss {6 - i / 10:.4f}, lr=1e-{i + 3:02}")
print("acc:", i / 100, "count:", i)
print({'f1': i / 50, 'epoch': 1.5})
print("once" if i else "setting=0.5")
"""
    channel, output = bare.run(script(body, before="", steps=4, sleep=0.25), env=SEARCH)
    assert "step 3: train loss 4.7000, val loss 5.7000, lr=1e-06\nacc: 0.03 count: 3\n{'f1': 0.06" in output
    (process,) = channel.trainers
    found = points(process)
    assert set(found) == {"train loss", "val loss", "lr", "acc", "f1"}
    assert [(value, step) for _, value, step in found["val loss"]] == [(5.9, 1), (5.8, 2), (5.7, 3)]
    assert process.facts["logged"]["lr"]["loggers"] == ["print"]


def test_standard_output_is_what_it_was(bare):
    before = "import io, sys, contextlib; kept = io.StringIO(); out = sys.stdout"
    body = """
with contextlib.redirect_stdout(kept): print("loss=1.5")
assert sys.stdout is out and type(out) is io.TextIOWrapper and out.fileno() == 1
assert out.write("é x=2.5") == 7 and out.writable() and out.encoding
try: out.write(b"bytes")
except TypeError: pass
print("k=" * 5000, "\\r loss=1.5", "a" * 100_000, "loss " * 5000, flush=True)
"""
    found, _ = logged(bare, script(body, before=before, steps=3))
    assert found == {}


def test_of_a_dump_only_its_end_is_looked_at(bare):
    body = "print('first=1.5\\n' * 5_000 + 'x' * 30_000 + '\\nlast=2.5')"
    found, _ = logged(bare, script(body, before="", steps=3, sleep=0.25))
    assert set(found) == {"last"} and {value for _, value, _ in found["last"]} == {2.5}


def test_lines_beyond_the_budget_are_printed_and_not_looked_at(bare):
    before = "from _fullbore_hook.own import printed; printed.BUDGET = 1e-9; printed.BURST_NS = 0"
    channel, output = bare.run(script("print('loss=1.5')", before=before, steps=3), env=SEARCH)
    (process,) = channel.trainers
    assert output.count("loss=1.5\n") == 3 and points(process) == {} and not process.say("message")


def test_where_looking_goes_on_the_rest_of_a_line_is_no_metric(bare):
    text = """
from fullbore.hook.own import printed
of_all, lines = printed.Printed(), []
of_all.note_line = lines.append
of_all.note("a: 1.5\\n")
of_all.pauses_until = printed.clock() + 10**15
for piece in ("b: 1.5\\n", "val "): of_all.note(piece)
of_all.pauses_until = 0
for piece in ("loss: 1.5", "\\n", "c: 1.5", "\\n"): of_all.note(piece)
print(lines)
"""
    done, _ = bare.start([bare.python, "-c", text], {"PYTHONPATH": str(PACKAGE)}, hooked=False)
    assert done.stdout == "['a: 1.5', 'c: 1.5']\n", done.stderr


def test_two_threads_that_take_the_last_point_do_no_harm(bare):
    text = """
import collections
from fullbore.hook.own import logged
class Emptied(collections.deque):
    def __len__(self): return 2
of_two = logged.Logged()
of_two.waiting = Emptied(["point"])
print(of_two.some_waiting(), of_two.some_waiting())
metric = of_two.metric("loss", "print")
of_two.add("loss", 1.0, 1, "print", 1)
of_two.add("loss", 2.0, 2, "print", 2)
class Race(logged.Metric):  # while the sampler's thread gives the point, the script logs another
    due = property(lambda self: setattr(self, "held", ("loss", 3, 3.0, 3)) or 0, lambda self, value: None)
race = of_two.metrics["loss"] = Race("loss", "print")
race.held = ("loss", 2, 2.0, 2)
of_two.tell()
print(race.held)
"""
    done, _ = bare.start([bare.python, "-c", text], {"PYTHONPATH": str(PACKAGE)}, hooked=False)
    assert done.stdout == "['point'] []\n('loss', 3, 3.0, 3)\n", done.stderr


def test_a_script_that_logs_nothing_pays_nothing(bare):
    found, about = logged(bare, script("pass", before="", steps=3))
    assert (found, about) == ({}, {})


@pytest.mark.long
def test_a_tensor_on_a_device_is_not_read(newest):
    """On the device `meta`, which has no values at all."""
    text = f"""
    import torch, sys
    sys.path.insert(0, {str(PACKAGE)!r})
    from fullbore.hook.own import logged
    from fullbore.hook.own.logged import number_of as number
    import numpy as np
    assert number(torch.tensor(2.5)) == 2.5 and number(torch.tensor([3.5], requires_grad=True)) == 3.5
    assert number(torch.tensor(1.5, dtype=torch.bfloat16)) == 1.5 and number(torch.tensor(7)) == 7
    assert number(torch.tensor(1.0, device="meta")) is logged.ON_DEVICE
    assert number(torch.ones(2)) is None and number(torch.nn.Linear(1, 1)) is None
    assert number(np.float32(0.5)) == 0.5 and number(np.array([4])) == 4 and number(np.ones(2)) is None
    assert number(np.array(["x"])) is None and number(np.bool_(True)) is None
    assert torch.func.vmap(lambda x: [x, print(logged.number_or_none(x))][0])(torch.ones(3)).sum() == 3
    """
    done, _ = newest.start([newest.python, newest.script(text)], hooked=False)
    assert (done.stdout, done.returncode) == ("None\n", 0), done.stderr


@pytest.mark.long
def test_lightnings_csv_files(newest):
    channel, _ = newest.run(
        """
    import torch, lightning as L, warnings
    from lightning.pytorch.loggers import CSVLogger
    warnings.simplefilter("ignore")
    class Model(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)
        def training_step(self, batch, _):
            loss = self.layer(batch[0]).pow(2).mean()
            self.log("train_loss", loss)
            return loss
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)
    data = torch.utils.data.TensorDataset(torch.randn(64, 4))
    trainer = L.Trainer(max_epochs=2, logger=CSVLogger("csv"), log_every_n_steps=1, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, accelerator="cpu")
    trainer.fit(Model(), torch.utils.data.DataLoader(data, batch_size=16))
    """
    )
    found = points(channel.trainer)
    assert set(found) == {"train_loss"} and found["train_loss"][-1][2] == 7
    assert channel.trainer.facts["logged"]["train_loss"]["loggers"] == ["csv"]


@pytest.mark.long
def test_transformers_trainer_prints_and_logs_once(newest):
    channel, output = newest.run(
        """
    import torch
    from transformers import Trainer, TrainingArguments
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)
        def forward(self, x=None, labels=None):
            out = self.layer(x)
            return {"loss": (out - labels).pow(2).mean(), "logits": out}
    data = [{"x": torch.randn(4), "labels": torch.zeros(1)} for _ in range(64)]
    arguments = TrainingArguments("out", max_steps=6, logging_steps=1, report_to=["tensorboard"], save_strategy="no",
                                  per_device_train_batch_size=8, use_cpu=True, disable_tqdm=True)
    Trainer(Model(), arguments, train_dataset=data).train()
    """
    )
    found = points(channel.trainer)
    assert {"loss", "learning_rate", "grad_norm"} <= set(found) and "train/loss" not in found
    assert found["loss"][-1][2] == 6
    about = channel.trainer.facts["logged"]["loss"]["loggers"]
    assert about == ["transformers", "tensorboard"], "and not print, though it prints them"
    assert "'loss'" in output
