"""Under `fullbore run` a command behaves as without it: its streams, directory, environment and exit."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

PYTHON = sys.executable


def python(code: str) -> list[str]:
    return [PYTHON, "-c", code]


def test_every_byte_passes_through_pipes_unchanged(fullbore):
    data = bytes(range(256)) * 4096 + b"no newline at the end"
    copy = fullbore.run("cat", input=data)
    assert copy.stdout == data
    assert copy.code == 0


def test_large_output_is_not_delayed(fullbore):
    size = 64 << 20
    done = fullbore.run("head", "-c", str(size), "/dev/zero")
    assert len(done.stdout) == size


def test_our_own_output_goes_to_stderr_only(fullbore):
    done = fullbore.run("sh", "-c", "echo out; echo err >&2")
    assert done.stdout == b"out\n"
    assert "err\n" in done.stderr
    assert done.stderr.startswith("fullbore: recording to runs1/")
    assert "\x1b" not in done.stderr, "a status line or colour although stderr is not a terminal"


def test_quiet_leaves_stderr_to_the_command(fullbore):
    done = fullbore.run("sh", "-c", "echo out; echo err >&2", flags=["-q"])
    assert (done.stdout, done.stderr) == (b"out\n", "err\n")
    assert done.report is not None


def test_json_on_stdout_comes_after_the_commands_own_output(fullbore):
    done = fullbore.run("sh", "-c", "echo first; sleep 0.3; echo second", json="-")
    assert done.stdout.startswith(b"first\nsecond\n{")
    assert json.loads(done.stdout.removeprefix(b"first\nsecond\n"))["schema"]


@pytest.mark.parametrize("status", [0, 1, 3, 42, 255])
def test_the_exit_status_is_the_commands(fullbore, status):
    assert fullbore.run("sh", "-c", f"exit {status}").code == status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_death_by_a_signal_is_128_plus_its_number(fullbore, number):
    done = fullbore.run("sh", "-c", f"kill -{int(number)} $$")
    assert done.code == 128 + number
    assert done.report["exit_status"] == 128 + number


def test_a_missing_command_is_127_and_leaves_no_run(fullbore):
    done = fullbore.run("no-such-command-anywhere")
    assert done.code == 127
    assert "cannot run 'no-such-command-anywhere': No such file or directory" in done.stderr
    assert list(done.runs.iterdir()) == []


def test_a_file_that_is_not_executable_is_126_and_leaves_no_run(fullbore):
    plain = fullbore.script("plain.txt", "not a program\n")
    for command in (plain, fullbore.directory):
        done = fullbore.run(command)
        assert done.code == 126
        assert "Permission denied" in done.stderr
        assert list(done.runs.iterdir()) == []


def test_a_script_without_a_first_line_runs_as_in_a_shell(fullbore):
    script = fullbore.script("plain", "echo $0 ran\n")
    script.chmod(0o755)
    assert fullbore.run(script).stdout == f"{script} ran\n".encode()


def test_the_working_directory_is_unchanged(fullbore, tmp_path):
    place = tmp_path / "a place" / "with blanks"
    place.mkdir(parents=True)
    assert fullbore.run("pwd", cwd=place).stdout == f"{place}\n".encode()


def test_the_environment_is_unchanged_except_for_what_the_hook_needs(fullbore):
    dump = python("import json, os; print(json.dumps(dict(os.environ)))")
    extra = {"ODD": "a=b\nc", "EMPTY": ""}
    plain = json.loads(subprocess.run(dump, env=fullbore.environment(extra), capture_output=True).stdout)
    under = json.loads(fullbore.run(*dump, env=extra, cwd=os.getcwd()).stdout)
    channel = {"FULLBORE_CHANNEL", "FULLBORE_CHANNEL_DISK"}
    ours = {"FULLBORE_RUN", "FULLBORE_RUN_FILE", "FULLBORE_HOOK_DIR", "FULLBORE_PACKAGE", "PYTHONPATH", *channel}
    assert {k: v for k, v in under.items() if k not in ours} == plain
    assert set(under) - set(plain) == ours


def test_the_users_pythonpath_stays_after_ours(fullbore):
    done = fullbore.run(*python("import os; print(os.environ['PYTHONPATH'])"), env={"PYTHONPATH": "/a:/b"})
    first, *rest = done.stdout.decode().strip().split(":")
    assert pathlib.Path(first, "sitecustomize.py").exists()
    assert rest == ["/a", "/b"]


SEARCH_PATHS = [None, "", ":", "/lib", ":/lib", "/lib:", "/lib::/more", "::/lib", "/lib/:/lib/", "./lib:../lib"]


@pytest.mark.parametrize("path", SEARCH_PATHS, ids=str)
def test_python_finds_modules_where_it_does_without_us(fullbore, path):
    """An empty entry means the working directory (`PYTHONPATH=$PYTHONPATH:$PWD/lib`), an empty variable nothing."""
    (fullbore.directory / "sub").mkdir()
    code = "import os, subprocess, sys\nprint(sys.path)\n"
    child = "subprocess.run([sys.executable, '-c', 'import sys; print(sys.path)'])\n"
    script = fullbore.script("sub/script.py", code + "sys.stdout.flush()\n" + child)
    env = {} if path is None else {"PYTHONPATH": path}
    plain = subprocess.run([PYTHON, script], env=fullbore.environment(env), cwd=fullbore.directory, capture_output=True)
    assert plain.returncode == 0
    assert fullbore.run(PYTHON, script, env=env).stdout == plain.stdout


@pytest.mark.parametrize("path", ["", "::/a:", "/a"])
def test_the_hook_stands_in_front_of_an_unchanged_pythonpath(fullbore, path):
    show = python("import os; print(os.environ['PYTHONPATH'])")
    hook = fullbore.run(*show).stdout.decode().strip()
    assert pathlib.Path(hook, "sitecustomize.py").exists()
    under = fullbore.run(*show, env={"PYTHONPATH": path}).stdout.decode().strip()
    assert under == (f"{hook}:{path}" if path else hook)
    inner = fullbore.arguments(show, ["-q", "-o", "inner"])
    assert fullbore.run(*inner, env={"PYTHONPATH": path}).stdout.decode().strip() == under, "also in a run within a run"


def test_no_descriptor_of_ours_reaches_the_command(fullbore):
    listing = python("import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))")
    plain = subprocess.run(listing, capture_output=True, stdin=subprocess.DEVNULL).stdout
    assert fullbore.run(*listing).stdout == plain


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_closed_for_the_command_too(fullbore, closed):
    """And nothing we open takes its number: otherwise the command's messages would end up in the run file."""
    seen = fullbore.directory / "seen"
    code = "import os; open('seen', 'w').write(str([fd for fd in (0, 1, 2) if os.path.exists(f'/proc/self/fd/{fd}')]))"
    script = fullbore.script("look.py", code)
    command = fullbore.arguments([PYTHON, script], ["-o", "runs"])
    line = subprocess.list2cmdline(command) + " " + closed
    done = subprocess.run(["sh", "-c", line], cwd=fullbore.directory, env=fullbore.environment())
    assert done.returncode == 0
    # Python uses the lowest free number for the file it writes here, so compare with a run without us.
    ours = seen.read_text()
    subprocess.run(["sh", "-c", subprocess.list2cmdline(command[command.index("--") + 1 :]) + " " + closed],
                   cwd=fullbore.directory, env=fullbore.environment(), check=True)  # fmt: skip
    assert ours == seen.read_text()
    (run_file,) = (fullbore.directory / "runs").glob("*.fbr")
    assert fullbore.explain(run_file)["exit_status"] == 0


