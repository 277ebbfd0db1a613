"""What a script's own function for a signal raises goes to the script, wherever it comes up in the hook's code."""

from __future__ import annotations

import ast
import pathlib

import pytest
from conftest import HOOK, Runner, python_version
from hook_package import load
from test_marks import SEARCH
from test_warnings import pythons

LOOP = """
    import signal, sys, time
    import fullbore

    class Timeout({base}):
        pass

    def give_up(number, frame):
        raise Timeout

    signal.signal(signal.SIGUSR1, give_up)
    OURS = {ours!r}

    class Interrupt:
        '''Sends the signal at one of the hook's instructions, counted from the first.'''

        def __init__(self, at):
            self.at = at

        def __call__(self, frame, event, argument):
            if not frame.f_code.co_filename.startswith(OURS):
                return None
            # Up to 3.10 Python itself crashes where a tracer raises between two instructions of a line; 3.12 does not
            # call it there; 3.13 goes on as if it had not raised.
            frame.f_trace_opcodes = sys.version_info[:2] == (3, 11)
            if event in ("line", "opcode"):
                self.at -= 1
                if self.at == 0:
                    self.place = f"{{frame.f_code.co_filename}}:{{frame.f_lineno}}"
                    signal.raise_signal(signal.SIGUSR1)
            return self

    def loop(steps=3):
        for batch in fullbore.watch([[1, 2], [3, 4], [5, 6]] * steps):
            fullbore.step()

    def reaches_the_script(at):
        interrupt = Interrupt(at)
        sys.settrace(interrupt)
        try:
            loop(1)
        except Timeout:
            return True
        finally:
            sys.settrace(None)
        assert interrupt.at > 0, f"swallowed at {{interrupt.place}}"
        return False
"""
SWEEP = (
    LOOP
    + """
    loop()
    at = 1
    while reaches_the_script(at):
        at += 1
    hook = sys.modules["_fullbore_hook.core.runtime"].hook
    assert hook.on, "switched itself off"
    sys.modules["_fullbore_hook.sampling.lines"].stop()  # no sample comes between
    sys.modules["_fullbore_hook.sampling.lines"].Sampler.start = lambda self: None
    before, thread = hook.channel.ring.written(), hook.here()
    loop(5)
    after = hook.channel.ring.written() - before
    print(at > 20, after, thread.phase, thread.in_next, thread.open_steps)
    """
)
FIRST_STEPS = (
    LOOP
    + """
    import gc, os
    gc.disable()  # in Python, what comes up at the very beginning of a callback for it is lost
    step, at = {step}, {first}  # each in a child, whose hook begins anew
    while True:
        child = os.fork()
        if child == 0:
            code = 9
            try:
                code = 1 if reaches_the_script(at) else 0
                loop()
                code = code if sys.modules["_fullbore_hook.core.runtime"].hook.steps >= 9 else 8
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, 1), (at, code)
        if code == 0:
            break
        at += step
    print(at > 50)
    """
)


@pytest.fixture(params=pythons())
def each(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Runner:
    return Runner(request.param, "", tmp_path)


@pytest.mark.parametrize("path", ["native", "python"])
@pytest.mark.parametrize("base", ["Exception", "TimeoutError"])
def test_an_exception_of_the_scripts_is_passed_on_at_any_instruction_of_ours(each, path, base):
    each.path = path
    _, output = each.run(SWEEP.format(base=base, ours=str(HOOK)), env=SEARCH)
    assert output == "True 31 0 False []\n", "15 batches, the end, and 15 steps"


@pytest.mark.long
@pytest.mark.parametrize("path", ["native", "python"])
def test_it_is_passed_on_while_the_hook_begins(each, path):
    each.path = path
    first, step = 1, 17
    if each.python_version == (3, 11):  # at instructions, of which there are many: each interpreter has its own of them
        same = [python for python in pythons() if python_version(python) == (3, 11)]
        first, step = 1 + 17 * same.index(each.python), 17 * len(same)
    text = FIRST_STEPS.format(base="Exception", ours=str(HOOK), first=first, step=step)
    _, output = each.run(text, env=SEARCH)
    assert output == "True\n"


COLLECTING = (
    LOOP
    + """
    import gc
    loop()
    notes = [note for note in gc.callbacks if getattr(note, "__name__", "") in ("note", "note_collection")]
    assert len(notes) == 1
    signal.raise_signal  # is looked up before
    seen = 0
    for at in range(1, 60):
        sys.settrace(Interrupt(at))
        try:
            gc.collect()
            sys.settrace(None)
            loop(1)
        except Timeout:
            seen += 1
        finally:
            sys.settrace(None)
    print("the hook's part is not Python" if not hasattr(notes[0], "__code__") else seen > 5)
    """
)


@pytest.mark.parametrize("path", ["native", "python"])
def test_it_is_not_lost_in_a_garbage_collection(each, path):
    """What a callback of the collector raises, Python prints and drops."""
    each.path = path
    result, _ = each.start([each.python, each.script(COLLECTING.format(base="Exception", ours=str(HOOK)))], SEARCH)
    assert result.returncode == 0, result.stderr
    assert result.stdout == ("the hook's part is not Python\n" if path == "native" else "True\n")


EXEMPT = {"ImportError", "StopIteration", "KeyboardInterrupt", "data.NotTranslatable"}
# Begins before there is anything to ask; or ends the process anyway.
NOT_ASKED = {"core/library.py", "site/sitecustomize.py", "torch/drain.py"}
NOT_ASKED |= {f"steer/{name}.py" for name in ("outputs", "view", "writers", "listing")}  # run in a trial only


def asks_first(handler: ast.ExceptHandler) -> bool:
    first = handler.body[0]
    if isinstance(first, ast.Raise) and first.exc is None:
        return True
    if not isinstance(first, ast.If) or not isinstance(first.body[0], ast.Raise) or first.body[0].exc is not None:
        return isinstance(first, ast.If) and "hook.fail(" in ast.unparse(first.test)
    return any(asked in ast.unparse(first.test) for asked in ("is_the_scripts(", "hook.fail(", "self.fail("))


def test_every_except_of_the_hook_asks_first_whose_exception_it_is():
    others = []
    for path in HOOK.rglob("*.py"):
        name = path.relative_to(HOOK).as_posix()
        if name in NOT_ASKED:
            continue
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler):
                kind = "" if node.type is None else ast.unparse(node.type)
                if kind not in EXEMPT and not asks_first(node):
                    others.append(f"{name}:{node.lineno}: except {kind}")
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
                others.append(f"{name}:{node.lineno}: suppress")
    assert not others, "begin with `if is_the_scripts(error): raise` (core/interrupts.py):\n" + "\n".join(others)


interrupts = load("core.interrupts")


class Sent(Exception):
    """By another thread, or by a function for a signal."""


def caught(function) -> Exception:
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError


def test_an_error_of_what_the_hook_calls_is_its_own():
    class Odd:
        @property
        def shape(self):
            raise Sent

    assert not interrupts.is_the_scripts(caught(lambda: Odd().shape))
    assert not interrupts.is_the_scripts(caught(lambda: 1 / 0))


@pytest.mark.parametrize("arguments", [(14, "frame"), ("frame", "line", None)])
def test_a_function_that_was_handed_its_callers_frame_is_no_call_of_ours(arguments):
    import sys

    def raises(*given):
        raise Sent

    given = [sys._getframe() if each == "frame" else each for each in arguments]
    assert interrupts.is_the_scripts(caught(lambda: raises(*given)))
    assert not interrupts.is_the_scripts(caught(lambda: raises(14, "line")))
