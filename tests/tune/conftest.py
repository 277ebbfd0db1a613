"""The measuring half alone, as other people's searchers call it."""

from __future__ import annotations

import json
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))


@pytest.fixture
def measure(fullbore):
    """Runs `fullbore measure` and returns its line."""

    def call(*arguments: str | os.PathLike) -> dict:
        done = fullbore.call("measure", "--json", *arguments)
        assert done.code == 0, done.stderr
        (line,) = done.stdout.decode().splitlines()
        return json.loads(line)

    return call
