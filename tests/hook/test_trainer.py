"""What the trainer's ring records of the steps, waits and phases of ordinary scripts."""

from __future__ import annotations

import pytest
from channel_reader import BACKWARD, CHECKPOINT, FETCH, FORWARD, GARBAGE, LINE, NEXT, OPTIMIZER, OTHER, Channel
from conftest import PYTHONS, Runner, torches

PARTS = """
    import gc, sys, time
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset, TensorDataset

    class Numbers(Dataset):
        def __init__(self, size, nap=0.0):
            self.size, self.nap = size, nap
        def __len__(self):
            return self.size
        def __getitem__(self, index):
            time.sleep(self.nap)
            return torch.randn(6), index % 3

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(6, 8), nn.ReLU())
            self.head = nn.Linear(8, 3)
        def forward(self, x):
            return self.head(self.body(x))
"""

PLAIN = (
    PARTS
    + """
    def main():
        model, loss_of = Net(), nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train = DataLoader(Numbers(50, 0.001), batch_size=8, shuffle=True)
        valid = DataLoader(Numbers(12), batch_size=4)
        begun = time.monotonic_ns()
        for epoch in range(2):
            model.train()
            for x, y in train:
                optimizer.zero_grad()
                loss = loss_of(model(x), y)
                loss.backward()  # the backward
                optimizer.step()  # the step
            model.eval()
            with torch.no_grad():
                for x, y in valid:
                    loss_of(model(x), y)
            torch.save(model.state_dict(), "x.pt")  # the checkpoint
        rubbish = []
        for _ in range(300000):
            rubbish.append([])
        gc.collect()
        print(begun, time.monotonic_ns())

    if __name__ == "__main__":
        main()
"""
)


@pytest.fixture(scope="module", params=torches())
def plain(request, tmp_path_factory):
    """The plain loop, run once with each torch: its process, its output and the path of its script."""
    runner = Runner(PYTHONS[request.param], request.param, tmp_path_factory.mktemp("plain"))
    channel, output = runner.run(PLAIN)
    return channel.trainer, output, runner


def test_a_plain_loop_is_seen_step_by_step(plain):
    trainer, output, _ = plain
    begun, ended = map(int, output.split())

    assert len(trainer.steps) == 14
    assert len(trainer.of(BACKWARD)) == 14
    # The sampler goes on until Python ends.
    assert all(begun <= r.begin <= r.end <= ended for r in trainer.records if r.kind not in (OTHER, LINE))

    train, valid = trainer.say("loader")
    assert (train["id"], train["dataset"], train["dataset_len"]) == (1, "Numbers", 50)
    assert train["args"]["batch_size"] == 8 and train["args"]["num_workers"] == 0 and train["args"]["shuffle"] is True
    assert valid["args"]["shuffle"] is False and valid["args"]["drop_last"] is False
    assert trainer.one("training_loader")["id"] == 1

    train, valid = ([r for r in trainer.of(NEXT, loader) if not r.makes_iterator] for loader in (1, 2))
    assert [r.a for r in train] == [8, 8, 8, 8, 8, 8, 2, 0] * 2  # the short last batch, then the end of the epoch
    assert [r.c for r in train] == [1, 0, 0, 0, 0, 0, 0, 0] * 2
    assert [r.a for r in valid] == [4, 4, 4, 0] * 2
    assert all(r.b == -1 for r in trainer.of(NEXT))

    # Inline fetches lie inside their waits, and take as long as the dataset sleeps.
    waits, fetches = [r for r in trainer.of(NEXT, 1) if r.a], trainer.of(FETCH, 1)
    assert len(fetches) == len(waits) == 14
    for wait, fetch in zip(waits, fetches):
        assert wait.begin <= fetch.begin <= fetch.end <= wait.end
        assert fetch.a & 0xFFFFFFFF == wait.a
        assert fetch.a >> 32 >= 1000 and fetch.ns >= wait.a * 1_000_000

    # The model and the loss, in training and in evaluation.
    assert [r.a for r in trainer.of(FORWARD)] == ([1] * 14 + [1, 0, 1, 0, 1, 0]) * 2 or [
        r.a for r in trainer.of(FORWARD)
    ] == ([1] * 14 + [0] * 6) * 2
    assert len([r for r in trainer.of(OPTIMIZER) if r.a == 0]) == 14
    assert len(trainer.of(OTHER, CHECKPOINT)) == 2
    assert len(trainer.of(OTHER, GARBAGE)) >= 1


