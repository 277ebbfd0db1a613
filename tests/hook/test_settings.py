"""Settings asked for from outside: applied to an unmodified script, or refused with the reason and the rest applied."""

from __future__ import annotations

import json

import pytest
from channel_reader import Channel
from conftest import BEFORE_CHILDREN

PARTS = """
    import json, os, sys
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

    def train(loader, epochs=1):
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(epochs):
            for batch in loader:
                optimizer.zero_grad()
                model(batch[0]).sum().backward()
                optimizer.step()

    def tell(loader):
        names = ("batch_size", "num_workers", "prefetch_factor", "persistent_workers", "pin_memory")
        seen = {name: getattr(loader, name) for name in names}
        seen["threads"] = torch.get_num_threads()
        seen["cpus"] = sorted(os.sched_getaffinity(0))
        print(json.dumps(seen))

    data = TensorDataset(torch.randn(40, 4))
"""
PLAIN = (
    PARTS
    + """
    loader = DataLoader(data, 4, True, num_workers=1, prefetch_factor=3, persistent_workers=True)
    train(loader)
    torch.set_num_threads(7)  # the script's own choice
    tell(loader)
    """
)


def steered(runner, text, settings, *arguments, env=None):
    """What the script printed as JSON, and what became of the settings."""
    given = settings if isinstance(settings, str) else json.dumps(settings)
    channel, output = runner.run(text, *arguments, env={"FULLBORE_SETTINGS": given, **(env or {})})
    outcomes = [outcomes_of(process) for process in channel.trainers if process.steps]
    seen = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return seen, outcomes, channel


@pytest.mark.long
def test_each_setting_of_loaders_and_threads_is_applied_and_stated(newest):
    wanted = {"batch_size": 8, "num_workers": 2, "prefetch_factor": 5, "persistent_workers": False}
    wanted |= {"intraop_threads": 2, "cpu_affinity": 0}
    (seen,), (outcomes,), channel = steered(newest, PLAIN, wanted)
    expected = {**wanted, "threads": 2, "cpus": [0], "pin_memory": False}
    assert seen == {name: expected[name] for name in seen}
    assert outcomes == dict.fromkeys(wanted, "applied")
    assert len(channel.workers) == 2 and len(channel.trainer.steps) == 5
    assert channel.trainer.say("loader")[0]["args"]["batch_size"] == 8


# Each in a forked child, which saves importing torch again: the script, the settings, what becomes of them, steps.
CASES = {
    "no workers": (
        "train(DataLoader(data, 8, num_workers=1, prefetch_factor=3, persistent_workers=True))",
        {"num_workers": 0, "prefetch_factor": 4, "persistent_workers": True},
        {
            "num_workers": "applied",
            "prefetch_factor": "refused: it needs loader workers, and there are none",
            "persistent_workers": "refused: it needs loader workers, and there are none",
        },
        5,
    ),
    "no device": (
        "train(DataLoader(data, 8))",
        {"pin_memory": True, "batch_size": 4},
        {"pin_memory": "refused: there is no device to pin memory for", "batch_size": "applied"},
        10,
    ),
    "batch_sampler": (
        "train(DataLoader(data, batch_sampler=torch.utils.data.BatchSampler(range(40), 8, False)))",
        {"batch_size": 4, "num_workers": 1},
        {"batch_size": "refused: a batch_sampler makes the batches", "num_workers": "applied"},
        5,
    ),
    "no batches": (
        "train(DataLoader(data, batch_size=None))",
        {"batch_size": 4},
        {"batch_size": "refused: the DataLoader makes no batches: batch_size=None"},
        40,
    ),
    "iterable": (
        "train(DataLoader(Stream(), batch_size=8))",
        {"num_workers": 3, "batch_size": 20},
        {
            "num_workers": "refused: each worker would yield all samples of this iterable dataset, which does not "
            "call get_worker_info()",
            "batch_size": "applied",
        },
        2,
    ),
    "wrong values": (
        "train(DataLoader(data, batch_size=8))",
        {"num_workers": "many", "batch_size": 0, "colour": 1, "prefetch_factor": True, "cpu_affinity": "2-1"},
        {
            "num_workers": 'refused: it takes a whole number of at least 0, not "many"',
            "batch_size": "refused: it takes a whole number of at least 1, not 0",
            "colour": "refused: there is no such setting",
            "prefetch_factor": "refused: it takes a whole number of at least 1, not true",
            "cpu_affinity": 'refused: it takes a list of CPUs such as "0-3,8", not "2-1"',
        },
        5,
    ),
    "not legible": (
        "train(DataLoader(data, batch_size=8))",
        "{num_workers: 2}",
        {},
        5,
    ),
}
IN_CHILDREN = """
    import traceback
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(data)
    def run(case, text, settings):
        child = os.fork()
        if child == 0:
            try:
                found = sys.modules["_fullbore_hook.core.settings"].settings
                found.__init__(settings if isinstance(settings, str) else json.dumps(settings))
                print(json.dumps({"case": case, "pid": os.getpid()}), flush=True)
                exec(text, globals())
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(child, 0)
    for case, (text, settings) in json.loads(open(sys.argv[1]).read()).items():
        run(case, text, settings)
"""


