"""The completion scripts, in the shells that read them: what is on the command line after the Tab key."""

from __future__ import annotations

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import time
from collections.abc import Callable

import pytest

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(fullbore completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -U compinit; compinit -u -D; eval "$(fullbore completion zsh)"'),
    "fish": (["fish", "--no-config", "-i"], "fullbore completion fish | source"),
}
PATIENCE_S = 60
SILENCE_S = 0.7  # after which a shell has said what it had to

TO_BEGIN_OF_LINE, END = "\x01", "\r"


class Terminal:
    """A shell on a terminal of its own."""

    def __init__(self, words: list[str], environment: dict[str, str], directory: pathlib.Path):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.execvpe(words[0], words, environment)
        self.said = ""

    def read(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                try:
                    self.said += os.read(self.fd, 4096).decode(errors="replace")
                except OSError:
                    return

    def type(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def settle(self) -> None:
        """Until the shell has answered and is silent."""
        before, until = len(self.said), time.monotonic() + PATIENCE_S
        while len(self.said) == before and time.monotonic() < until:
            self.read(SILENCE_S)
        while (before := len(self.said)) and time.monotonic() < until:
            self.read(SILENCE_S)
            if len(self.said) == before:
                return

    def wait_for(self, pattern: str) -> re.Match[str]:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if found := re.search(pattern, self.said):
                return found
            self.read(0.1)
        raise AssertionError(f"{pattern} is not in {self.said!r}")

    def close(self) -> None:
        os.close(self.fd)
        os.waitpid(self.pid, 0)


@pytest.fixture(params=SHELLS)
def completed(request, fullbore, tmp_path) -> Callable[[str], str]:
    """The command line that the shell makes of one and a Tab."""
    command, setup = SHELLS[request.param]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "fullbore").symlink_to(fullbore.binary)
    environment = fullbore.environment({"TERM": "dumb", "PS1": "$ ", "HOME": str(tmp_path)})
    environment["PATH"] = f"{programs}:{environment['PATH']}"

    def complete(line: str) -> str:
        terminal = Terminal(command, environment, fullbore.directory)
        try:
            terminal.type(f"{setup}; echo rea''dy{END}")
            terminal.wait_for("ready")
            terminal.read(SILENCE_S)
            terminal.type(line)
            terminal.settle()
            terminal.type("\t")
            terminal.settle()
            terminal.type(f"{TO_BEGIN_OF_LINE}printf '<%s>' {END}")
            terminal.wait_for(r"<fullbore>")
            terminal.read(SILENCE_S)
            return " ".join(re.findall(r"<([^<>]*)>", terminal.said[terminal.said.rindex("<fullbore>") :]))
        finally:
            terminal.type(f"exit{END}")
            terminal.close()

    return complete


@pytest.mark.long
def test_a_subcommand_an_option_and_a_value_are_completed(completed):
    assert completed("fullbore expl") == "fullbore explain"
    assert completed("fullbore run --fast") == "fullbore run --fast-data"
    assert completed("fullbore explain --section critical") == "fullbore explain --section critical-path"
    assert completed("fullbore help no-ten") == "fullbore help no-tensor-cores"


@pytest.mark.long
def test_a_value_behind_an_equals_sign_is_completed(completed):
    assert completed("fullbore tune --objective=thr") == "fullbore tune --objective=throughput"


@pytest.mark.long
def test_a_value_with_blanks_stays_one_word(completed):
    assert completed("fullbore explain --what-if device=NVIDIA\\ H200\\ N").endswith("device=NVIDIA H200 NVL")


@pytest.mark.long
def test_a_run_is_completed_by_its_name(completed, fullbore):
    assert fullbore.call("run", "-q", "--name", "first", "--", "true").code == 0
    (run,) = (fullbore.directory / ".fullbore" / "runs").glob("*.fbr")
    assert completed("fullbore explain firs") == f"fullbore explain {run.stem}"
    assert completed(f"fullbore explain {run.stem[:8]}") == f"fullbore explain {run.stem}"


@pytest.mark.long
def test_files_are_completed_where_a_file_is_wanted(completed, fullbore):
    (fullbore.directory / "trace.json").touch()
    assert completed("fullbore explain tra") == "fullbore explain trace.json"
    assert completed("fullbore explain --html tra") == "fullbore explain --html trace.json"


@pytest.mark.long
def test_the_command_behind_the_dashes_is_completed_as_always(completed, fullbore):
    (fullbore.directory / "train.py").touch()
    assert completed("fullbore run -- cat tra") == "fullbore run -- cat train.py"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_has_no_errors_and_says_where_it_belongs(fullbore, shell):
    done = fullbore.call("completion", shell)
    assert done.code == 0
    assert f"fullbore completion {shell}" in done.stdout.decode()
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=done.stdout, capture_output=True)
        assert (checked.returncode, checked.stderr) == (0, b"")


def test_the_hidden_call_reads_nothing_but_names(fullbore):
    runs = fullbore.directory / "runs"
    runs.mkdir()
    (runs / "broken.fbr").write_bytes(b"this is no run")
    (runs / "esc\x1b[31m.fbr").write_bytes(b"nor is this")
    said = fullbore.call("__complete", "explain", "-o", runs, "").stdout.decode()
    assert "broken\trun\n" in said and "\x1b" not in said