def test_facts_and_places_are_reported(plain):
    trainer, _, runner = plain
    facts = trainer.facts
    assert facts["model"] == "Net" and facts["parameters"] == 6 * 8 + 8 + 8 * 3 + 3
    assert facts["optimizer"] == "SGD" and facts["device"] == "cpu"
    assert facts["precision"] == "float32" and facts["batch_shape"] == [8, 6]
    assert facts["torch_threads"] == 1 and facts["world_size"] == 1
    assert facts["omp_num_threads"] == "1", "as the environment has it, not as torch uses it"
    assert "omp_wait_policy" not in facts and "opencv_threads" not in facts, "neither set nor imported"
    assert tuple(map(int, facts["torch"].split(".")[:2])) == runner.torch

    script = (runner.directory / "train.py").read_text().splitlines()
    for what, comment in (("backward", "# the backward"), ("optimizer_step", "# the step"), ("checkpoint", "# the ch")):
        (where,) = (w for w in trainer.say("where") if w["what"] == what)
        assert where["file"] == str(runner.directory / "train.py") and comment in script[where["line"] - 1]
    file, _, line = trainer.say("loader")[0]["where"].rpartition(":")
    assert file == str(runner.directory / "train.py") and "train = DataLoader" in script[int(line) - 1]

    hello, bye = trainer.one("hello"), trainer.one("bye")
    assert hello["role"] == "trainer" and hello["pid"] == trainer.pid
    assert "argv" not in hello, "a command line may contain secrets, and the recorder knows it anyway"
    assert hello["rank"] == -1 and trainer.rank == -1
    assert bye["steps"] == 14 and bye["hook_ns"] > 0


WATCHED = """
    import torch
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    def train(steps):
        for _ in range(steps):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
"""


@pytest.mark.long
def test_what_somebody_forgot_to_switch_off_is_a_fact(newest):
    always = """
    torch.autograd.set_detect_anomaly(True)
    with torch.autograd.profiler.profile():
        train(600)
    """
    facts = newest.run(WATCHED + always)[0].trainer.facts
    assert facts["anomaly_detection"] is True and facts["profiler"] is True
    for_a_while = """
    with torch.autograd.detect_anomaly(), torch.autograd.profiler.profile():
        train(300)
    train(300)
    """
    facts = newest.run(WATCHED + for_a_while)[0].trainer.facts
    assert facts["anomaly_detection"] is False and not facts.get("profiler")
    facts = newest.run(WATCHED + "    train(600)\n")[0].trainer.facts
    assert "anomaly_detection" not in facts and "profiler" not in facts


@pytest.mark.long
def test_switches_by_which_people_look_for_errors_are_facts_where_they_are_on(newest):
    switches = {"launch_blocking", "deterministic", "distributed_debug"}
    on = "    torch.use_deterministic_algorithms(True)\n    train(5)\n"
    channel, _ = newest.run(WATCHED + on, env={"CUDA_LAUNCH_BLOCKING": "1", "TORCH_DISTRIBUTED_DEBUG": "DETAIL"})
    facts = channel.trainer.facts
    assert facts["launch_blocking"] is True and facts["deterministic"] is True
    assert "distributed_debug" not in facts, "there are no other ranks"
    assert not switches & set(newest.run(WATCHED + "    train(5)\n")[0].trainer.facts)


@pytest.mark.long
def test_gradient_accumulation_makes_one_step(runner):
    channel, _ = runner.run(
        PARTS
        + """
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    for index, (x, y) in enumerate(DataLoader(Numbers(64), batch_size=4)):
        nn.functional.cross_entropy(model(x), y).backward()
        if index % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
    """
    )
    trainer = channel.trainer
    assert len(trainer.steps) == 4 and len(trainer.of(BACKWARD)) == 16
    assert [r.a for r in trainer.batches] == [4] * 16


@pytest.mark.long
def test_of_two_optimizers_the_first_one_counts(runner):
    channel, _ = runner.run(
        PARTS
        + """
    judge, painter = Net(), Net()
    of_judge = torch.optim.Adam(judge.parameters())
    of_painter = torch.optim.Adam(painter.parameters())
    for x, y in DataLoader(Numbers(24), batch_size=4):
        for model, optimizer in ((judge, of_judge), (painter, of_painter)):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
    """
    )
    trainer = channel.trainer
    assert len(trainer.steps) == 6
    assert len([r for r in trainer.of(OPTIMIZER) if r.a == 0]) == 6 + 12  # the painter's steps and every zero_grad


@pytest.mark.long
def test_an_optimizer_that_stops_stepping_is_replaced(either):
    channel, _ = either.run(
        PARTS
        + """
    model = Net()
    warm_up, optimizer = torch.optim.SGD(model.parameters(), lr=0.1), torch.optim.Adam(model.parameters())
    for step in range(80):
        optimizer.zero_grad()
        model(torch.randn(2, 6)).sum().backward()
        (warm_up if step < 5 else optimizer).step()
    """
    )
    assert len(channel.trainer.steps) == 5 + 25


@pytest.mark.long
def test_a_closure_runs_inside_its_step(runner):
    channel, _ = runner.run(
        PARTS
        + """
    model = Net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
    x, y = torch.randn(8, 6), torch.randint(3, (8,))
    def closure():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss
    for _ in range(3):
        optimizer.step(closure)
    """
    )
    trainer = channel.trainer
    assert len(trainer.steps) == 3
    assert len(trainer.of(BACKWARD)) >= 6
    for record in trainer.of(BACKWARD) + trainer.of(FORWARD):
        assert any(step.begin <= record.begin <= record.end <= step.end for step in trainer.steps)


