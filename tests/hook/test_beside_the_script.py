"""Files of the script's own that have names of the standard library: they are the script's, and never the hook's."""

from __future__ import annotations

import json
import pathlib
import subprocess

import pytest
from channel_reader import LINE, Channel
from conftest import Runner
from test_marks import PACKAGE, SEARCH
from test_warnings import pythons

TRAIN = f"""
import sys, time
sys.path.append({str(PACKAGE)!r})
BEFORE
import fullbore

for _ in fullbore.watch(range(60)):
    time.sleep(0.005)
    fullbore.step()
"""
SHOW = """
files = set(sys.modules) - set(sys.builtin_module_names)
print(sorted(name for name in files if not name.startswith("_fullbore_hook")))
"""
# What the script imports after the hook has loaded, and where it came from: some Pythons have a few of them built in.
THEN = """
import json, logging, mmap, queue, random, re, select, socket, statistics, struct, threading
for module in (json, logging, mmap, queue, random, re, select, socket, statistics, struct, threading):
    print(module.__name__, getattr(module, "__file__", None), getattr(module, "OWN", None))
"""
OWN = ("json", "logging", "mmap", "queue", "random", "select", "socket", "statistics", "struct", "linecache", "dis")


@pytest.fixture(params=pythons())
def any_python(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Runner:
    return Runner(request.param, "", tmp_path)


def same_output(runner: Runner, script: str) -> Channel:
    """What it records, if it prints the same with and without the hook."""
    path = runner.directory / "script.py"
    path.write_text(script)
    flags = {**SEARCH, "PYTHONDONTWRITEBYTECODE": "1"}
    without, _ = runner.start([runner.python, str(path)], flags, hooked=False)
    assert (without.returncode, without.stderr) == (0, "")
    with_hook, channel = runner.start([runner.python, str(path)], flags)
    assert (with_hook.returncode, with_hook.stderr) == (0, "")
    assert with_hook.stdout == without.stdout
    return Channel(channel)


def is_recorded(channel: Channel) -> bool:
    trainer = channel.trainer
    assert trainer.say("message") == []
    return len(trainer.steps) == 60 and len(trainer.of(LINE)) > 0


def used_anyway(python: str) -> set[str]:
    """The names that this script loads by itself: files for those would end it without us."""
    code = TRAIN.replace("BEFORE", "") + "import json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout)) - {"json"}


def names_of_library(python: str) -> set[str]:
    code = "import os, json; print(json.dumps([os.path.dirname(os.__file__)]))"
    (place,) = json.loads(subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout)
    found = {path.stem for path in pathlib.Path(place).glob("*.py")}
    return found | {path.parent.name for path in pathlib.Path(place).glob("*/__init__.py")}


def test_none_of_them_is_run_because_of_the_hook(any_python):
    """One for each module of the library that the script does without."""
    special = {"sitecustomize", "usercustomize", "antigravity", "this"}
    for name in names_of_library(any_python.python) - used_anyway(any_python.python) - special:
        (any_python.directory / f"{name}.py").write_text(f"print({name!r}, 'was imported')\n")
    assert is_recorded(same_output(any_python, TRAIN.replace("BEFORE", "") + SHOW))


@pytest.mark.parametrize("before", ["", "import json, random; print(json.__file__, random.__file__)"])
def test_the_script_gets_its_own_and_the_hook_the_librarys(any_python, before):
    taken = used_anyway(any_python.python)
    for name in set(OWN) - taken:
        (any_python.directory / f"{name}.py").write_text(f"OWN = {name!r}\n")
    then = THEN.replace("logging, ", "").replace("statistics, ", "")  # which would import the others themselves
    assert is_recorded(same_output(any_python, TRAIN.replace("BEFORE", before) + then + SHOW))


def test_what_the_script_imports_is_what_the_hook_uses_where_nothing_stands_for_it(any_python):
    script = TRAIN.replace("BEFORE", "import json, threading")
    look = """
hook = sys.modules.get("_fullbore_hook.core.channel")
print(hook is None or hook.json is json)
"""
    assert is_recorded(same_output(any_python, script + look + THEN))