def run_cases(runner, parts, cases, settings, env=None):
    """Each case's process in the channel, by name, and what it printed."""
    (runner.directory / "cases.json").write_text(json.dumps({name: case[:2] for name, case in cases.items()}))
    text = parts + BEFORE_CHILDREN + IN_CHILDREN
    env = {"FULLBORE_SETTINGS": json.dumps(settings), **(env or {})}
    result, directory = runner.start([runner.python, runner.script(text), "cases.json"], env)
    assert result.returncode == 0 and "Traceback" not in result.stderr, result.stderr
    processes = {process.pid: process for process in Channel(directory).processes}
    found = {}
    for line in map(json.loads, result.stdout.splitlines()):
        if "case" in line:
            printed = []
            found[line["case"]] = (processes[line["pid"]], printed)
        else:
            printed.append(line)
    return found


def outcomes_of(process):
    facts = process.facts.items()
    return {key[len("setting.") :]: value for key, value in facts if key.startswith("setting.")}


@pytest.mark.long
def test_what_is_not_legal_is_refused_with_the_reason_and_the_rest_applied(newest):
    found = run_cases(newest, PARTS, CASES, {"num_workers": 1})
    for name, (_, _, expected, steps) in CASES.items():
        process, _ = found[name]
        assert outcomes_of(process) == expected, name
        assert len(process.steps) == steps, name
    said = [message["text"] for message in found["not legible"][0].say("message")]
    assert len(said) == 1 and said[0].endswith("the run goes on with the script's own settings")


MODELS = (
    PARTS
    + """
    class Net(nn.Module):
        def __init__(self, last=None):
            super().__init__()
            self.conv, self.head, self.last = nn.Conv2d(2, 4, 3), nn.Linear(4, 1), last
            self.inside = []
        def forward(self, x):
            x = self.head(self.conv(x).mean((2, 3)))
            if self.training:
                self.inside.append(str(x.dtype))
            return {"y": x if self.last is None else self.last(x)}

    images = torch.randn(16, 2, 8, 8)
    def fit(model, loss_of=lambda y: y.square().mean(), optimizer=None, steps=4, around=torch.enable_grad):
        optimizer = optimizer or torch.optim.Adam(model.parameters())
        for _ in range(steps):
            optimizer.zero_grad()
            with around():
                y = model(images)["y"]
                loss = loss_of(y)
            loss.backward()
            optimizer.step()
        return optimizer, y

    def show(**found):
        print(json.dumps({name: value for name, value in found.items()}))

"""
)
ALL = {"num_workers": 0, "precision": "bf16", "optimizer": "fused", "channels_last": True}
ALL |= {"compile": False, "accumulate": 1}
CUSTOM = """
class Own(torch.autograd.Function):
    @staticmethod
    {mark}
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, gradient):
        return gradient
model = Net()
_, y = fit(model, lambda y: Own.apply(y).sum())
show(inside=model.inside[-1])
"""
OF_MODELS = {
    "bf16": (
        "model = Net()\n_, y = fit(model)\n"
        "model.eval()\nshow(inside=sorted(set(model.inside)), outside=str(y.dtype), state=len(model.state_dict()))",
        {"precision": "bf16"},
        {"precision": "applied"},
        {"inside": ["torch.bfloat16"], "outside": "torch.float32", "state": 4},
    ),
    "fp32": ("fit(Net())", {"precision": "fp32"}, {"precision": "applied"}, None),
    "own autocast": (
        "model = Net()\nfit(model, around=lambda: torch.autocast('cpu', torch.bfloat16))",
        {"precision": "bf16", "optimizer": "foreach"},
        {"precision": "refused: the script has its own autocast, to bfloat16", "optimizer": "applied"},
        None,
    ),
    "half": (
        "images = images.bfloat16()\nfit(Net().bfloat16())",
        {"precision": "bf16"},
        {"precision": "refused: the model has parameters of torch.bfloat16"},
        None,
    ),
    "scaler": ("fit(Net())", {"precision": "fp16"}, {"precision": "refused: float16 needs a GradScaler"}, None),
    "custom function": (
        CUSTOM.format(mark=""),
        {"precision": "bf16"},
        {"precision": "refused: an autograd.Function without custom_fwd: Own"},
        {"inside": "torch.float32"},
    ),
    "custom function, marked": (
        CUSTOM.format(mark="@torch.amp.custom_fwd(device_type='cpu')"),
        {"precision": "bf16"},
        {"precision": "applied"},
        {"inside": "torch.bfloat16"},
    ),
    "BCELoss": (
        "model = Net(nn.Sigmoid())\n"
        "fit(model, lambda y: nn.BCELoss()(y, torch.ones_like(y)))\nshow(inside=model.inside[1:])",
        {"precision": "bf16"},
        {"precision": "refused: the loss is BCELoss, whose probabilities 16 bits would round to 0 and 1"},
        {"inside": ["torch.float32"] * 3},
    ),
    "fused": (
        "optimizer, _ = fit(Net())\nshow(fused=optimizer.param_groups[0]['fused'])",
        {"optimizer": "fused"},
        {"optimizer": "applied"},
        {"fused": True},
    ),
    "no fused": (
        "model = Net()\nfit(model, optimizer=torch.optim.Adadelta(model.parameters()))",
        {"optimizer": "fused", "channels_last": True},
        {"optimizer": "refused: Adadelta has no fused implementation", "channels_last": "applied"},
        None,
    ),
    "channels_last": (
        "model = Net()\nfit(model)\nshow(last=model.conv.weight.is_contiguous(memory_format=torch.channels_last))",
        {"channels_last": True},
        {"channels_last": "applied"},
        {"last": True},
    ),
    "nothing for channels_last": ("train(DataLoader(data, 8))", {"channels_last": True}, {}, None),
    "hooks and compile": (
        "model = Net()\nmodel.head.register_forward_hook(lambda *_: None)\nfit(model)",
        {"compile": True},
        {"compile": "refused: forward or backward hooks would break the graph: head"},
        None,
    ),
    "compile": (
        "model = Net()\nfit(model)\nshow(compiled=model._compiled_call_impl is not None)",
        {"compile": True},
        {"compile": "applied"},
        {"compiled": True},
    ),
    "LBFGS and accumulate": (
        "model = Net()\noptimizer = torch.optim.LBFGS(model.parameters())\n"
        "optimizer.step(lambda: model(images)['y'].mean())",
        {"accumulate": 2},
        {"accumulate": "refused: LBFGS computes the loss several times in a step"},
        None,
    ),
}


