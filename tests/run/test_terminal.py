"""On a terminal: the status line, Ctrl-C, Ctrl-Z and fg, signals, reading from the keyboard."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys

import pytest

pytest.importorskip("pyte")
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from terminal import STATUS, Terminal  # noqa: E402
from waiting import PATIENCE_S, recorded_until_ns, wait_for, wait_until_recorded  # noqa: E402

PYTHON = sys.executable
# Prints every signal that arrived, in order. SIGUSR2 is the last.
COUNT_SIGNALS = """
import os, signal
came, wakeup = os.pipe()
os.set_blocking(wakeup, False)
signal.set_wakeup_fd(wakeup)
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"):
    signal.signal(getattr(signal, name), lambda n, f: None)
print("ready", flush=True)
got = []
while signal.SIGUSR2 not in got:
    got.append(signal.Signals(os.read(came, 1)[0]))
    if len(got) == 1:
        print("first", flush=True)
print("got", *(each.name for each in got[:-1]), flush=True)
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


@pytest.mark.long
def test_the_status_line_is_on_the_last_row_and_output_scrolls_above_it(terminal, fullbore):
    lines = 300
    wait = "until [ -e enough ]; do sleep 0.1; done"
    shown = terminal("sh", "-c", f"for i in $(seq {lines}); do echo line $i; sleep 0.005; done; {wait}")
    shown.until_status()
    shown.until_text(f"line {lines}")
    shown.until_status()
    (fullbore.directory / "enough").touch()
    assert shown.until_end() == 0
    printed = [line for line in shown.lines() if line.startswith("line")]
    assert printed == [f"line {i}" for i in range(1, lines + 1)], "output was lost or mixed up"
    assert not any(STATUS.match(line) for line in shown.lines()), "a status line was left behind"
    assert shown.raw.rfind(b"\x1b[r") > shown.raw.rfind(b";23r"), "part of the screen still does not scroll"


@pytest.mark.parametrize("rows", [24, 12])
def test_an_unfinished_line_stays_where_it_is(terminal, fullbore, rows):
    """A progress bar or a prompt: the status line appears while the cursor is in the middle of a row."""
    wait = "until [ -e enough ]; do sleep 0.1; done"
    shown = terminal("sh", "-c", f"for i in $(seq 30); do echo $i; done; printf 'half '; {wait}; echo done", rows=rows)
    shown.until_text("half")
    shown.until_status()
    (fullbore.directory / "enough").touch()
    assert shown.until_end() == 0
    assert "half done" in shown.lines()


def test_a_resized_window_keeps_the_status_line_on_the_last_row(terminal, fullbore):
    shown = terminal("sh", "-c", "echo begin; until [ -e enough ]; do sleep 0.1; done; echo end")
    for rows in (24, 40, 16):
        shown.resize(rows)
        region = f"[1;{rows - 1}r".encode()  # output under way when the size changed may match by chance
        shown.until(lambda r=region: r in shown.raw and STATUS.match(shown.last_row()) is not None, f"{rows} rows")
    assert sum(bool(STATUS.match(line)) for line in shown.lines()) == 1, "old status lines are left"
    (fullbore.directory / "enough").touch()
    assert shown.until_end() == 0
    assert "end" in shown.lines()


LONG_ENOUGH_S = 1.5  # a status line comes every half second


@pytest.mark.parametrize(
    ("flags", "rows", "env"),
    [
        pytest.param(["-q"], 24, {}, id="-q"),
        pytest.param([], 8, {}, id="small"),
        pytest.param([], 24, {"TERM": "dumb"}, id="dumb"),
        pytest.param([], 24, {"FULLBORE_STATUS": "off"}, id="off"),
        pytest.param([], 24, {}, id="wanted"),
    ],
)
def test_there_is_a_status_line_only_where_it_is_wanted(terminal, fullbore, flags, rows, env, request):
    shown = terminal("sh", "-c", "until [ -e enough ]; do sleep 0.1; done", flags=tuple(flags), rows=rows, **env)
    wait_for(lambda: recorded_until_ns(fullbore.directory / "runs"), "a run")
    wait_until_recorded(fullbore.directory / "runs", LONG_ENOUGH_S)
    (fullbore.directory / "enough").touch()
    assert shown.until_end() == 0
    wanted = request.node.callspec.id == "wanted"
    assert (b"\x1b[1;" in shown.raw) == wanted
    if flags:
        assert shown.raw == b""


def test_ctrl_c_reaches_the_command_once(terminal, fullbore):
    script = fullbore.script("count.py", COUNT_SIGNALS)
    shown = terminal(PYTHON, str(script))
    shown.until_text("ready")
    shown.type("\x03")
    shown.until_text("first")
    send_the_last_one(shown.pid)
    assert shown.until_end() == 0
    # The terminal's echo of the key may come before or after the end of the line that is being printed.
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
    shown.until_status()
    shown.type("Ada\r")
    assert shown.until_end() == 0
    assert "name? Ada" in shown.lines()
    assert "you said Ada" in shown.lines()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT", "SIGUSR1"])
def test_a_signal_sent_to_us_alone_is_passed_on(fullbore, name):
    script = fullbore.script("count.py", COUNT_SIGNALS)
    process, runs = fullbore.start(PYTHON, script)
    assert process.stdout.readline() == b"ready\n"
    os.kill(process.pid, getattr(signal, name))
    assert rest_of_signals(process) == f"got {name}\n".encode()


