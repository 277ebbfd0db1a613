"""Settings asked for from outside: applied to an unmodified script, or refused with the reason and the rest applied."""

from __future__ import annotations

import json

from channel_reader import Channel

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


def test_each_setting_of_loaders_and_threads_is_applied_and_stated(newest):
    wanted = {"batch_size": 8, "num_workers": 2, "prefetch_factor": 5, "persistent_workers": False}
    wanted |= {"intraop_threads": 2, "cpu_affinity": "0"}
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
            "num_workers": "refused: each worker would give all samples of this iterable dataset: it does not ask "
            "get_worker_info()",
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


def run_cases(runner, parts, cases, settings):
    """Each case's process in the channel, by name, and what it printed."""
    (runner.directory / "cases.json").write_text(json.dumps({name: case[:2] for name, case in cases.items()}))
    text = parts + IN_CHILDREN
    env = {"FULLBORE_SETTINGS": json.dumps(settings)}
    result, directory = runner.start([runner.python, runner.script(text), "cases.json"], env)
    assert (result.returncode, result.stderr) == (0, "")
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


def test_what_is_not_legal_is_refused_with_the_reason_and_the_rest_applied(newest):
    found = run_cases(newest, PARTS, CASES, {"num_workers": 1})
    for name, (_, _, expected, steps) in CASES.items():
        process, _ = found[name]
        assert outcomes_of(process) == expected, name
        assert len(process.steps) == steps, name
    said = [message["text"] for message in found["not legible"][0].say("message")]
    assert len(said) == 1 and said[0].endswith("the run goes on with the script's own settings")


def test_cpus_that_this_process_may_not_use_are_refused_with_those_that_it_may(newest):
    (seen,), (outcomes,), _ = steered(newest, PLAIN, {"cpu_affinity": "4095"})
    assert outcomes["cpu_affinity"].startswith("refused: Invalid argument for 4095: this process may use ")
    assert seen["cpus"] and 4095 not in seen["cpus"]


def test_without_settings_nothing_of_this_is_even_loaded(newest):
    text = PLAIN + "\n    print([name for name in sys.modules if '_fullbore_hook.steer' in name])\n"
    channel, output = newest.run(text)
    assert output.splitlines()[-1] == "[]"
    assert not [key for process in channel.processes for key in process.facts if key.startswith("setting.")]