@pytest.mark.long
def test_settings_of_models_are_applied_or_refused_with_the_reason(newest):
    found = run_cases(newest, MODELS, OF_MODELS, ALL, {"TORCHDYNAMO_DISABLE": "1", "CUDA_VISIBLE_DEVICES": ""})
    for name, (_, _, expected, shown) in OF_MODELS.items():
        process, printed = found[name]
        outcomes = outcomes_of(process)
        assert outcomes.keys() == expected.keys(), name
        for setting, outcome in expected.items():
            assert outcomes[setting].startswith(outcome), name
        assert printed == ([] if shown is None else [shown]), name


ACCUMULATED = """
torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
each_step = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
each_epoch = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
rates, calls, epochs = [], 0, 0
rows = TensorDataset(torch.arange(96.0).reshape(24, 4) / 96)
for epoch in range(2):
    for x, in DataLoader(rows, 8):
        {step}
        each_step.step()
    each_epoch.step()
    rates.append(optimizer.param_groups[0]["lr"])
print(json.dumps(dict(weights=model.weight.flatten().tolist(), rates=rates)))
"""
LOOP = """
        optimizer.zero_grad()
        model(x).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
"""
CLOSURE = """
        def closure():
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            return loss
        optimizer.step(closure)
"""


@pytest.mark.long
def test_small_batches_accumulated_train_like_the_large_one(newest):
    cases = {}
    for name, step in (("loop", LOOP), ("closure", CLOSURE)):
        text = ACCUMULATED.format(step=step.strip())
        cases[name + " as it is"] = (text, {"accumulate": 1})
        cases[name + " in parts"] = (text, {"batch_size": 2, "accumulate": 4})
    found = run_cases(newest, PARTS, cases, ALL)
    for name in ("loop", "closure"):
        (whole, [expected]), (parts, [seen]) = found[name + " as it is"], found[name + " in parts"]
        assert len(whole.steps) == len(parts.steps) == 6
        assert outcomes_of(parts)["accumulate"] == outcomes_of(parts)["batch_size"] == "applied"
        assert seen["rates"] == expected["rates"]
        assert seen["weights"] == pytest.approx(expected["weights"], rel=1e-5)


def test_the_losses_of_the_first_steps_are_stated(newest):
    text = (
        PARTS
        + """
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, in DataLoader(data, 2):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        print(json.dumps(loss.item()))
    """
    )
    channel, output = newest.run(text, env={"FULLBORE_SETTINGS": "{}"})
    assert channel.trainer.facts["first_losses"] == [json.loads(line) for line in output.splitlines()]


@pytest.mark.long
def test_what_this_machine_does_not_have_is_refused(newest):
    wanted = {"cpu_affinity": "4095", "tf32": True, "cudnn_benchmark": True}
    (seen,), (outcomes,), _ = steered(newest, PLAIN, wanted, env={"CUDA_VISIBLE_DEVICES": ""})
    assert outcomes["tf32"] == outcomes["cudnn_benchmark"] == "refused: there is no CUDA device"
    assert outcomes["cpu_affinity"].startswith("refused: Invalid argument for 4095: this process may use ")
    assert seen["cpus"] and 4095 not in seen["cpus"]


@pytest.mark.long
def test_without_settings_nothing_of_this_is_even_loaded(newest):
    text = PLAIN + "\n    print([name for name in sys.modules if '_fullbore_hook.steer' in name])\n"
    channel, output = newest.run(text)
    assert output.splitlines()[-1] == "[]"
    assert not [key for process in channel.processes for key in process.facts if key.startswith("setting.")]
