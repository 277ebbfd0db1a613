"""`with fullbore.record("name"):` records a part of a script, as `fullbore run` records a command.

Whatever goes wrong with the recording, the block runs as it would without it, and standard error says what is lost.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from types import ModuleType, TracebackType
from typing import Any

from .program import FullboreError, call, find
from .reading import USUAL_DIRECTORY, Run, read
from .recorder import Recorder

HOOK = "_fullbore_hook"
RUN, RUN_FILE = "FULLBORE_RUN", "FULLBORE_RUN_FILE"


REPORT_S = 60.0  # how long the end of a block waits for its report


def say(text: str) -> None:
    try:
        print(f"fullbore: {text}", file=sys.stderr)
    except (OSError, ValueError):  # nobody listens any more
        pass


def late_hook(site: str) -> Any:
    """What begins and ends runs in this process. The hook is known by its own name, wherever it lies, as the directory
    that `fullbore run` puts into PYTHONPATH loads it."""
    package = sys.modules.get(HOOK)
    if package is None:
        place = os.path.dirname(site)
        spec = importlib.util.spec_from_file_location(HOOK, place + "/__init__.py", submodule_search_locations=[place])
        package = sys.modules[HOOK] = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        spec.loader.exec_module(package)  # type: ignore[union-attr]
    return package.of_parts()


class Environment:
    """Variables that are set for a while."""

    def __init__(self, values: dict[str, str]) -> None:
        self.before = {name: os.environ.get(name) for name in values}
        os.environ.update(values)

    def restore(self) -> None:
        for name, value in self.before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class Recording:
    """One recorded block. `path` is its run file, None where nothing is recorded."""

    def __init__(self, name: str, directory: str | os.PathLike[str], quiet: bool) -> None:
        self.name = name
        self.directory = directory
        self.quiet = quiet
        self.path: str | None = None
        self._recorder: Recorder | None = None
        self._environment: Environment | None = None
        self._hook: ModuleType | None = None
        self._pid = 0

    def __enter__(self) -> Recording:
        if RUN in os.environ:
            self.path = os.environ.get(RUN_FILE)
            say(f"'{self.name}' is recorded as a part of the run that goes on already")
            return self
        self._pid = os.getpid()
        try:
            self._begin()
        except Exception as error:
            say(f"'{self.name}' is not recorded: {error}")
            self._leave(failed=True)
        except BaseException:  # Ctrl-C
            self._leave(failed=True)
            raise
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._recorder is None:
            return
        if os.getpid() != self._pid:  # a forked child that leaves the block: the parent's run goes on
            self._recorder.forget()
            return
        self._leave(failed=error is not None, error=error)
        if not self.quiet and self.path is not None:
            try:
                self._show()
            except Exception as why:
                say(f"there is no report of '{self.name}': {why}")

    def _begin(self) -> None:
        self._recorder = Recorder(self.name, os.path.abspath(self.directory))
        values = self._recorder.environment
        self._environment = Environment(values)
        self.path = values[RUN_FILE]
        self._recorder.begin()
        if "FULLBORE_CHANNEL" in values:
            self._attach(values["FULLBORE_HOOK_DIR"])

    def _attach(self, site: str) -> None:
        try:
            hook = self._hook = late_hook(site)
            hook.begin()
        except Exception as error:
            say(f"the steps of '{self.name}' are not seen: {type(error).__name__}: {error}")

    def _leave(self, failed: bool, error: BaseException | None = None) -> None:
        hook, self._hook = self._hook, None
        recorder, self._recorder = self._recorder, None
        try:
            if hook is not None:
                self._try_to(hook.end, error)
            if recorder is not None:
                self._try_to(recorder.end, failed)
        finally:
            if self._environment is not None:
                self._environment.restore()

    def _try_to(self, end: Any, how: Any) -> None:
        try:
            end(how)
        except Exception as why:
            say(f"the end of '{self.name}' may be missing: {type(why).__name__}: {why}")

    def _show(self) -> None:
        """The report, as `fullbore run` prints it at a command's end. It goes on where it cannot be made."""
        try:
            terminal = sys.stderr.fileno()
        except (AttributeError, OSError, ValueError):
            print(self.text(), file=sys.stderr)
            return
        sys.stderr.flush()
        words = [find(), "explain", str(self.path)]
        subprocess.run(words, stdin=subprocess.DEVNULL, stdout=terminal, timeout=REPORT_S)

    def text(self) -> str:
        """The report as text; why there is none, where there is none."""
        try:
            return call("explain", str(self.path))
        except (FullboreError, OSError) as error:
            return f"fullbore: {error}"

    def read(self) -> Run:
        """What was recorded, once the block has ended; until then, what is known so far. Raises FullboreError."""
        if self.path is None:
            raise FullboreError(f"'{self.name}' was not recorded", "standard error says why")
        return read(self.path)


def record(name: str, directory: str | os.PathLike[str] = USUAL_DIRECTORY, quiet: bool = False) -> Recording:
    """Records a block of this script as a run: `with fullbore.record("fine-tuning"): ...`.

    `name` becomes part of the run's id and is made of letters, digits, '-', '_' and '.'. `directory` is where runs are
    kept. At the end the report is printed to standard error, unless `quiet`; `fullbore.read()` gives it as objects.
    Nothing is raised where nothing can be recorded: the block runs all the same. Within `fullbore run` the block is a
    part of that run.
    """
    return Recording(name, directory, quiet)