@pytest.mark.long
def test_an_exception_in_a_step_leaves_nothing_open(either):
    channel, _ = either.run(
        PARTS
        + """
    model = Net()
    optimizer = torch.optim.LBFGS(model.parameters())
    def closure():
        raise KeyError("mine")
    for _ in range(2):
        try:
            optimizer.step(closure)
        except KeyError:
            pass
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(2, 6)).sum().backward()
        optimizer.step(lambda: model(torch.randn(2, 6)).sum())
    """
    )
    assert len(channel.trainer.steps) == 3


@pytest.mark.long
def test_threads_have_numbers_and_the_waits_of_a_prefetching_thread_are_its_own(either):
    channel, _ = either.run(
        PARTS
        + """
    import queue, threading
    batches = queue.Queue(2)
    def fetch():
        for batch in DataLoader(Numbers(40, 0.001), batch_size=4):
            batches.put(batch)
        batches.put(None)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad(); model(torch.randn(2, 6)).sum().backward(); optimizer.step()
    threading.Thread(target=fetch).start()
    while True:
        batch = batches.get()
        if batch is None:
            break
        optimizer.zero_grad()
        model(batch[0]).sum().backward()
        optimizer.step()
    """
    )
    trainer = channel.trainer
    assert {r.thread for r in trainer.steps} == {0}
    (other,) = {r.thread for r in trainer.of(NEXT)}
    assert other != 0 and len(trainer.steps) == 12


@pytest.mark.long
def test_the_line_sampler_names_the_line_where_the_time_goes(newest):
    channel, _ = newest.run(
        PARTS
        + """
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    def dawdle():
        time.sleep(0.02)  # here
    for x, y in DataLoader(Numbers(60), batch_size=1):
        optimizer.zero_grad(); model(x).sum().backward(); optimizer.step()
        dawdle()
    """
    )
    trainer = channel.trainer
    lines = {line["id"]: line for line in trainer.say("line")}
    seen = trainer.of(LINE)
    assert len(seen) >= 5
    script = (newest.directory / "train.py").read_text().splitlines()
    naps = [r for r in seen if "# here" in script[lines[r.a]["line"] - 1]]
    assert len(naps) > len(seen) / 2
    assert lines[naps[0].a]["function"] == "dawdle"
    assert {r.b for r in naps} == {0}


@pytest.mark.long
def test_a_command_line_script_is_seen_too(newest):
    code = (
        "import torch; m = torch.nn.Linear(2, 2); o = torch.optim.SGD(m.parameters(), lr=1.)\n"
        "for _ in range(3): m(torch.ones(1, 2)).sum().backward(); o.step()"
    )
    result, directory = newest.start([newest.python, "-c", code])
    trainer = Channel(directory).trainer
    assert result.returncode == 0 and result.stderr == ""
    assert len(trainer.steps) == 3 and len(trainer.of(FORWARD)) == 3
    assert {w["file"] for w in trainer.say("where")} == {"<string>"}


@pytest.mark.long
def test_a_killed_trainer_loses_only_its_bye(newest):
    result, directory = newest.start(
        [
            newest.python,
            newest.script(
                PARTS
                + """
    import os, signal
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        model(torch.randn(2, 6)).sum().backward(); optimizer.step()
    os.kill(os.getpid(), signal.SIGKILL)
    """
            ),
        ]
    )
    assert result.returncode == -9
    trainer = Channel(directory).trainer
    assert len(trainer.steps) == 5 and trainer.say("bye") == []


@pytest.mark.long
@pytest.mark.alone
def test_python_code_between_short_operations_is_sampled_as_long_as_it_takes(newest):
    # Operations release Python's lock, so that a thread which waits for it gets it there and nowhere else.
    channel, output = newest.run(
        PARTS
        + """
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    spent, begun, intervals = 0, time.perf_counter(), []
    for _ in range(1200):
        optimizer.zero_grad(); model(torch.randn(2, 6)).sum().backward(); optimizer.step()
        for _ in range(10):
            torch.tensor([0.5])
            begin = time.perf_counter()
            for i in range(4000):
                i * i  # here
            spent += time.perf_counter() - begin
        intervals.append(sys.getswitchinterval())
    print(spent / (time.perf_counter() - begun), sorted(intervals)[len(intervals) // 2])
    """
    )
    share, interval = map(float, output.split())
    trainer = channel.trainer
    lines = {line["id"]: line["line"] for line in trainer.say("line")}
    script = (newest.directory / "train.py").read_text().splitlines()
    here = next(number for number, text in enumerate(script, 1) if "# here" in text)
    seen = trainer.of(LINE)
    assert len(seen) > 20
    assert len([r for r in seen if lines[r.a] in (here - 1, here)]) / len(seen) > 0.7 * share
    assert interval == pytest.approx(0.005), "shorter for moments only"
