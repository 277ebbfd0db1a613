"""The script behaves as without us: its objects, its other hooks, its output, and what happens if we fail."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess

import pytest
from channel_reader import CHECKPOINT, FORWARD, OTHER, Channel
from conftest import HOOK, SITE, WARNINGS

MODEL = """
    import copy, io, pickle, sys
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(6, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 8)))
            self.head = nn.Linear(8, 3)
        def forward(self, x):
            return self.head(self.body(x))

    def step(model, optimizer, batch=4):
        optimizer.zero_grad()
        model(torch.ones(batch, 6)).sum().backward()
        optimizer.step()
"""

OBJECTS = (
    MODEL
    + """
    import inspect
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        step(model, optimizer)
    twin = copy.deepcopy(model)
    again = pickle.loads(pickle.dumps(model))
    buffer = io.BytesIO()
    torch.save(model, buffer)
    print(len(buffer.getvalue()), sorted(vars(model)), sorted(vars(model.head.weight)))
    x = torch.ones(1, 6)
    print(model(x).tolist(), torch.equal(twin(x), model(x)), torch.equal(again(x), model(x)))
    print(pickle.loads(pickle.dumps(torch.save)) is torch.save, torch.save.__module__, inspect.signature(torch.save))
    print(inspect.signature(torch.autograd.backward), inspect.signature(nn.Module.__call__))
    print(nn.Module.__call__.__name__)
    print(inspect.signature(torch.optim.SGD.step), inspect.signature(torch.optim.SGD.zero_grad))
    print(torch.__spec__.loader, type(torch.__loader__).__name__, "exec_module" in vars(torch.__loader__))
    graph = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(6, 8), nn.ReLU()))
    print(graph.code, torch.jit.script(Net())(x).shape, torch.jit.trace(model, x)(x).shape)
    print(torch.random.initial_seed(), torch.rand(1).item(), __import__("random").Random(1).random())
    print([name for name in sys.modules if "sitecustomize" == name], [p for p in sys.path if "hook" in p])
    """
)


@pytest.mark.long
def test_models_and_functions_copy_pickle_and_trace_as_usual(runner):
    path = runner.script(OBJECTS)
    with_hook, channel = runner.start([runner.python, path])
    without, _ = runner.start([runner.python, path], hooked=False)
    if WARNINGS == "error" and "DeprecationWarning: `torch.jit" in without.stderr:
        pytest.skip("this torch itself warns of what the script uses")
    assert without.returncode == 0, without.stderr
    assert with_hook.stderr == without.stderr
    strip = [line for line in without.stdout.splitlines() if "object at" not in line]
    assert [line for line in with_hook.stdout.splitlines() if "object at" not in line] == strip
    assert len(Channel(channel).trainer.steps) == 4


@pytest.mark.long
def test_a_compiled_model_gets_no_graph_break_from_us_and_its_forward_is_seen(runner):
    if runner.torch < (2, 1):
        pytest.skip("this torch has no torch.compile for this Python")
    channel, output = runner.run(
        MODEL
        + """
    model = Net()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        step(compiled, optimizer)
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = compiled
        def forward(self, x):
            return self.inner(x) * 2
    from torch._dynamo.utils import counters
    print(counters["stats"]["unique_graphs"], sum(counters["graph_break"].values()))
    @torch.compile(backend="eager", fullgraph=True)
    def loss_of(x):
        return model(x).sum()
    loss_of(torch.ones(2, 6)).backward()
    print(sum(counters["graph_break"].values()))
    """
    )
    assert output.split() == ["1", "0", "0"]
    trainer = channel.trainer
    assert len(trainer.steps) == 5 and [r.a for r in trainer.of(FORWARD)][:5] == [1] * 5
    assert trainer.facts["compile"] == "eager" and trainer.facts["model"] == "Net"


@pytest.mark.long
def test_a_model_with_a_compiled_part_is_still_seen(newest):
    if newest.torch < (2, 1):
        pytest.skip("no torch.compile")
    channel, output = newest.run(
        MODEL
        + """
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.compile(Net(), backend="eager")
            self.tail = nn.Linear(3, 1)
        def forward(self, x):
            for _ in range(3):
                y = self.inner(x)
            return self.tail(y)
    model = Outer()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        step(model, optimizer)
    from torch._dynamo.utils import counters
    print(counters["stats"]["unique_graphs"])
    """
    )
    assert output.split() == ["1"]
    forwards = channel.trainer.of(FORWARD)
    assert len([r for r in forwards if r.begin >= channel.trainer.steps[2].end]) == 3  # one per step, not three


@pytest.mark.long
def test_submodules_of_a_watched_class_are_not_separate_forward_passes(newest):
    channel, output = newest.run(
        MODEL
        + """
    model = nn.Sequential(nn.Linear(6, 6), nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plain = nn.Module.__dict__["__call__"]
    for _ in range(5):
        step(model, optimizer)
    print(nn.Module.__dict__["__call__"] is plain, "__call__" in vars(nn.Linear), "__call__" in vars(nn.Sequential))
    """
    )
    assert output.split() == ["False", "False", "True"]  # the patch for learning is gone
    assert len(channel.trainer.of(FORWARD)) == 5


def test_the_users_sitecustomize_still_runs(bare):
    own = bare.directory / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys\nsys.mine = __file__, __name__\n")
    env = {"PYTHONPATH": f"{SITE}{os.pathsep}{own}"}
    code = "import sys, sitecustomize as s; print(sys.mine == (s.__file__, s.__name__), len(sys.path))"
    hooked, _ = bare.start([bare.python, "-c", code], env)
    plain, _ = bare.start([bare.python, "-c", code], {"PYTHONPATH": str(own)}, hooked=False)
    assert hooked.stdout.split()[0] == "True" and hooked.stdout == plain.stdout and hooked.stderr == ""


def test_an_error_in_the_users_sitecustomize_is_reported_as_usual(bare):
    own = bare.directory / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("raise ValueError('mine')\n")
    env = {"PYTHONPATH": f"{SITE}{os.pathsep}{own}"}
    hooked, _ = bare.start([bare.python, "-c", "print(1)"], env)
    plain, _ = bare.start([bare.python, "-c", "print(1)"], {"PYTHONPATH": str(own)}, hooked=False)
    assert (hooked.stdout, hooked.stderr) == (plain.stdout, plain.stderr)
    assert "mine" in hooked.stderr


def test_a_python_without_torch_writes_nothing_and_imports_nothing(bare):
    code = "import sys; print(sorted(sys.modules)); print(sys.path); print(sys.meta_path)"
    hooked, channel = bare.start([bare.python, "-c", code])
    plain, _ = bare.start([bare.python, "-c", code], {"PYTHONPATH": ""}, hooked=False)
    assert list(channel.iterdir()) == []
    modules, path, finders = hooked.stdout.splitlines()
    ours, theirs = set(eval(modules)), set(eval(plain.stdout.splitlines()[0]))
    assert ours - theirs <= {"sitecustomize"}
    assert path == plain.stdout.splitlines()[1] and "FirstFinder" in finders


def test_without_a_channel_nothing_is_touched(bare):
    code = "import sys; print([f for f in sys.meta_path if 'FirstFinder' in str(f)], '_fullbore_hook' in sys.modules)"
    result, _ = bare.start([bare.python, "-c", code], hooked=False)
    assert result.stdout == "[] False\n" and result.stderr == ""


@pytest.mark.long
def test_every_installed_python_can_load_the_hook(bare):
    """Every Python from 3.9 on parses the hook and starts with it; that needs no torch."""
    versions = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    pythons = [p for p in sorted(versions.glob("3.*/bin/python")) if int(p.parts[-3].split(".")[1]) >= 9]
    fake = bare.directory / "fake" / "torch"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text("__version__ = '0.0'\nclass version: cuda = None\n")
    env = {"PYTHONPATH": f"{SITE}{os.pathsep}{fake.parent}"}
    for python in [bare.python, *map(str, pythons)]:
        code = "import torch, sys; print(torch.__version__, torch.__loader__ is torch.__spec__.loader)"
        result, channel = bare.start([python, "-S", "-c", "import sitecustomize;" + code], env)
        assert result.stdout == "0.0 True\n" and result.stderr == "", (python, result)
        (process,) = Channel(channel).processes
        assert process.facts == {"hook_path": bare.path, "torch": "0.0"} and process.say("message") == []
        for source in HOOK.rglob("*.py"):
            command = [python, "-c", f"compile(open({str(source)!r}).read(), 'x', 'exec', dont_inherit=True)"]
            assert subprocess.run(command).returncode == 0, (python, source)


FAULTS = (
    MODEL
    + """
    import os, threading
    from torch.utils.data import DataLoader, TensorDataset
    def boom(*args, **kwargs):
        raise ZeroDivisionError("injected")
    def break_(point):
        module, _, path = point.partition(":")
        owner, names = sys.modules["_fullbore_hook." + module], path.split(".")
        for part in names[:-1]:
            owner = getattr(owner, part)
        setattr(owner, names[-1], boom)
    def train():
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        seen = 0
        for x, in DataLoader(TensorDataset(torch.ones(40, 6)), batch_size=8):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            seen += len(x)
        torch.save(model.state_dict(), "x.pt")
        return seen
    torch.optim.SGD(Net().parameters(), lr=0.1)  # loads what every child needs
    for point in sys.argv[1:]:
        child = os.fork()
        if child == 0:
            break_(point)
            print(train(), os.getpid(), point, flush=True)
            if point == "sampling.lines:read":  # fails whenever the sampler runs, and ends it
                for thread in threading.enumerate()[1:]:
                    thread.join(30)
            os._exit(0)
        os.waitpid(child, 0)
    """
)

POINTS = """
    torch.loader:known torch.loader:describe torch.loader:TorchLoader.tells_ready torch.loader:caller_place
    core.batch:BatchCounter._learn core.runtime:hook.here torch.worker:timed_collate core.steps:state.note_feed
    core.where:caller_place torch.forward:Forward.note torch.forward:parameter_count torch.facts:about_process
    torch.facts:autocast sampling.lines:Sampler sampling.lines:read
""".split()
POINTS_IN_PYTHON = ["torch.worker:runnable_ns", "torch.worker:judge"]  # the extension has its own


@pytest.mark.long
def test_a_failing_hook_switches_itself_off_and_says_so_once(either):
    """Each fault in a forked child, which saves importing torch again."""
    points = POINTS if either.path == "native" else POINTS + POINTS_IN_PYTHON
    result, directory = either.start([either.python, either.script(FAULTS), *points])
    assert (result.returncode, result.stderr) == (0, "")
    children = {process.pid: process for process in Channel(directory).processes}
    lines = [line.split() for line in result.stdout.splitlines()]
    assert [point for _, _, point in lines] == points
    for seen, pid, point in lines:
        assert seen == "40", point
        messages = children[int(pid)].say("message")
        assert [m["severity"] for m in messages] == ["error"], point
        assert "ZeroDivisionError: injected" in messages[0]["text"] and "training goes on" in messages[0]["text"]


@pytest.mark.long
def test_a_hook_that_cannot_start_says_so(newest):
    broken = newest.directory / "hook"
    shutil.copytree(HOOK, broken, ignore=shutil.ignore_patterns("__pycache__"))
    (broken / "finder.py").write_text("raise ZeroDivisionError('injected')\n")
    env = {"PYTHONPATH": str(broken / "site")}
    result, channel = newest.start([newest.python, "-c", "import torch; print(torch.ones(1).item())"], env)
    assert (result.returncode, result.stdout, result.stderr) == (0, "1.0\n", "")
    (text,) = channel.glob("*.jsonl")
    assert "injected" in json.loads(text.read_text())["text"]


TRAINED = (
    MODEL
    + """
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        step(model, optimizer)
    print("trained")
    """
)


@pytest.mark.long
def test_none_of_our_threads_is_left_when_the_interpreter_exits(either):
    """A thread of ours that collected garbage with tensors in it then would abort the process: torch's destructors
    release the GIL, and a thread that asks for it back while Python exits is killed inside them."""
    begin = """
    import atexit, threading
    def at_end():
        print([thread.name for thread in threading.enumerate()])
    atexit.register(at_end)  # the first registered is the last called
    """
    result, _ = either.start([either.python, either.script(begin + TRAINED + "at_end()\n")])
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == ["trained", "['MainThread', 'fullbore-lines']", "['MainThread']"]


@pytest.mark.long
def test_a_full_disk_costs_the_channel_not_the_training(newest):
    disk = newest.directory / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k,mode=700", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount).returncode:
        pytest.skip("needs a small separate file system, and so root")
    try:
        env = {"FULLBORE_CHANNEL": str(disk)}
        result, _ = newest.start([newest.python, newest.script(TRAINED)], env)
        assert (result.returncode, result.stdout, result.stderr) == (0, "trained\n", "")
        assert list(disk.glob("*.ring*")) == []
        (text,) = disk.glob("*.jsonl")
        assert "No space left" in json.loads(text.read_text())["text"]
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.long
@pytest.mark.parametrize("directory", ["missing", "unwritable"])
def test_training_goes_on_without_a_channel_that_cannot_be_opened(newest, directory):
    channel = newest.directory / directory
    if directory == "unwritable":
        channel.write_text("no directory")
    result, _ = newest.start([newest.python, newest.script(TRAINED)], {"FULLBORE_CHANNEL": str(channel)})
    assert (result.returncode, result.stdout, result.stderr) == (0, "trained\n", "")


@pytest.mark.long
def test_a_file_size_limit_is_not_fatal(newest):
    command = f"ulimit -f 64; exec {newest.python} {newest.script(TRAINED)}"
    result, channel = newest.start(["bash", "-c", command])
    assert (result.returncode, result.stdout, result.stderr) == (0, "trained\n", "")
    assert list(channel.glob("*.ring*")) == []


@pytest.mark.long
def test_forked_children_leave_the_parents_ring_alone(either):
    channel, _ = either.run(
        MODEL
        + """
    import multiprocessing, os
    def train(steps):
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(steps):
            step(model, optimizer)
    def idle():
        Net()(torch.ones(1, 6))
    if __name__ == "__main__":
        train(3)
        context = multiprocessing.get_context("fork")
        for target, args in ((train, (4,)), (idle, ())):
            child = context.Process(target=target, args=args)
            child.start()
            child.join()
            assert child.exitcode == 0
        spawned = multiprocessing.get_context("spawn").Process(target=train, args=(5,))
        spawned.start()
        spawned.join()
        train(3)
    """
    )
    assert sorted(len(p.steps) for p in channel.processes) == [4, 5, 6]
    parent = max(channel.processes, key=lambda p: len(p.steps))
    assert all(p.parent == parent.pid for p in channel.processes if p is not parent)


def test_checkpoints_are_counted_once(newest):
    channel, _ = newest.run(
        MODEL
        + """
    class Saves:
        def __reduce__(self):
            torch.save([1], io.BytesIO())
            return (list, ())
    torch.save(Saves(), io.BytesIO())
    """
    )
    assert len(channel.trainer.of(OTHER, CHECKPOINT)) == 1


def test_the_script_sees_no_thread_before_it_steps(newest):
    _, output = newest.run(
        MODEL + "    import threading\n    Net()(torch.ones(1, 6))\n    print(threading.active_count())\n"
    )
    assert output == "1\n"


@pytest.mark.long
@pytest.mark.parametrize("on_disk", [False, True])
def test_the_hook_raises_nothing_to_itself_once_the_training_is_under_way(either, on_disk):
    """Asking whose an exception is takes many times as long as a record: see core/interrupts.py."""
    elsewhere = {"FULLBORE_CHANNEL_DISK": str(either.directory / "channel1")} if on_disk else {}
    _, output = either.run(
        MODEL
        + """
    from torch.utils.data import DataLoader
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    def train(batches):
        for x in DataLoader(torch.ones(batches, 6), batch_size=1):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
    raised = []
    def trace(frame, event, argument):
        if event == "exception" and "/fullbore/hook/" in frame.f_code.co_filename:
            if argument[0] is not StopIteration and frame.f_code.co_name != "__getattr__":  # torch asks for it
                raised.append((frame.f_code.co_name, argument[0].__name__))
        return trace
    train(100)
    sys.settrace(trace)
    train(600)
    sys.settrace(None)
    print(raised)
    """,
        env=elsewhere,
    )
    assert output == "[]\n"
