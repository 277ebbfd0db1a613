"""`fullbore measure`, `tune` and `compare`, as the tests call them."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import jsonschema
import pytest

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
SCHEMA = json.loads((DOCS / "tune.schema.json").read_text())
CONTEST_SCHEMA = json.loads((DOCS / "contest.schema.json").read_text())

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "report"))  # its headless browser
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))  # a cluster

from tune_scripts import MOST_S, PRINTS  # noqa: E402


@pytest.fixture
def measure(fullbore):
    """Runs `fullbore measure` and returns its line."""

    def call(*arguments: str | os.PathLike) -> dict:
        done = fullbore.call("measure", "--json", "-", *arguments)
        assert done.code == 0, done.stderr
        (line,) = done.stdout.decode().splitlines()
        return json.loads(line)

    return call


@pytest.fixture
def tune(fullbore):
    """Runs `fullbore tune` and returns its object, which is as the schema says."""

    def call(*arguments: str | os.PathLike, code: int = 0, **how) -> dict:
        done = fullbore.call("tune", "--json", "answer.json", *arguments, timeout=MOST_S, **how)
        assert done.code == code, done.stderr
        said = json.loads((fullbore.directory / "answer.json").read_text())
        jsonschema.validate(said, SCHEMA)
        said["terminal"] = done.stdout.decode()
        return said

    return call


@pytest.fixture
def compare(fullbore):
    """Runs `fullbore compare` on commands, and returns its object."""

    def call(*arguments: str | os.PathLike, code: int = 0) -> dict:
        done = fullbore.call("compare", "--json", "answer.json", *arguments, timeout=MOST_S)
        assert done.code == code, done.stderr
        said = json.loads((fullbore.directory / "answer.json").read_text())
        jsonschema.validate(said, CONTEST_SCHEMA)
        said["terminal"] = " ".join(done.stdout.decode().split())
        said["stderr"] = done.stderr
        return said

    return call


@pytest.fixture
def printing(fullbore):
    """Words for a program that prints ten times the rate that it is given. Others that print run beside this test."""
    program = fullbore.script(f"prints_{os.getpid()}.py", PRINTS)
    return lambda rate: f"'{sys.executable}' {program.name} {rate}"


@pytest.fixture(scope="session")
def blocked(tmp_path_factory) -> str:
    """A library that, preloaded, takes namespaces away from a program and, with $WITHOUT_LANDLOCK, Landlock, too."""
    library = tmp_path_factory.mktemp("blocked") / "blocked.so"
    source = pathlib.Path(__file__).with_name("blocked.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return str(library)
