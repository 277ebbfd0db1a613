"""`fullbore compare` of one command on two commits: what is measured, and what of the working tree stays as it is."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from tune_scripts import METRIC, tree, whole_runs

IDENTITY = ("-c", "user.name=test", "-c", "user.email=test@localhost")


@pytest.fixture
def repository(fullbore):
    """Two commits of a program that prints a rate, with data that git does not know; returns a way to call git."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    if "overlayfs" not in fullbore.call("doctor").stdout.decode():
        pytest.skip("trials get no private view of the file system here")

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *IDENTITY, *words], cwd=fullbore.directory, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init", "--quiet")
    (fullbore.directory / "rate.txt").write_text("10")
    fullbore.script(
        "train.py",
        """
import pathlib, time
rate = float(pathlib.Path("rate.txt").read_text()) * float(pathlib.Path("data.txt").read_text())
while True:
    time.sleep(0.02)
    print(f"{rate} img/s")
""",
    )
    git("add", ".")
    git("commit", "--quiet", "-m", "first")
    git("tag", "first")
    (fullbore.directory / "rate.txt").write_text("20")
    git("commit", "--quiet", "-a", "-m", "second")
    (fullbore.directory / "data.txt").write_text("5")
    return git


@pytest.mark.long
def test_one_command_is_compared_on_two_commits_and_the_tree_stays_as_it_is(fullbore, compare, repository):
    before, status = tree(fullbore.directory), repository("status", "--porcelain")
    said = compare("--at", "first", *METRIC, "--", sys.executable, "train.py")
    assert said["verdict"] == "faster", said["stderr"]
    assert said["pairs"][0] == whole_runs(50, 100)
    assert said["baseline"]["commit"] == repository("rev-parse", "first")
    assert "train.py at " + said["baseline"]["commit"][:12] in said["terminal"]
    (fullbore.directory / "answer.json").unlink()
    shutil.rmtree(fullbore.directory / ".fullbore")
    assert tree(fullbore.directory) == before
    assert repository("status", "--porcelain") == status
    assert repository("rev-parse", "HEAD") != said["baseline"]["commit"]


@pytest.mark.long
def test_changes_that_are_not_committed_are_the_candidate_or_not_seen(fullbore, compare, repository):
    (fullbore.directory / "rate.txt").write_text("40")
    said = compare("--at", "HEAD", *METRIC, "--", sys.executable, "train.py")
    assert said["pairs"][0] == whole_runs(100, 200)
    assert "in the working tree, with its changes" in said["terminal"]
    said = compare("--at", "HEAD", "--at", "HEAD~1", *METRIC, "--", sys.executable, "train.py")
    assert said["pairs"][0] == whole_runs(100, 50)
    assert said["verdict"] == "slower"
    assert (fullbore.directory / "rate.txt").read_text() == "40"


def test_commits_that_cannot_be_compared_are_refused_with_a_hint(fullbore, repository):
    for commits, said in ((["HEAD"], "nothing that git knows differs"), (["nothing"], "is not a commit of")):
        at = [word for commit in commits for word in ("--at", commit)]
        done = fullbore.call("compare", *at, "--", sys.executable, "train.py")
        assert done.code == 2
        assert said in " ".join(done.stderr.split()) and "hint: " in done.stderr


def test_without_a_private_view_no_commit_is_checked_out(fullbore, repository, blocked):
    (fullbore.directory / "rate.txt").write_text("40")
    without = {"LD_PRELOAD": blocked, "WITHOUT_LANDLOCK": "1"}
    for unprotected, env in (([], {"LD_PRELOAD": blocked}), ([], without), (["--unprotected"], without)):
        done = fullbore.call("compare", "--at", "first", *unprotected, "--", sys.executable, "train.py", env=env)
        assert done.code == 1 and "hint: " in done.stderr
        assert (fullbore.directory / "rate.txt").read_text() == "40"
    assert "--baseline 'cd THERE" in " ".join(done.stderr.split())


@pytest.mark.long
def test_a_tree_that_changes_while_it_is_measured_gives_no_answer(fullbore, repository):
    command = ("compare", "--at", "first", *METRIC, "--", sys.executable, "train.py")
    started = fullbore.begin(fullbore.binary, *command)
    while b"trial 2" not in started.stderr.readline():
        assert started.poll() is None
    (fullbore.directory / "rate.txt").write_text("40")
    assert b"the working tree was changed while it was measured" in started.stderr.read()
    assert started.wait() == 1


def test_outside_a_repository_two_commands_are_the_way(fullbore):
    done = fullbore.call("compare", "--at", "main", "--", "true")
    assert done.code == 2
    assert "--baseline" in done.stderr
