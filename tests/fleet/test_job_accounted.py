"""Paid as a real slurmdbd accounts it: a job queued again, and one recorded in part."""

from __future__ import annotations

import time

import pytest
from jobs import job, seconds
from slurm_cluster import missing_for_accounting
from slurm_site import BINARY, site, why_not

WHY_NOT = why_not() or missing_for_accounting()
pytestmark = [pytest.mark.long, pytest.mark.alone, pytest.mark.skipif(WHY_NOT != "", reason=WHY_NOT)]


@pytest.fixture(scope="module")
def accounted():
    with site(accounting=True) as made:
        yield made


def elapsed(accounted, number: str, allocations: int) -> int:
    """The seconds of all allocations, once sacct knows the end of each."""
    words = ["sacct", "--allocations", "--duplicates", "--parsable2", "--noheader", f"--jobs={number}"]
    until = time.monotonic() + 60
    while time.monotonic() < until:
        rows = [line.split("|") for line in accounted.call(*words, "--format=ElapsedRaw,End").stdout.splitlines()]
        if len(rows) == allocations and all(end != "Unknown" for _, end in rows):
            return sum(int(of) for of, _ in rows)
        time.sleep(0.5)
    raise AssertionError(f"sacct says {rows}")


def test_paid_is_what_the_accounting_says_of_a_job_that_was_queued_again(fullbore, accounted):
    number = accounted.submit("sleep 4", "--requeue")
    accounted.wait(number, {"RUNNING"})
    time.sleep(3)
    accounted.call("scontrol", "requeue", number)
    accounted.wait(number, {"RUNNING"})
    accounted.wait(number)
    accounted.wait_for_recorders()
    paid = elapsed(accounted, number, 2)
    found = job(fullbore, number, accounted.runs, "--sacct", env=accounted.environment)
    assert [each["state"] for each in found["allocations"]] == ["REQUEUED", "COMPLETED"]
    assert found["paid_ns"] / 1e9 == pytest.approx(paid, abs=2)  # of whole seconds, at the end of each allocation
    assert len(found["runs"]) == 2
    assert [gap["paid"] for gap in found["gaps"]].count(False) == 1


def test_what_came_before_and_after_the_run_of_each_allocation_was_paid(fullbore, accounted):
    run = f"{BINARY} run -o {accounted.runs}/games -q -- sleep 2"
    number = accounted.submit(f"sleep 2; {run}; touch recorded; sleep 3", "--requeue", env={"SLURM_FULLBORE": "off"})
    accounted.wait(number, {"RUNNING"})
    while not (accounted.home("games") / "recorded").exists():
        assert accounted.job(number)["JobState"] == "RUNNING"
        time.sleep(0.1)
    time.sleep(1.5)
    accounted.call("scontrol", "requeue", number)
    accounted.wait(number)
    paid = elapsed(accounted, number, 2)
    found = job(fullbore, number, accounted.runs, "--sacct", env=accounted.environment)
    assert found["paid_ns"] / 1e9 == pytest.approx(paid, abs=0.1)
    causes = {bar.get("cause"): bar["device_ns"] / 1e9 for bar in found["bars"] if bar["kind"] == "between"}
    assert causes["before the first"] >= 4
    assert causes["after the last"] >= 2
    without = job(fullbore, number, accounted.runs, env=accounted.environment)
    assert "allocations" not in without
    assert without["paid_ns"] / 1e9 < paid - 6
    assert seconds(without, "between") == 0


def test_where_sacct_has_no_answer_a_line_says_so_and_nothing_else_changes(fullbore, accounted):
    fullbore.call("run", "-o", "runs", "-q", "--", "true", env={"SLURM_JOB_ID": "999999"})
    said = fullbore.call("fleet", "job", "999999", "runs", "--sacct", env=accounted.environment)
    assert said.code == 0
    assert "sacct knows no job 999999" in said.stderr
    asked = job(fullbore, "999999", "runs", "--sacct", env=accounted.environment)
    assert asked == job(fullbore, "999999", "runs")
