"""Whatever fails inside the hook, the training ends as it would have ended, and one line says that the hook is off.

Every function of the hook and of what steers that a training runs is found by running one; then each is made to raise
in a training of its own.
"""

from __future__ import annotations

import json

import pytest
from channel_reader import Channel
from conftest import HOOK
from test_marks import SEARCH

SCRIPT = """
    import collections, gc, json, os, sys, types
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    import fullbore

    HOOK = {hook!r}
    # These are the script's call: what they call before and after it is what must not fail.
    CALLS = {{"made", "run", "iterator", "guarded", "remaining", "find_spec", "with_workers", "safe", "mark_step"}}
    CALLS |= {{"__getattr__", "__getitem__", "__call__", "__next__"}}
    # What is asked by everything else whether it may go on, and how it ends.
    ASKED = {{"fail", "is_the_scripts", "never", "drop", "deliver", "raise_later", "record"}}
    ASKED |= {{"codes_of_handlers", "was_handed_its_caller", "variables", "reads_locals"}}
    ASKED |= {{"is_user_file", "_judge", "is_users_class", "get", "factor"}}

    def train(fails):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(torch.arange(32.0).view(8, 4)), 2, shuffle=True)
        losses = []
        try:
            for epoch in range(3):
                for (x,) in loader:
                    optimizer.zero_grad()
                    loss = model(x).square().mean()
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.item())
                model.eval()
                with torch.no_grad():
                    losses.append(model(x).mean().item())
                model.train()
                torch.save(model.state_dict(), os.devnull)
            for batch in fullbore.watch([[1], [2]]):
                fullbore.step()
            if fails:
                model("no tensor")
        except TypeError as error:
            losses.append(type(error).__name__)
        return losses

    def in_child(work):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.write(write, json.dumps(work()).encode())
                code = 0
            except BaseException as error:
                os.write(write, json.dumps(f"{{type(error).__name__}}: {{error}}").encode())
            finally:
                os._exit(code)
        os.close(write)
        with os.fdopen(read) as pipe:
            said = json.loads(pipe.read())
        os.waitpid(child, 0)
        return said, child

    def functions():
        found = [each for each in gc.get_objects() if type(each) is types.FunctionType]
        return [each for each in found if each.__code__.co_filename.startswith(HOOK) and not each.__closure__
                and not {{"fail", "is_the_scripts"}} & set(each.__code__.co_names)]  # these hold a guard themselves

    FUNCTIONS = functions()

    def key(function):
        return f"{{function.__module__}}.{{function.__qualname__}}"

    def run_functions():
        met = set()
        sys.setprofile(lambda frame, event, argument: met.add(frame.f_code))
        train(True)
        sys.setprofile(None)
        names = {{key(each) for each in FUNCTIONS if each.__code__ in met}}
        return sorted(name for name in names if name.startswith("_fullbore_hook."))  # not what the script itself calls

    def plant(name):
        def raises(*arguments, **named):
            raise ArithmeticError("planted")
        for each in FUNCTIONS:
            if key(each) == name:
                each.__code__ = raises.__code__
        return train(True)

    expected, _ = in_child(lambda: train(True))
    names, _ = in_child(run_functions)

    def with_dynamo():  # what an optimizer's first step imports: most of the time of so short a training
        import torch._dynamo
        return in_child(run_functions)[0]

    after_import = set(in_child(with_dynamo)[0])
    assert after_import < set(names), "the import runs functions of ours, too"
    half = names[{half}::2]  # each in one of the two ways in which the hook is there
    for name in sorted(half, key=after_import.__contains__):  # first those that the import itself runs
        if name in after_import:
            import torch._dynamo
        if name.rpartition(".")[2] not in CALLS | ASKED:
            said, child = in_child(lambda: plant(name))
            print(json.dumps([name, child, said == expected, said if said != expected else ""]), flush=True)
"""
STEERED = {"prefetch_factor": 2, "tf32": True, "cudnn_benchmark": True, "channels_last": True}


@pytest.mark.long
def test_each_function_that_raises_leaves_the_training_as_it_is(either):
    env = {**SEARCH, "FULLBORE_AUTOPILOT": "1", "FULLBORE_SETTINGS": json.dumps(STEERED)}
    script = SCRIPT.format(hook=str(HOOK), half=int(either.path == "native"))
    result, directory = either.start([either.python, either.script(script)], env)
    assert result.returncode == 0, result.stderr
    tried = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(tried) > 30, "functions were found"
    assert any(".steer." in name for name, *_ in tried)
    assert [(name, said) for name, _, same, said in tried if not same] == []
    said = {process.pid: process.say("message") for process in Channel(directory).processes}
    switched_off = 0
    for name, child, *_ in tried:
        errors = [message["text"] for message in said.get(child, []) if message["severity"] == "error"]
        assert len(errors) <= 1, (name, errors)
        switched_off += bool(errors)
    assert switched_off > 10
