"""`fullbore runs --delete` and `--prune`: said before it is done, asked on a terminal, and nothing protected goes."""

from __future__ import annotations

import os
import pathlib
import pty
import subprocess
import time

import pytest


@pytest.fixture
def runs(fullbore) -> pathlib.Path:
    """Three runs that nobody named, and one that somebody did."""
    directory = fullbore.directory / "runs"
    for flags in ([], [], [], ["--name", "win"]):
        done = fullbore.call("run", "-o", directory, "--quiet", *flags, "--", "true")
        assert done.code == 0, done.stderr
    return directory


def names(directory: pathlib.Path) -> list[str]:
    return sorted(each.stem for each in directory.glob("*.fbr"))


def unnamed(directory: pathlib.Path) -> list[str]:
    return [each for each in names(directory) if "win" not in each]


def test_without_a_terminal_nothing_goes_until_it_is_told_yes(fullbore, runs):
    first = unnamed(runs)[0]
    said = fullbore.call("runs", "-o", runs, "--delete", first)
    assert said.code == 0 and first in said.stdout.decode() and b"nothing was deleted" in said.stdout
    assert len(names(runs)) == 4
    said = fullbore.call("runs", "-o", runs, "--delete", first, "--yes")
    assert said.code == 0 and b"deleted: 1 of 1" in said.stdout
    assert first not in names(runs) and len(names(runs)) == 3
    assert not list(runs.glob(f"{first}.*")), "its report went with it"


def test_a_prune_spares_what_was_named_pinned_or_noted(fullbore, runs):
    pinned, noted, _ = unnamed(runs)
    assert fullbore.call("runs", "-o", runs, "--pin", pinned).code == 0
    assert fullbore.call("runs", "-o", runs, "--note", "look again", noted).code == 0
    said = fullbore.call("runs", "-o", runs, "--prune", "--keep-newest", "0", "--yes")
    assert said.code == 0, said.stderr
    assert b"spared" in said.stdout and b"3 of 4" in said.stdout
    assert set(unnamed(runs)) == {pinned, noted} and len(names(runs)) == 3
    refused = fullbore.call("runs", "-o", runs, "--delete", pinned, "--yes")
    assert refused.code == 1 and "pinned" in refused.stderr and pinned in names(runs)
    assert fullbore.call("runs", "-o", runs, "--unpin", pinned).code == 0
    assert fullbore.call("runs", "-o", runs, "--delete", pinned, "--yes").code == 0
    assert pinned not in names(runs)


def test_a_run_that_is_being_recorded_stays(fullbore, runs):
    fullbore.start("sleep", "100", runs=runs)
    until = time.monotonic() + 60
    while not (live := [each for each in names(runs) if each.endswith("sleep")]):
        assert time.monotonic() < until
        time.sleep(0.05)
    time.sleep(1.5)  # until it has written something to list
    refused = fullbore.call("runs", "-o", runs, "--delete", live[0], "--yes")
    assert refused.code == 1 and "being recorded" in refused.stderr
    assert fullbore.call("runs", "-o", runs, "--prune", "--keep-newest", "0", "--yes").code == 0
    assert live[0] in names(runs)


def test_what_is_no_run_of_the_directory_is_not_deleted(fullbore, runs, tmp_path):
    elsewhere = fullbore.directory / "elsewhere"
    assert fullbore.call("run", "-o", elsewhere, "--quiet", "--", "true").code == 0
    (other,) = elsewhere.glob("*.fbr")
    (runs / "link.fbr").symlink_to(other)
    (runs / "notes.fbr").write_text("no run at all")
    for word in (other, "notes", "missing"):
        assert fullbore.call("runs", "-o", runs, "--delete", word, "--yes").code == 2, word
    linked = fullbore.call("runs", "-o", runs, "--delete", "link", "--yes")
    assert linked.code == 1 and "a link stands in its place" in linked.stderr
    assert other.exists() and (runs / "link.fbr").is_symlink() and (runs / "notes.fbr").exists()
    assert fullbore.call("runs", "-o", runs, "--prune", "--keep-newest", "0", "--yes").code in (0, 1)
    assert other.exists() and (runs / "notes.fbr").exists()


def test_a_word_that_may_mean_another_run_deletes_none(fullbore, runs):
    """The same call twice, a variable of a shell that is not set, the beginning of an id, a name of two runs."""
    assert fullbore.call("run", "-o", runs, "--quiet", "--name", "win", "--", "true").code == 0
    first = unnamed(runs)[0]
    longer = [f"{first}-{number}" for number in (2, 3)]
    for old, new in zip(unnamed(runs)[1:], longer):
        (runs / f"{old}.fbr").rename(runs / f"{new}.fbr")
    assert fullbore.call("runs", "-o", runs, "--delete", longer[1], "--yes").code == 0
    assert fullbore.call("runs", "-o", runs, "--delete", first, "--yes").code == 0
    left = names(runs)
    assert longer[0] in left and len(left) == 3
    for word in (first, "", longer[0][:-1], "win"):
        assert fullbore.call("runs", "-o", runs, "--delete", word, "--yes").code == 2, word
    assert names(runs) == left
    one = next(each for each in left if each.endswith("win"))
    assert fullbore.call("runs", "-o", runs, "--delete", one, "--yes").code == 0
    assert fullbore.call("runs", "-o", runs, "--delete", "last", "--yes").code == 0
    assert len(names(runs)) == 1


@pytest.mark.parametrize("next_one", [[], ["--prune", "--keep-newest", "100"], ["--delete", "missing"]])
def test_what_a_removal_that_was_killed_left_goes_with_the_next(fullbore, runs, next_one):
    """Between the two steps of a removal: tests in C++ kill it there (src/watch/removal_test.cc)."""
    left = runs / ".0123456789abcdef.deleted"
    (runs / f"{unnamed(runs)[0]}.fbr").rename(left)
    fullbore.call("runs", "-o", runs, *next_one)
    assert not left.exists() and len(names(runs)) == 3


@pytest.mark.parametrize("answer", ["y", "n", ""])
def test_on_a_terminal_it_asks_first(fullbore, runs, answer):
    terminal, end = pty.openpty()
    command = [fullbore.binary, "runs", "-o", runs, "--prune", "--keep-newest", "0"]
    process = subprocess.Popen([os.fspath(each) for each in command], stdin=end, stdout=end, stderr=end)
    os.close(end)
    said = b""
    while b"[y/N]" not in said:
        said += os.read(terminal, 4096)
    assert len(names(runs)) == 4, "nothing goes before the answer"
    os.write(terminal, answer.encode() + b"\n")
    assert process.wait(timeout=60) == 0
    os.close(terminal)
    assert len(names(runs)) == (1 if answer == "y" else 4)


@pytest.mark.parametrize(
    "flags",
    [
        ["--prune"],
        ["--prune", "--older-than", "soon"],
        ["--prune", "--older-than", "0"],
        ["--older-than", "3d"],
        ["--prune", "--delete", "x"],
    ],
)
def test_what_does_not_say_what_to_delete_is_refused(fullbore, runs, flags):
    assert fullbore.call("runs", "-o", runs, *flags, "--yes").code == 2
    assert len(names(runs)) == 4
