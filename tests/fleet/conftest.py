"""Agents and jobs for the tests of this folder, ended with each test; and where what they share lies."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "scripts")]  # servers that the demo of a fleet starts, too

from agents import Agent, Jobs, end, start_agent  # noqa: E402


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    mount = next((fields[1] for fields in mounts if fields[2] == "cgroup2"), None)
    if mount is None or not os.access(mount, os.W_OK) or os.geteuid() != 0:
        pytest.skip("no control groups can be made here")
    made = Jobs(pathlib.Path(mount))
    yield made
    made.end()


@pytest.fixture
def agent(tmp_path: pathlib.Path):
    """Starts one that is ended with the test."""
    started: list[Agent] = []

    def start(*arguments: Any, **how: Any) -> Agent:
        started.append(start_agent(tmp_path, *arguments, **how))
        return started[-1]

    yield start
    for each in started:
        end(each.process)
