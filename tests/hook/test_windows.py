"""Windows of torch's own profiler: what they record, and what they must not disturb."""

from __future__ import annotations

import json
import pathlib

import pytest
from channel_reader import Channel, Process
from conftest import PYTHONS, Runner

STEPS, FIRST = 3, 10
ASKED = {"FULLBORE_WINDOWS": f"{STEPS}@{FIRST}"}

TRAINING = """
    import os, sys
    import torch
    from torch import nn
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    def step():
        optimizer.zero_grad()
        loss = model(torch.ones(8, 16)).sum()
        loss.backward()
        optimizer.step()
        return loss.item()
"""


def windowed(process: Process) -> list[int]:
    """The steps that are marked as slowed down."""
    return [number for number, record in enumerate(process.steps) if record.c == 1]


def traces(process: Process, directory: pathlib.Path) -> list[dict]:
    return [json.loads((directory / line["file"]).read_text()) for line in process.say("device_window")]


def marks(trace: dict) -> list[dict]:
    return [event for event in trace["traceEvents"] if event.get("name", "").startswith("ProfilerStep#")]


@pytest.mark.long
def test_whole_steps_are_recorded_where_they_were_asked_for(newest):
    result, directory = newest.start(
        [newest.python, newest.script(TRAINING + "    for _ in range(30): step()\n")], ASKED
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    trainer = Channel(directory).trainer
    said = trainer.one("device_window")
    assert (said["first_step"], said["steps"]) == (FIRST, STEPS)
    (trace,) = traces(trainer, directory)
    assert len(marks(trace)) == STEPS
    names = [event.get("name") for event in trace["traceEvents"]]
    assert names.count("aten::linear") == 2 * STEPS


@pytest.mark.long
def test_slow_steps_are_marked_with_the_one_that_ends_the_window(newest):
    channel, _ = newest.run(TRAINING + "    for _ in range(30): step()\n", env=ASKED)
    assert len(channel.trainer.steps) == 30
    assert windowed(channel.trainer) == list(range(FIRST, FIRST + STEPS + 1))


# Nobody asked: a run that is long enough by the plan's own figures, which the test makes smaller.
SOON = """
    plan = sys.modules["_fullbore_hook.torch.window_plan"]
    plan.LEAST_ON_CPU_NS, plan.FIXED_NS, plan.OPERATOR_NS, plan.COMPUTES = 0, 0, 1, 0
    for _ in range(80): step()
"""


@pytest.mark.long
def test_on_a_cpu_a_run_that_is_long_enough_has_a_window_by_itself(newest):
    channel, said = newest.run(TRAINING + SOON)
    said_of_it = channel.trainer.one("device_window")
    assert said_of_it["steps"] in (1, 3)
    first = said_of_it["first_step"]
    assert windowed(channel.trainer) == list(range(first, first + said_of_it["steps"] + 1))
    assert said == "" and channel.trainer.say("message") == []


@pytest.mark.long
@pytest.mark.parametrize("env", [{"FULLBORE_WINDOWS": "off"}, {"FULLBORE_TRIAL": "1"}, {"WORLD_SIZE": "2"}])
def test_it_has_none_where_that_is_switched_off_in_trials_and_beside_other_ranks(newest, env):
    channel, _ = newest.run(TRAINING + SOON, env=env)
    assert channel.trainer.say("device_window") == [] and windowed(channel.trainer) == []


@pytest.mark.long
def test_on_a_cpu_a_short_run_has_no_window_unless_somebody_asks(newest):
    channel, _ = newest.run(TRAINING + "    for _ in range(60): step()\n")
    assert channel.trainer.say("device_window") == [] and windowed(channel.trainer) == []


@pytest.mark.long
def test_a_torch_that_does_not_count_its_nodes_has_no_window_by_itself(newest):
    check = """
    windows = sys.modules["_fullbore_hook.torch.windows"]
    class Old:
        class _C:
            _autograd = object()
    print(windows.plan_on_cpu(Old), windows.plan_on_cpu(torch) is not None)
"""
    _, said = newest.run(TRAINING + check)
    assert said == "None True\n"


@pytest.mark.long
def test_a_window_of_its_own_accord_leaves_the_scripts_profiler_alone(newest):
    own = SOON.replace("for _ in range(80): step()", "pass") + OWN.format(before=0)
    channel, said = newest.run(TRAINING + own)
    assert said == "40\n"
    first = channel.trainer.one("device_window")["first_step"]
    assert first >= 20


DENORMALS = """
    table = nn.Parameter(torch.ones(64, 64))
    adam = torch.optim.Adam([table])
    for number in range(12):
        table.grad = torch.zeros(64, 64)
        adam.step()
        if number == 5:
            adam.state[table]["exp_avg"][:32] = {value}
"""


@pytest.mark.long
def test_numbers_too_small_to_be_computed_quickly_are_counted_where_a_window_begins(newest):
    channel, _ = newest.run(TRAINING + DENORMALS.format(value="1e-40"), env={"FULLBORE_WINDOWS": "2@7"})
    said = channel.trainer.facts["denormals"]
    assert list(said) == ["state"] and 0.1 < said["state"]["ratio"] <= 0.5 and said["state"]["ns"] >= 0


@pytest.mark.long
@pytest.mark.parametrize(("rows", "part"), [("768:", 0.25), (":256", 0.25), ("256:768", 0.5)])
def test_numbers_too_small_are_looked_for_all_over_a_table(newest, rows, part):
    script = DENORMALS.format(value="1e-40").replace("(64, 64)", "(1024, 64)").replace("[:32]", f"[{rows}]")
    channel, _ = newest.run(TRAINING + script, env={"FULLBORE_WINDOWS": "2@7"})
    ratio = channel.trainer.facts["denormals"]["state"]["ratio"]
    assert ratio == pytest.approx(part / 2, abs=0.01)  # one of Adam's two tensors


@pytest.mark.long
@pytest.mark.parametrize("value", ["0", "1e-30"])
def test_nothing_is_said_of_small_numbers_that_are_none_of_them(newest, value):
    channel, _ = newest.run(TRAINING + DENORMALS.format(value=value), env={"FULLBORE_WINDOWS": "2@7"})
    assert "denormals" not in channel.trainer.facts


@pytest.mark.long
@pytest.mark.parametrize("end", ["pass", "sys.exit(3)", "raise SystemExit(4)", "raise KeyError(5)"])
def test_a_script_that_ends_within_a_window_ends_as_it_does_without_us(newest, end):
    script = newest.script(TRAINING + f"    for _ in range(12): step()\n    {end}\n")
    plain, _ = newest.start([newest.python, script], {"FULLBORE_WINDOWS": "off"})
    within, directory = newest.start([newest.python, script], ASKED)
    assert (within.returncode, within.stdout, within.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    trainer = Channel(directory).trainer
    assert trainer.say("device_window") == [] and windowed(trainer) == [FIRST, FIRST + 1]


# A device that waits for a rank that has failed never finishes, and whoever waits for it does not either.
STUCK = f"""
    for _ in range({FIRST + 2}): step()
    def waits(*_):
        print("waits for the device", flush=True)
        os._exit(9)
    torch.profiler.profile.stop = torch.cuda.synchronize = waits
    torch.cuda.is_initialized = lambda: True
"""


@pytest.mark.long
@pytest.mark.parametrize("end", ["pass", "sys.exit(3)", "raise KeyError(5)"])
def test_at_the_end_within_a_window_nothing_waits_for_a_device_that_never_finishes(newest, end):
    script = newest.script(TRAINING + STUCK + f"    {end}\n")
    plain, _ = newest.start([newest.python, script], {"FULLBORE_WINDOWS": "off"})
    within, directory = newest.start([newest.python, script], ASKED)
    assert (within.returncode, within.stdout, within.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert Channel(directory).trainer.one("bye")["steps"] == FIRST + 2


# The library of the profiler would wait for ever for a thread that the child does not have.
@pytest.mark.long
@pytest.mark.parametrize("steps", [FIRST + 1, 30], ids=["within", "after"])
def test_a_child_of_a_training_that_had_a_window_ends_as_it_does_without_us(newest, steps):
    fork = f"""
    import ctypes
    for _ in range({steps}): step()
    child = os.fork()
    if child == 0:
        print("said by the child")
        ctypes.CDLL(None).printf(b"left to C's library\\n")
        sys.exit(5)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    script = newest.script(TRAINING + fork)
    plain, _ = newest.start([newest.python, script], {"FULLBORE_WINDOWS": "off"})
    within, _ = newest.start([newest.python, script], ASKED)
    assert (within.returncode, within.stdout, within.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert "said by the child" in plain.stdout and "left to C's library" in plain.stdout and "5" in plain.stdout


IN_A_THREAD = """
    import threading
    looks = []
    sys.modules["_fullbore_hook.core.steps"].now_and_then.append(lambda *step: looks.append(step))
    plan = sys.modules["_fullbore_hook.torch.window_plan"]
    plan.LEAST_ON_CPU_NS, plan.FIXED_NS, plan.OPERATOR_NS, plan.COMPUTES = 0, 0, 1, 0
    plan.FIRST_AFTER_NS, plan.BUDGET = 0, 1
    thread = threading.Thread(target=lambda: [step() for _ in range(200)])
    thread.start()
    thread.join()
    print(len(looks))
"""


@pytest.mark.long
@pytest.mark.parametrize("env", [ASKED, {"FULLBORE_WINDOWS": "0.01"}, {}], ids=["one", "some", "nobody asked"])
def test_a_training_in_another_thread_than_the_main_one_has_no_window_and_no_slower_steps(either, env):
    result, directory = either.start([either.python, either.script(TRAINING + IN_A_THREAD)], env)
    assert (result.returncode, result.stderr) == (0, "")
    trainer = Channel(directory).trainer
    assert trainer.say("device_window") == [] and windowed(trainer) == []
    assert int(result.stdout) < 30
    said = [line["text"] for line in trainer.say("message")]
    assert len(said) == bool(env) and all("another thread than the main one" in text for text in said)


@pytest.mark.long
def test_what_the_script_computes_stays_the_same(newest):
    script = TRAINING + "    print([step() for _ in range(30)])\n"
    _, plain = newest.run(script)
    _, seen = newest.run(script, env=ASKED)
    assert plain == seen


OWN = """
    from torch.profiler import profile, ProfilerActivity
    for _ in range({before}): step()
    with profile(activities=[ProfilerActivity.CPU]) as own:
        for _ in range(20): step()
    print(sum(event.key == "aten::linear" and event.count for event in own.key_averages()))
    for _ in range(20): step()
"""


@pytest.mark.long
def test_no_window_opens_while_the_script_profiles_itself(newest):
    channel, said = newest.run(TRAINING + OWN.format(before=FIRST - 5), env=ASKED)
    assert said == "40\n"
    first = channel.trainer.one("device_window")["first_step"]
    assert first >= FIRST - 5 + 20


@pytest.mark.long
def test_a_window_gives_way_to_a_profiler_of_the_scripts_own(newest):
    channel, said = newest.run(TRAINING + OWN.format(before=FIRST + 1), env=ASKED)
    assert said == "40\n"
    assert channel.trainer.say("device_window") == []
    assert not [line for line in channel.trainer.say("message") if line["severity"] == "warning"]


@pytest.mark.long
@pytest.mark.parametrize("profiler", ["simple", "advanced", "pytorch"])
def test_beside_a_profiler_of_lightning_neither_disturbs_the_other(newest, profiler):
    newest.needs("lightning")
    fit = f"""
    import lightning
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(16, 1)
        def training_step(self, batch, index):
            return self.net(batch[0]).sum()
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)
    data = torch.utils.data.TensorDataset(torch.ones(240, 16))
    trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False, profiler="{profiler}")
    trainer.profiler.describe = lambda: None
    trainer.fit(Module(), torch.utils.data.DataLoader(data, batch_size=8))
    print("aten::linear" in trainer.profiler.summary() or "training_step" in trainer.profiler.summary())
"""
    channel, said = newest.run(TRAINING + fit, env={"FULLBORE_WINDOWS": f"{STEPS}@{FIRST + 5}"})
    trainer = channel.trainer
    assert said.endswith("True\n") and len(trainer.steps) == 30
    assert not [line for line in trainer.say("message") if line["severity"] != "info"]
    assert len(trainer.say("device_window")) == 1


@pytest.fixture
def cuda_build(tmp_path) -> Runner:
    """A torch that was built for CUDA, on whatever machine."""
    for version, python in PYTHONS.items():
        if "+cu" in version:
            return Runner(python, version, tmp_path)
    pytest.skip("no torch built for CUDA: name a Python that has one in FULLBORE_TEST_PYTHONS")


def test_that_no_device_is_used_is_said_once_where_one_could_be(cuda_build):
    script = TRAINING + "    for _ in range(40): step()\n"
    channel, _ = cuda_build.run(script, env={**ASKED, "CUDA_VISIBLE_DEVICES": ""})
    assert channel.trainer.one("device_window")["steps"] == STEPS
    (said,) = channel.trainer.say("message")
    assert said["severity"] == "info" and "no device" in said["text"]


def test_a_build_for_cuda_without_a_device_opens_no_window_unless_somebody_asks(cuda_build):
    script = TRAINING + "    for _ in range(80): step()\n"
    channel, _ = cuda_build.run(script, env={"CUDA_VISIBLE_DEVICES": ""})
    assert len(channel.trainer.steps) == 80 and windowed(channel.trainer) == []
    assert channel.trainer.say("message") == []


@pytest.mark.long
@pytest.mark.parametrize("broken", ["start", "step", "stop", "export_chrome_trace"])
def test_a_profiler_that_fails_is_asked_once_and_the_training_goes_on(newest, broken):
    breaks = f"""
    def boom(*arguments, **named):
        raise MemoryError("injected")
    torch.profiler.profile.{broken} = boom
    print([step() for _ in range(60)][-1] < 0)
"""
    channel, said = newest.run(TRAINING + breaks, env={"FULLBORE_WINDOWS": f"{STEPS}@{FIRST}"})
    assert said in ("True\n", "False\n")
    (why,) = [line for line in channel.trainer.say("message") if line["severity"] == "warning"]
    assert "no more device windows: MemoryError: injected" in why["text"]
    assert len(channel.trainer.steps) == 60
    assert max(windowed(channel.trainer), default=0) <= FIRST + STEPS + 1


@pytest.mark.long
def test_a_child_that_is_forked_inside_a_window_trains_on_without_it(newest):
    script = f"""
    for _ in range({FIRST + 2}): step()
    child = os.fork()
    for _ in range(20): step()
    if child:
        os.waitpid(child, 0)
        print("parent")
    else:
        print("child", flush=True)
        os._exit(0)
    """
    channel, said = newest.run(TRAINING + script, env=ASKED)
    assert sorted(said.split()) == ["child", "parent"]
    said_windows = [len(process.say("device_window")) for process in channel.trainers]
    assert sorted(said_windows) == [0, 1]


@pytest.mark.long
def test_in_a_forked_child_whatever_else_follows_the_steps_still_does(newest):
    script = """
    followed = []
    sys.modules["_fullbore_hook.core.steps"].after_step.append(lambda *step: followed.append(step))
    child = os.fork()
    for _ in range(3): step()
    if child:
        os.waitpid(child, 0)
    print(len(followed), flush=True)
    if not child:
        os._exit(0)
    """
    _, said = newest.run(TRAINING + script, env=ASKED)
    assert said.split() == ["3", "3"]


RANKS = """
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(60): step()
    import atexit
    atexit._run_exitfuncs()
    os._exit(0)  # torch 2.13's gloo threads sometimes abort a regular exit, also without a hook
"""


@pytest.mark.long
@pytest.mark.parametrize("asked", [f"{STEPS}@{FIRST}", "600"])
def test_ranks_open_their_windows_at_the_same_step(newest, asked):
    script = newest.script(TRAINING + RANKS)
    launcher = [newest.python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", script]
    result, directory = newest.start(launcher, {"FULLBORE_WINDOWS": asked})
    assert result.returncode == 0, result.stderr
    ranks = [process for process in Channel(directory).trainers if process.steps]
    assert len(ranks) == 2
    first, second = [process.one("device_window")["first_step"] for process in ranks]
    assert first == second and windowed(ranks[0]) == windowed(ranks[1])