def test_a_signal_sent_to_the_whole_group_reaches_the_command_once(fullbore):
    """`kill %1`, a batch system's cancel: the command already has it, and a second one would interrupt its clean-up."""
    script = fullbore.script("count.py", COUNT_SIGNALS)
    process, runs = fullbore.start(PYTHON, script)
    assert process.stdout.readline() == b"ready\n"
    os.killpg(process.pid, signal.SIGTERM)
    assert rest_of_signals(process) == b"got SIGTERM\n"


def test_it_does_so_however_late_our_witness_of_signals_gets_a_core(fullbore):
    script = fullbore.script("count.py", COUNT_SIGNALS)
    process, runs = fullbore.start(PYTHON, script)
    assert process.stdout.readline() == b"ready\n"
    wait_for(lambda: len(witnesses(process.pid)) == 1, "our witness has started and has its name")
    (witness,) = witnesses(process.pid)
    os.kill(witness, signal.SIGSTOP)
    wait_for(lambda: state_of(witness) == "T", "it has no core")
    os.killpg(process.pid, signal.SIGTERM)
    wait_for(lambda: not is_pending(process.pid, signal.SIGTERM), "we have taken the signal, and ask the witness")
    os.kill(witness, signal.SIGCONT)
    assert rest_of_signals(process) == b"got SIGTERM\n"


def test_a_closed_terminal_ends_the_command_and_the_run_is_saved(fullbore):
    """SIGHUP from a terminal that closes, without a shell that could pass it on."""
    arguments = fullbore.arguments(["sh", "-c", "echo ready; exec sleep 60"], ["-o", "runs"])
    gone = Terminal(arguments, fullbore.environment(), fullbore.directory)
    gone.until_text("ready")
    os.close(gone.fd)
    _, status = os.waitpid(gone.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGHUP
    (run_file,) = (fullbore.directory / "runs").glob("*.fbr")
    assert fullbore.explain(run_file)["exit_status"] == 128 + signal.SIGHUP


def is_pending(pid: int, number: int | None = None) -> bool:
    """Whether this signal, or else any, is pending in a process. SIGCHLD may be once the witness was stopped."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    masks = re.findall(r"^(?:SigPnd|ShdPnd):\t(\w+)", status, re.MULTILINE)
    wanted = ~0 if number is None else 1 << number - 1
    return any(int(mask, 16) & wanted for mask in masks)


def send_the_last_one(recorder: int) -> None:
    """Signals are passed on in the order in which we took them: one passed on twice comes before this one."""
    wait_for(lambda: not is_pending(recorder), "all signals so far are taken")
    os.kill(recorder, signal.SIGUSR2)


def rest_of_signals(process: subprocess.Popen) -> bytes:
    """What COUNT_SIGNALS prints when it ends, once the first signal has reached it."""
    assert process.stdout.readline() == b"first\n"
    send_the_last_one(process.pid)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    return out


def state_of(pid: int) -> str:
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def witnesses(group: int) -> list[int]:
    """The processes of a group that have the name of our signal witness."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except OSError:  # it has ended in the meantime
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


def test_ctrl_z_stops_us_and_the_command_and_fg_continues_both(fullbore, shell):
    script = fullbore.script("ticker.py", TICKER)
    shell.enter(shlex.join(fullbore.arguments([PYTHON, script], ["-o", "runs"])))
    shell.until_status()
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
        shell.until_status()
        assert state_of(pid) != "T"
    (fullbore.directory / "enough").touch()
    shell.until_text("ended well")
    shell.until_text("fullbore explain")
    shell.enter("echo status $?")
    shell.until_text("\nstatus 0")


def test_in_the_background_there_is_no_status_line_and_fg_brings_it(fullbore, shell):
    script = fullbore.script("ticker.py", TICKER)
    shell.enter(shlex.join(fullbore.arguments([PYTHON, script], ["-o", "runs"])) + " >ticks &")
    wait_for((fullbore.directory / "pid").exists, "the command is started")
    wait_until_recorded(fullbore.directory / "runs", LONG_ENOUGH_S)
    shell.enter("echo still here")
    shell.until_text("\nstill here")
    assert b"\x1b[1;" not in shell.raw
    shell.enter("fg")
    shell.until_status()
    (fullbore.directory / "enough").touch()
    shell.until_text("fullbore explain")


def test_kill_and_wait_of_a_job_work_as_without_us(fullbore, shell):
    command = ["sh", "-c", "touch started; exec sleep 60"]
    shell.enter(shlex.join(fullbore.arguments(command, ["-q", "-o", "runs"])) + " &")
    wait_for((fullbore.directory / "started").exists, "the command is started")
    shell.enter("kill %1; wait %1; echo status $?")
    shell.until_text("\nstatus 143")


def test_a_stop_of_the_command_alone_does_not_stop_us_where_nobody_would_continue_us(fullbore):
    """A supervisor that pauses and resumes the training by the training's own process id."""
    process, runs = fullbore.start("sh", "-c", "echo $$; while [ ! -e enough ]; do sleep 0.05; done; exit 4")
    pid = int(process.stdout.readline())
    for stop in (signal.SIGSTOP, signal.SIGTSTP):
        os.kill(pid, stop)
        wait_for(lambda: state_of(pid) in "TS", "a stop")
        wait_until_recorded(runs, 0.5)  # by the recorder, which is not stopped
        os.kill(pid, signal.SIGCONT)
    (fullbore.directory / "enough").touch()
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 4
