"""The manual pages, which the build makes from the same table as --help."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest


@pytest.fixture
def pages(fullbore, tmp_path):
    done = fullbore.call("__man-pages", tmp_path / "man", env={"SOURCE_DATE_EPOCH": "0"})
    assert done.code == 0, done.stderr
    return sorted((tmp_path / "man").iterdir())


def test_there_is_one_for_each_subcommand_and_it_has_each_of_its_options(fullbore, pages):
    names = {page.stem for page in pages}
    assert {"fullbore", "fullbore-run", "fullbore-loader-bench", "fullbore-completion"} <= names
    for page in pages:
        words = page.stem.split("-")[1:]
        usage = fullbore.call(*words, "--help").stdout.decode()
        for option in re.findall(r"^  (?:-\w,)?(--[\w-]+)", usage, re.MULTILINE):
            assert option.replace("-", "\\-") in page.read_text(), (page.stem, option)


def test_they_are_the_same_from_each_build_of_the_same_day(pages):
    assert ".TH FULLBORE 1 1970\\-01\\-01" in pages[0].read_text() or " 1970-01-01 " in pages[0].read_text()


def test_man_and_mandoc_find_nothing_wrong(pages):
    if shutil.which("man"):
        for page in pages:
            done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (0, ""), page.name
    if shutil.which("mandoc"):
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *pages], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "")
    if not (shutil.which("man") or shutil.which("mandoc")):
        pytest.skip("neither man nor mandoc is installed")


def test_hidden_calls_stand_in_no_help(fullbore):
    assert b"__" not in fullbore.call("--help").stdout
