"""Nothing that another user prepared decides what runs as us, or where our files go. Needs root, to be two users."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else as well")

NOBODY = 65534


@pytest.fixture
def open_place(fullbore, tmp_path: pathlib.Path) -> pathlib.Path:
    """A directory that everybody may write to, as /tmp is, in which fullbore is called."""
    fullbore.directory.chmod(0o1777)
    return fullbore.directory


def nobody_makes(directory: pathlib.Path) -> None:
    for part in (directory.parent, directory):
        part.mkdir(exist_ok=True)
        part.chmod(0o777)
        os.chown(part, NOBODY, NOBODY)


def test_a_directory_of_runs_that_somebody_else_made_first_is_not_used(fullbore, open_place: pathlib.Path) -> None:
    runs = open_place / ".fullbore" / "runs"
    nobody_makes(runs)
    done = fullbore.call("run", "--name", "r", "--", "sh", "-c", "exit 5")
    assert done.code == 5, done.stderr
    said = " ".join(done.stderr.split())
    assert "is not used for runs, since others could lead them elsewhere" in said
    assert "belongs to the user 'nobody'" in said
    assert "instead; choose a directory with -o DIR" in said
    assert list(runs.iterdir()) == []


def test_a_link_that_somebody_else_laid_leads_no_run_into_our_folders(fullbore, open_place: pathlib.Path) -> None:
    ours = open_place / "precious"
    ours.mkdir(mode=0o700)
    link = open_place / ".fullbore"
    link.symlink_to(ours)
    os.lchown(link, NOBODY, NOBODY)
    done = fullbore.call("run", "-q", "--", "true")
    assert done.code == 0, done.stderr
    assert list(ours.iterdir()) == []


def test_a_directory_named_with_o_that_everybody_can_write_to_is_not_used(fullbore, open_place: pathlib.Path) -> None:
    shared = open_place / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    done = fullbore.call("run", "-o", "shared", "--", "true")
    assert done.code == 0, done.stderr
    assert "everybody can write to it (`chmod o-w shared` ends that)" in " ".join(done.stderr.split())
    assert list(shared.iterdir()) == []


def test_explain_runs_no_py_spy_that_the_process_s_user_chose(fullbore, open_place: pathlib.Path) -> None:
    proof = open_place / "proof"
    theirs = open_place / "theirs"
    theirs.mkdir()
    program = theirs / "py-spy"
    program.write_text(f"#!/bin/sh\nid > {proof}\n")
    program.chmod(0o755)
    for path in (theirs, program):
        os.chown(path, NOBODY, NOBODY)
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
    with subprocess.Popen(
        [theirs / "python3", "-c", "print(flush=True); import time; time.sleep(60)"],
        executable=python,
        user=NOBODY,
        group=NOBODY,
        cwd="/",
        stdout=subprocess.PIPE,
    ) as target:
        assert target.stdout.readline() == b"\n"
        done = fullbore.call("explain", "--pid", str(target.pid), "--for", "1s", env={"PATH": "/nowhere"})
        target.kill()
    assert done.code != 0
    assert not proof.exists()
    assert f"'{program}', is not run" in " ".join(done.stderr.split())
