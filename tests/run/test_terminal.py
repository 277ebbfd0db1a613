"""On a terminal: the status line, Ctrl-C, Ctrl-Z and fg, signals, reading from the keyboard."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("pyte")
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from terminal import PATIENCE_S, Terminal  # noqa: E402

PYTHON = sys.executable
STATUS = re.compile(r"^ fullbore  [\d.]+ .*no training step yet")
COUNT_INTERRUPTS = """
import signal, sys, time
got = []
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"):
    signal.signal(getattr(signal, name), lambda n, f: got.append(signal.Signals(n).name))
print("ready", flush=True)
deadline = time.monotonic() + 60
while not got and time.monotonic() < deadline:
    time.sleep(0.02)
time.sleep(0.7)
print("got", *got, flush=True)
"""


@pytest.fixture
def terminal(fullbore):
    opened = []

    def open_terminal(*command: str, flags: tuple[str, ...] = (), rows: int = 24, **env: str) -> Terminal:
        arguments = fullbore.arguments(command, ["-o", "runs", *flags])
        opened.append(Terminal(arguments, fullbore.environment(env), fullbore.directory, rows))
        return opened[-1]

    yield open_terminal
    for each in opened:
        each.close()


def test_the_status_line_stands_on_the_last_row_and_output_scrolls_above_it(terminal, fullbore):
    lines = 300
    wait = "until [ -e enough ]; do sleep 0.1; done"
    shown = terminal("sh", "-c", f"for i in $(seq {lines}); do echo line $i; sleep 0.005; done; {wait}")
    shown.until(lambda: STATUS.match(shown.last_row()) is not None, "a status line")
    shown.until_text(f"line {lines}")
    shown.until(lambda: STATUS.match(shown.last_row()) is not None, "the status line below all lines")
    (fullbore.directory / "enough").touch()
    assert shown.until_end() == 0
    printed = [line for line in shown.lines() if line.startswith("line")]
    assert printed == [f"line {i}" for i in range(1, lines + 1)], "nothing lost, nothing mixed in"
    assert not any(STATUS.match(line) for line in shown.lines()), "the status line is gone"
    assert shown.raw.rfind(b"\x1b[r") > shown.raw.rfind(b";23r"), "the whole screen scrolls again"


def test_a_line_that_is_not_finished_stays_where_it_is(terminal):
    """A progress bar or a prompt: the status line comes while the cursor stands in the middle of a row."""
    for rows in (24, 12):
        shown = terminal(
            "sh", "-c", "for i in $(seq 30); do echo $i; done; printf 'half '; sleep 1.5; echo done", rows=rows
        )
        assert shown.until_end() == 0
        assert "half done" in shown.lines()


def test_a_resized_window_keeps_the_status_line_on_the_last_row(terminal, fullbore):
    shown = terminal("sh", "-c", "echo begin; until [ -e enough ]; do sleep 0.1; done; echo end")
    for rows in (24, 40, 16):
        shown.resize(rows)
        region = f"[1;{rows - 1}r".encode()  # what was on its way when the size changed may match by chance
        shown.until(lambda r=region: r in shown.raw and STATUS.match(shown.last_row()) is not None, f"{rows} rows")
    assert sum(bool(STATUS.match(line)) for line in shown.lines()) == 1, "the old ones are gone"
    (fullbore.directory / "enough").touch()
    assert shown.until_end() == 0
    assert "end" in shown.lines()


@pytest.mark.parametrize("why", ["-q", "small", "dumb", "off"])
def test_there_is_no_status_line_where_it_is_not_wanted(terminal, why):
    shown = terminal(
        "sleep",
        "1.2",
        flags=("-q",) if why == "-q" else (),
        rows=8 if why == "small" else 24,
        **({"FULLBORE_STATUS": "off"} if why == "off" else {}),
    ) if why != "dumb" else terminal("sh", "-c", "sleep 1.2", FULLBORE_STATUS="off", NO_COLOR="1")  # fmt: skip
    assert shown.until_end() == 0
    assert b"\x1b[1;" not in shown.raw
    if why == "-q":
        assert shown.raw == b""


def test_ctrl_c_reaches_the_command_once(terminal, fullbore):
    script = fullbore.script("count.py", COUNT_INTERRUPTS)
    shown = terminal(PYTHON, str(script))
    shown.until_text("ready")
    shown.type("\x03")
    assert shown.until_end() == 0
    # The terminal's echo of the key may stand before or after the end of the line that it meets.
    assert re.findall(r"got .*", shown.text()) == ["got SIGINT"]
    assert "fullbore explain" in shown.text(), "the report comes all the same"


def test_ctrl_c_ends_a_command_that_does_not_catch_it_and_the_report_comes(terminal):
    shown = terminal("sh", "-c", "echo ready; exec sleep 60")
    shown.until_text("ready")
    shown.type("\x03\x03")
    assert shown.until_end() == 128 + signal.SIGINT
    assert "fullbore explain" in shown.text()


def test_a_command_that_reads_the_keyboard_gets_it(terminal):
    shown = terminal(PYTHON, "-c", "print('you said ' + input('name? '))")
    shown.until_text("name?")
    time.sleep(0.7)  # the status line comes while the prompt waits
    shown.type("Ada\r")
    assert shown.until_end() == 0
    assert "name? Ada" in shown.lines()
    assert "you said Ada" in shown.lines()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT", "SIGUSR1"])
def test_a_signal_sent_to_us_alone_is_passed_on(fullbore, name):
    script = fullbore.script("count.py", COUNT_INTERRUPTS)
    process, runs = fullbore.start(PYTHON, script)
    assert process.stdout.readline() == b"ready\n"
    os.kill(process.pid, getattr(signal, name))
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert out == f"got {name}\n".encode()
    assert process.returncode == 0


def test_a_signal_sent_to_everybody_here_reaches_the_command_once(fullbore):
    """`kill %1`, a batch system's cancel: the command has it already, a second would interrupt its cleaning up."""
    script = fullbore.script("count.py", COUNT_INTERRUPTS)
    process, runs = fullbore.start(PYTHON, script)
    assert process.stdout.readline() == b"ready\n"
    os.killpg(process.pid, signal.SIGTERM)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert out == b"got SIGTERM\n"


