"""Runs scripts under the hook, with every Python on this machine that has torch, and reads what they wrote."""

from __future__ import annotations

import functools
import os
import pathlib
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from channel_reader import Channel  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]
HOOK = ROOT / "python" / "fullbore" / "hook"
SITE = HOOK / "site"
TIMEOUT_S = 300  # a hang, on any machine
# For a script that trains in many children: an optimizer's first step imports what takes most of a short training.
BEFORE_CHILDREN = """
    try:
        import torch._dynamo
    except ImportError:
        pass
"""
# What Python's -W takes: `FULLBORE_TEST_WARNINGS=always` and `=error` run all these tests where each warning shows, or
# is an exception.
WARNINGS = os.environ.get("FULLBORE_TEST_WARNINGS", "")
# `FULLBORE_TEST_HOOK_PATH=python` runs all these tests without the hook's extension.
PATH = os.environ.get("FULLBORE_TEST_HOOK_PATH", "native")
BUILT = ROOT / "build" / "release" / "python" / "fullbore" / "hook" / "core"
NATIVE = os.environ.get("FULLBORE_TEST_NATIVE", str(BUILT))


def torch_version(python: str) -> str:
    """An interpreter's torch version, or "". Read from the version file, because importing torch takes seconds."""
    code = (
        "import importlib.util as u, pathlib, re\n"
        "spec = u.find_spec('torch')\n"
        "text = (pathlib.Path(spec.origin).parent / 'version.py').read_text() if spec else ''\n"
        "print((re.findall(r\"__version__ = '([^']+)'\", text) or [''])[0])"
    )
    answer = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return answer.stdout.strip()


@functools.cache
def python_version(python: str) -> tuple[int, int]:
    code = "import sys; print(*sys.version_info[:2])"
    major, minor = subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.split()
    return int(major), int(minor)


@functools.cache
def is_free_threaded(python: str) -> bool:
    code = "import sys, sysconfig; sys.exit(not sysconfig.get_config_var('Py_GIL_DISABLED'))"
    return subprocess.run([python, "-c", code]).returncode == 0


def find_pythons() -> dict[str, str]:
    """Interpreters with torch, by torch version: this one, those of $FULLBORE_TEST_PYTHONS, and the system's."""
    candidates = [sys.executable, *os.environ.get("FULLBORE_TEST_PYTHONS", "").split(":"), "/usr/bin/python3"]
    found: dict[str, str] = {}
    for python in candidates:
        if python and os.access(python, os.X_OK):
            version = torch_version(python)
            if version:
                found.setdefault(version, python)
    return found


PYTHONS = find_pythons()


def release(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


class Runner:
    """Runs scripts with one interpreter, with or without the hook."""

    def __init__(self, python: str, version: str, directory: pathlib.Path) -> None:
        self.python = python
        self.torch = release(version) if version else (0, 0)
        self.python_version = python_version(python)
        self.directory = directory
        self.path = PATH
        self.runs = 0

    def start(
        self,
        arguments: Sequence[str],
        env: Mapping[str, str] | None = None,
        hooked: bool = True,
        timeout: int = TIMEOUT_S,
    ) -> tuple[subprocess.CompletedProcess, pathlib.Path]:
        """Runs any command. Also returns the channel's directory, which is empty if nothing was written."""
        self.runs += 1
        channel = self.directory / f"channel{self.runs}"
        channel.mkdir()
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("FULLBORE_", "PYTHON"))}
        environment.update(OMP_NUM_THREADS="1", PYTHONPATH=str(SITE), PYTHONWARNINGS=WARNINGS)
        if arguments[0] == self.python and is_free_threaded(self.python):
            environment["PYTHON_GIL"] = "0"  # libraries that torch imports switch it on again, and warn of that
        if hooked:
            environment.update(FULLBORE_CHANNEL=str(channel), FULLBORE_RUN="test", FULLBORE_HOOK_DIR=str(SITE))
            environment["FULLBORE_HOOK_NATIVE"] = NATIVE if self.path == "native" else "0"
        environment.update(env or {})
        result = subprocess.run(
            list(arguments),
            capture_output=True,
            text=True,
            env=environment,
            cwd=self.directory,
            timeout=timeout,
        )
        return result, channel

    def has(self, module: str) -> bool:
        look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
        return subprocess.run([self.python, "-c", look]).returncode == 0

    def needs(self, module: str) -> None:
        """Skips the test where this interpreter does not have it."""
        if not self.has(module):
            pytest.skip(f"no {module} in {self.python}")

    def script(self, text: str) -> str:
        """On Python 3.14 with `fork`, as before, unless the script says what else: what starts its processes by
        default, `forkserver`, imports the script again, and most of these train without `if __name__`."""
        text = textwrap.dedent(text)
        if self.python_version >= (3, 14) and text.startswith("\n") and "start_method" not in text:
            text = "import multiprocessing; multiprocessing.set_start_method('fork', True)" + text
        path = self.directory / "train.py"
        path.write_text(text)
        return str(path)

    def run(self, text: str, *arguments: str, env: Mapping[str, str] | None = None) -> tuple[Channel, str]:
        """Runs a script that must succeed. Returns what it wrote into the channel, and its standard output."""
        result, channel = self.start([self.python, self.script(text), *arguments], env)
        assert result.returncode == 0, result.stderr
        assert str(HOOK) not in result.stderr, "a warning of ours"
        for process in Channel(channel).processes:
            assert not [m for m in process.say("message") if m["severity"] == "error"], process.say("message")
        return Channel(channel), result.stdout


def torches() -> list:
    """Parameters for a test that runs with each torch."""
    return sorted(PYTHONS, key=release) or [pytest.param("", marks=pytest.mark.skip("no Python with torch here"))]


@pytest.fixture(params=torches())
def runner(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Runner:
    """One runner for each torch on this machine."""
    return Runner(PYTHONS[request.param], request.param, tmp_path)


@pytest.fixture
def newest(tmp_path: pathlib.Path) -> Runner:
    """Only the newest torch: for tests that do not depend on the version, or need a new one."""
    if not PYTHONS:
        pytest.skip("no Python with torch")
    version = max(PYTHONS, key=release)
    return Runner(PYTHONS[version], version, tmp_path)


@pytest.fixture(params=["native", "python"])
def either(request: pytest.FixtureRequest, newest: Runner) -> Runner:
    """The newest torch, by each of the hook's paths: for tests of what both do."""
    if request.param == "native" and not list(pathlib.Path(NATIVE).glob("_native*")):
        pytest.skip("the hook's extension is not built")
    newest.path = request.param
    return newest


@pytest.fixture
def bare(tmp_path: pathlib.Path) -> Runner:
    """The interpreter that runs the tests, torch or not."""
    return Runner(sys.executable, "", tmp_path)
