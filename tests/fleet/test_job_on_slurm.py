"""A job of a real Slurm that is queued again while it trains: two allocations, and steps that were lost."""

from __future__ import annotations

import json
import sys
import textwrap
import time

import pytest
from jobs import TRAIN, job, seconds
from slurm_cluster import cluster, missing, said

from tests.conftest import BINARY

pytestmark = [pytest.mark.long, pytest.mark.skipif(missing() != "", reason=missing())]

JOB = """#!/bin/bash
#SBATCH --requeue
export OMP_NUM_THREADS=1 FULLBORE_WINDOWS=off
{binary} run -o runs -q -- {python} train.py -1 truth-$SLURM_RESTART_COUNT.json
"""


def test_a_job_that_is_queued_again_loses_what_it_did_not_save(fullbore, tmp_path_factory):
    fullbore.script("train.py", textwrap.dedent(TRAIN))
    script = fullbore.script("job.sh", JOB.format(binary=BINARY, python=sys.executable))
    with cluster(tmp_path_factory.mktemp("slurm")) as environment:
        submit = ["sbatch", "--parsable", "-t", "10", "-J", "digits", "-D", str(fullbore.directory), str(script)]
        number = said(submit, environment).strip()
        saved, truth = fullbore.directory / "checkpoint.pt", fullbore.directory / "truth-1.json"
        for file in (saved, truth):
            until = time.monotonic() + 120
            while not file.exists():
                assert time.monotonic() < until, said(["scontrol", "show", "job", number], environment)
                time.sleep(0.1)
            if file is saved:
                time.sleep(1.5)  # steps that will be lost
                said(["scontrol", "requeue", number], environment)
        while number in said(["squeue", "-h", "-o", "%A"], environment):
            time.sleep(0.1)
    found = job(fullbore, number, "runs")
    assert json.loads(truth.read_text())["lost"] == 0
    assert (found["name"], found["restarts"], len(found["runs"])) == ("digits", 1, 2)
    assert [run["restarts"] for run in found["runs"]] == [0, 1]
    assert seconds(found, "lost", 1) > 0.5
    assert seconds(found, "lost", 2) == 0
    assert [gap["paid"] for gap in found["gaps"]] == [False]
    assert found["use"]["cores_given"] >= 1