def test_it_does_so_however_late_our_witness_of_signals_gets_a_core(fullbore):
    script = fullbore.script("count.py", COUNT_INTERRUPTS)
    process, runs = fullbore.start(PYTHON, script)
    assert process.stdout.readline() == b"ready\n"
    wait_for(lambda: len(witnesses(process.pid)) == 1, "our witness has started and has its name")
    (witness,) = witnesses(process.pid)
    os.kill(witness, signal.SIGSTOP)
    wait_for(lambda: state_of(witness) == "T", "it has no core")
    os.killpg(process.pid, signal.SIGTERM)
    time.sleep(0.3)
    os.kill(witness, signal.SIGCONT)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert out == b"got SIGTERM\n"


def test_a_closed_terminal_ends_the_command_and_the_run_is_saved(fullbore):
    """SIGHUP from a terminal that goes away, without a shell that could pass it on."""
    arguments = fullbore.arguments(["sh", "-c", "echo ready; exec sleep 60"], ["-o", "runs"])
    gone = Terminal(arguments, fullbore.environment(), fullbore.directory)
    gone.until_text("ready")
    os.close(gone.fd)
    _, status = os.waitpid(gone.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGHUP
    (run_file,) = (fullbore.directory / "runs").glob("*.fbr")
    assert fullbore.explain(run_file)["exit_status"] == 128 + signal.SIGHUP


def state_of(pid: int) -> str:
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def witnesses(group: int) -> list[int]:
    """The processes of a group that bear the name of our witness of signals."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except OSError:  # it has ended meanwhile
            continue
        if name.endswith("(fullbore-signal") and int(rest.split()[2]) == group:
            found.append(int(stat.parent.name))
    return found


class Shell(Terminal):
    """An interactive bash with job control."""

    def __init__(self, fullbore) -> None:
        bash = shutil.which("bash")
        if bash is None:
            pytest.skip("no bash here")
        environment = {**fullbore.environment(), "PS1": "shell> ", "HISTFILE": ""}
        super().__init__([bash, "--norc", "--noprofile", "-i"], environment, fullbore.directory)
        self.until_text("shell>")

    def enter(self, line: str) -> None:
        self.type(line + "\r")


@pytest.fixture
def shell(fullbore):
    made = Shell(fullbore)
    yield made
    made.close()


TICKER = """
import os, sys, time
open("pid", "w").write(str(os.getpid()))
for i in range(1000):
    print("tick", i, flush=True)
    time.sleep(0.2)
    if os.path.exists("enough"):
        break
print("ended well", flush=True)
"""


def wait_for(what, text: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline, text
        time.sleep(0.02)


def test_ctrl_z_stops_us_and_the_command_and_fg_continues_both(fullbore, shell):
    script = fullbore.script("ticker.py", TICKER)
    shell.enter(subprocess.list2cmdline(fullbore.arguments([PYTHON, script], ["-o", "runs"])))
    shell.until(lambda: STATUS.match(shell.last_row()) is not None, "a status line")
    shell.until_text("tick 0")
    for round_ in (1, 2):
        shell.type("\x1a")
        shell.until_text("Stopped", times=round_)
        pid = int((fullbore.directory / "pid").read_text())
        wait_for(lambda pid=pid: state_of(pid) == "T", "the command is stopped")
        parent = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        wait_for(lambda pid=parent: state_of(pid) == "T", "and so are we")
        shell.enter(f"echo prompt is back {round_}")
        shell.until_text(f"\nprompt is back {round_}")
        assert not STATUS.match(shell.last_row()), "the status line is removed before a stop"
        shell.enter("fg")
        shell.until(lambda: STATUS.match(shell.last_row()) is not None, "the status line again")
        assert state_of(pid) != "T"
    (fullbore.directory / "enough").touch()
    shell.until_text("ended well")
    shell.until_text("fullbore explain")
    shell.enter("echo status $?")
    shell.until_text("\nstatus 0")


def test_in_the_background_there_is_no_status_line_and_fg_brings_it(fullbore, shell):
    script = fullbore.script("ticker.py", TICKER)
    shell.enter(subprocess.list2cmdline(fullbore.arguments([PYTHON, script], ["-o", "runs"])) + " >ticks &")
    wait_for((fullbore.directory / "pid").exists, "the command is started")
    shell.enter("sleep 1.5; echo slept")
    shell.until_text("\nslept")
    assert b"\x1b[1;" not in shell.raw
    shell.enter("fg")
    shell.until(lambda: STATUS.match(shell.last_row()) is not None, "a status line in the foreground")
    (fullbore.directory / "enough").touch()
    shell.until_text("fullbore explain")


def test_kill_and_wait_of_a_job_work_as_without_us(fullbore, shell):
    shell.enter(subprocess.list2cmdline(fullbore.arguments(["sleep", "60"], ["-q", "-o", "runs"])) + " &")
    shell.enter("sleep 0.5; kill %1; wait %1; echo status $?")
    shell.until_text("\nstatus 143")


def test_a_stop_of_the_command_alone_does_not_stop_us_where_nobody_would_continue_us(fullbore):
    """A supervisor that pauses and resumes the training by its own process number."""
    process, runs = fullbore.start("sh", "-c", "echo $$; while [ ! -e enough ]; do sleep 0.05; done; exit 4")
    pid = int(process.stdout.readline())
    for stop in (signal.SIGSTOP, signal.SIGTSTP):
        os.kill(pid, stop)
        wait_for(lambda: state_of(pid) in "TS", "a stop")
        time.sleep(0.5)
        assert state_of(process.pid) != "T"
        os.kill(pid, signal.SIGCONT)
    (fullbore.directory / "enough").touch()
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 4
