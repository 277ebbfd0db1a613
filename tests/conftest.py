"""The real binary, run as users run it. Shared by the tests of `fullbore run` and of other people's programs."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BINARY = pathlib.Path(os.environ.get("FULLBORE_TEST_BINARY", ROOT / "build" / "release" / "fullbore"))
TIMEOUT_S = 180  # a hang, on any machine: nothing here takes that long

# A shell that starts the tests in the background makes them ignore Ctrl-C; the commands here would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)


def has_landlock() -> bool:
    """Whether the kernel can refuse writes: it says which version of Landlock it has, and we need the second."""
    create_ruleset, ask_version = 444, 1
    return ctypes.CDLL(None).syscall(create_ruleset, None, ctypes.c_size_t(0), ask_version) >= 2


# Where a server's time for tests that take long is over (scripts/test_long.sh): seconds since 1970.
UNTIL = float(os.environ.get("FULLBORE_TEST_UNTIL", "inf"))


def pytest_runtest_setup() -> None:
    if time.time() > UNTIL:
        pytest.skip("no time is left for it")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Other files are left out each time; in the same order in all processes that run tests beside each other."""
    if UNTIL != float("inf"):
        files = sorted({item.path for item in items})
        random.Random(UNTIL).shuffle(files)
        items.sort(key=lambda item: files.index(item.path))


class Ended:
    """A command that ended, and what was recorded of it."""

    def __init__(self, code: int, stdout: bytes, stderr: bytes, report: dict[str, Any] | None, runs: pathlib.Path):
        self.code = code
        self.stdout = stdout
        self.stderr_bytes = stderr
        self.stderr = stderr.decode(errors="replace")
        self.report = report
        self.runs = runs

    @property
    def run_file(self) -> pathlib.Path:
        (only,) = self.runs.glob("*.fbr")
        return only


class Fullbore:
    """Runs the binary in a separate directory."""

    binary = BINARY

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        self.count = 0

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """The tests' environment, without what would leak into the command from whoever started them."""
        ours = {"PYTHONPATH", "TERM", "CURL_CA_BUNDLE", "SSL_CERT_FILE"}
        kept = {k: v for k, v in os.environ.items() if not k.startswith("FULLBORE_") and k not in ours}
        # A window of the profiler would begin in what takes more than a few seconds, on a busy machine in any test.
        return {**kept, "OMP_NUM_THREADS": "1", "FULLBORE_WINDOWS": "off", **(extra or {})}

    def arguments(self, command: Sequence[str | os.PathLike], flags: Sequence[str | os.PathLike] = ()) -> list[str]:
        return [os.fspath(a) for a in (BINARY, "run", *flags, "--", *command)]

    def run(
        self,
        *command: str | os.PathLike,
        flags: Sequence[str | os.PathLike] = (),
        env: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT_S,
        **how: Any,
    ) -> Ended:
        """`fullbore run -- command` into a new directory of runs, with its report as JSON."""
        self.count += 1
        runs = self.directory / f"runs{self.count}"
        report = self.directory / f"report{self.count}.json"
        done = subprocess.run(
            self.arguments(command, ["-o", runs, "--json", how.pop("json", report), *flags]),
            env=self.environment(env),
            stdout=how.pop("stdout", subprocess.PIPE),
            stderr=how.pop("stderr", subprocess.PIPE),
            stdin=how.pop("stdin", None if "input" in how else subprocess.DEVNULL),
            timeout=timeout,
            cwd=how.pop("cwd", self.directory),
            **how,
        )
        said = json.loads(report.read_text()) if report.exists() else None
        return Ended(done.returncode, done.stdout or b"", done.stderr or b"", said, runs)

    def start(
        self,
        *command: str | os.PathLike,
        flags: Sequence[str | os.PathLike] = (),
        env: Mapping[str, str] | None = None,
        runs: pathlib.Path | None = None,
        **how: Any,
    ) -> tuple[subprocess.Popen, pathlib.Path]:
        """The same without waiting for it to end."""
        self.count += 1
        runs = runs or self.directory / f"runs{self.count}"
        return self.begin(*self.arguments(command, ["-o", runs, *flags]), env=env, **how), runs

    def begin(self, *command: str | os.PathLike, env: Mapping[str, str] | None = None, **how: Any) -> subprocess.Popen:
        """Any command, without waiting for it to end; in a new session, so that nothing survives the test."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.started.append(
            subprocess.Popen(
                [os.fspath(a) for a in command],
                env=self.environment(env),
                cwd=self.directory,
                start_new_session=True,
                **{**pipes, **how},
            )
        )
        return self.started[-1]

    def call(self, *arguments: str | os.PathLike, **how: Any) -> Ended:
        """Any other subcommand."""
        done = subprocess.run(
            [os.fspath(a) for a in (BINARY, *arguments)],
            env=self.environment(how.pop("env", None)),
            capture_output=True,
            timeout=how.pop("timeout", TIMEOUT_S),
            stdin=subprocess.DEVNULL,
            cwd=self.directory,
            **how,
        )
        return Ended(done.returncode, done.stdout, done.stderr, None, self.directory)

    def explain(self, run_file: str | os.PathLike, *flags: str) -> dict[str, Any]:
        said = self.call("explain", run_file, "--json", "-", *flags)
        assert said.code == 0, said.stderr
        return json.loads(said.stdout)

    def script(self, name: str, text: str) -> pathlib.Path:
        path = self.directory / name
        path.write_text(text)
        return path

    started: list[subprocess.Popen]


@pytest.fixture
def fullbore(tmp_path: pathlib.Path):
    if not BINARY.exists():
        pytest.skip("the binary is not built: make build")
    made = Fullbore(tmp_path)
    made.started = []
    yield made
    for process in made.started:
        try:
            os.killpg(process.pid, signal.SIGKILL)  # the first process group of its session
        except ProcessLookupError:
            pass
        process.communicate()


@pytest.fixture
def certificate(tmp_path: pathlib.Path) -> pathlib.Path:
    """Of a server at 127.0.0.1, signed by itself; the key is beside it."""
    made = subprocess.run(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -addext subjectAltName=IP:127.0.0.1 "
        "-keyout key.pem -out cert.pem".split(),
        cwd=tmp_path,
        capture_output=True,
    )
    if made.returncode != 0:
        pytest.skip("openssl cannot make a certificate here")
    return tmp_path / "cert.pem"


@pytest.fixture(scope="session")
def torch_python() -> str:
    try:
        import torch  # noqa: F401
    except ImportError:
        pytest.skip("torch is not installed here")
    return sys.executable
