"""Where the hook cannot be in a Python process, the terminal says why no step was seen."""

from __future__ import annotations

import sys

import pytest

# As long as a training that is worth recording at least takes: two looks at a process whose parent is a shell.
WAIT = "import time; time.sleep(2.5)\n"


def run_python(fullbore, *words: str) -> str:
    done = fullbore.run(*words)
    assert done.code == 0, done.stderr
    said = "\n".join(done.report["messages"])
    assert ("its training steps are not recorded" in said) == ("its training steps are not recorded" in done.stderr)
    return done.stderr


@pytest.mark.parametrize("option", ["-I", "-E", "-S", "-uE"])
def test_an_option_that_keeps_the_hook_out_is_named(fullbore, option):
    script = fullbore.script("train.py", WAIT)
    said = run_python(fullbore, sys.executable, option, str(script))
    assert f"'train.py' was started with python -{option[-1]}" in said
    assert "remove that option" in said


def test_also_on_the_first_line_of_a_script_and_below_a_shell(fullbore):
    script = fullbore.script("train", f"#!{sys.executable} -I\n{WAIT}")
    script.chmod(0o755)
    assert "'train' was started with python -I" in run_python(fullbore, "sh", "-c", f"{script}; true")


def test_a_pythonpath_that_was_set_anew_is_named(fullbore):
    script = fullbore.script("train.py", WAIT)
    said = run_python(fullbore, "sh", "-c", f"PYTHONPATH=/lib {sys.executable} {script}; true")
    assert "'train.py' was started with a PYTHONPATH that lacks the hook" in said


@pytest.mark.long
def test_nothing_is_said_where_nothing_keeps_it_out(fullbore):
    script = fullbore.script("train.py", WAIT)
    said = run_python(fullbore, "sh", "-c", f"PYTHONPATH=/lib:$PYTHONPATH {sys.executable} {script} -I; true")
    assert "was started with" not in said
    done = fullbore.run(sys.executable, "-I", script, flags=["--no-hook"])
    assert "was started with" not in done.stderr, "nobody wanted it there"