def test_signals_that_the_caller_ignores_or_blocks_stay_that_way(fullbore):
    masks = ["sh", "-c", "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status"]

    def as_nohup_and_a_job_runner() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})

    plain = subprocess.run(masks, capture_output=True, preexec_fn=as_nohup_and_a_job_runner).stdout
    assert fullbore.run(*masks, preexec_fn=as_nohup_and_a_job_runner).stdout == plain


def test_a_closed_pipe_ends_the_command_as_usual_and_not_us(fullbore):
    """`fullbore run -- yes | head -1`: the command dies of SIGPIPE, the report still appears."""
    with subprocess.Popen(
        fullbore.arguments(["yes"], ["-o", "runs"]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=fullbore.directory,
        env=fullbore.environment(),
    ) as process:
        assert process.stdout.readline() == b"y\n"
        process.stdout.close()
        assert b"fullbore" in process.stderr.read()
    assert process.returncode == 128 + signal.SIGPIPE


@pytest.mark.parametrize("stderr", ["/dev/full", "a closed pipe"])
def test_the_exit_status_is_unchanged_if_nobody_can_read_our_messages(fullbore, stderr):
    if stderr == "/dev/full":
        with open(stderr, "wb") as sink:
            assert fullbore.run("sh", "-c", "exit 7", stderr=sink).code == 7
        return
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as sink:
        assert fullbore.run("sh", "-c", "exit 7", stderr=sink).code == 7


def test_a_shell_script_that_forks_and_execs_is_followed(fullbore):
    script = fullbore.script(
        "pipeline.sh",
        "set -e\necho prepare\n(echo in a subshell)\npython3 -c 'print(\"python\")'\nexec echo the end\n",
    )
    done = fullbore.run("sh", script)
    assert done.stdout == b"prepare\nin a subshell\npython\nthe end\n"


def test_a_daemon_left_behind_is_not_waited_for(fullbore):
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.closerange(0, 3)\n"
        "        time.sleep(150)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "print('done')\n"
    )
    done = fullbore.run(*python(code), timeout=120)
    assert (done.stdout, done.code) == (b"done\n", 0)


def test_a_program_that_never_trains_gets_a_report_of_the_machine(fullbore):
    done = fullbore.run("sh", "-c", "sleep 1.5")
    assert done.code == 0
    assert done.report["window"]["steps"] == 0
    assert done.report["resources"], "the report says nothing about the machine"
    assert "No training seen" in done.stderr


def test_a_run_inside_a_run_is_two_runs(fullbore):
    inner = fullbore.arguments(["sh", "-c", "echo inner; exit 5"], ["-o", "inner", "--name", "inner"])
    outer = fullbore.run(*inner)
    assert (outer.stdout, outer.code) == (b"inner\n", 5)
    assert len(list((fullbore.directory / "inner").glob("*.fbr"))) == 1
    assert outer.run_file.exists()


def test_the_hook_is_in_pythonpath_once_however_deep_the_nesting(fullbore):
    inner = fullbore.arguments(python("import os; print(os.environ['PYTHONPATH'])"), ["-q", "-o", "inner"])
    path = fullbore.run(*inner, env={"PYTHONPATH": "/a"}).stdout.decode().strip().split(":")
    assert len(path) == 2 and path[1] == "/a"
