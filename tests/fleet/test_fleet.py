"""Several trainings, recorded and then counted together: what was planted in each is what was wasted."""

from __future__ import annotations

import json
import os
import pathlib
import pwd
import sqlite3
import sys

import jsonschema
import pytest
from waiting_training import TRAIN, waited

SCHEMA = json.loads((pathlib.Path(__file__).parents[2] / "docs" / "fleet.schema.json").read_text())

OF_RUN = "SELECT kind, cause, device_ns FROM part JOIN run ON run.key = part.run WHERE run.id LIKE ?"


def report(fullbore, *flags: str) -> dict:
    said = fullbore.call("fleet", "report", "--from", "fleet.db", "--json", "-", *flags)
    assert said.code == 0, said.stderr
    found = json.loads(said.stdout)
    jsonschema.validate(found, SCHEMA)
    return found


def collect(fullbore, *directories) -> dict:
    said = fullbore.call("fleet", "collect", *directories, "--to", "fleet.db", "--json", "-")
    assert said.code == 0, said.stderr
    return json.loads(said.stdout)


@pytest.mark.long
def test_what_was_planted_is_what_was_wasted(fullbore):
    script = fullbore.script("train.py", TRAIN)
    truths = {}
    for name, wait in (("slow", "0.003"), ("quick", "0")):
        done = fullbore.call("run", "-o", "runs", "--name", name, "-q", "--", sys.executable, script, wait)
        assert done.code == 0, done.stderr
        truths[name] = waited(done.stdout.decode())
    said = {"schema": "fullbore.fleet_collect/1", "database": "fleet.db", "runs": 2, "changed": 2, "unread": []}
    assert collect(fullbore, "runs") == {**said, "next_step": "fullbore fleet report --from fleet.db"}
    assert collect(fullbore, ".")["changed"] == 0
    store = sqlite3.connect(fullbore.directory / "fleet.db")
    for name, truth in truths.items():
        parts = store.execute(OF_RUN, [f"%{name}%"]).fetchall()
        waste = sum(ns for kind, cause, ns in parts if (kind, cause) == ("waste", "input-bound"))
        steady = sum(ns for kind, _, ns in parts if kind in ("work", "waste"))
        # Below a tenth of the step no finding names it.
        assert waste / steady == pytest.approx(truth, abs=0.05) or (waste == 0 and truth < 0.1), (name, parts, truth)
    found = report(fullbore)
    assert found["given_ns"] == sum(part["device_ns"] for part in found["parts"])
    assert found["given_ns"] == sum(group["given_ns"] for group in found["groups"])
    assert found["fixes"][0]["finding"] == "input-bound"
    text = fullbore.call("fleet", "report", "--from", "fleet.db", "--price", "2")
    assert "wasted, waiting" in text.stdout.decode()
    assert "what brings most back" in text.stdout.decode()


def run_under(fullbore, user: str, job: dict[str, str]) -> None:
    done = fullbore.call("run", "-o", "runs", "-q", "--", "true", f"--api-key={user}-secret", env=job)
    assert done.code == 0, done.stderr


def test_groups_and_letters(fullbore):
    for partition in ("gpu", "gpu", "cpu"):
        run_under(fullbore, "x", {"SLURM_JOB_ID": "1", "SLURM_JOB_PARTITION": partition, "WANDB_API_KEY": "planted"})
    collect(fullbore, "runs")
    found = report(fullbore, "--by", "partition")
    assert sorted((each["name"], each["runs"]) for each in found["groups"]) == [("cpu", 1), ("gpu", 2)]
    assert {part["kind"] for part in found["parts"]} == {"not judged"}
    user = pwd.getpwuid(os.geteuid()).pw_name
    assert found["users"] == [user]
    assert report(fullbore, "--for", user)["runs"] == 3
    nobody = report(fullbore, "--for", "somebody-else")
    assert nobody["runs"] == 0
    assert user not in json.dumps(nobody)
    text = fullbore.call("fleet", "report", "--from", "fleet.db", "--for", "somebody-else")
    assert text.stdout.decode() == "no runs of somebody-else in 'fleet.db'\n"


def test_a_report_and_a_letter_as_pages(fullbore):
    run_under(fullbore, "x", {"SLURM_JOB_ID": "1"})
    collect(fullbore, "runs")
    user = pwd.getpwuid(os.geteuid()).pw_name
    for flags, title in (((), "where the device hours went"), (("--for", user), f"for {user}")):
        said = fullbore.call("fleet", "report", "--from", "fleet.db", "--html", "page.html", *flags)
        assert said.code == 0, said.stderr
        assert f"<title>{title}</title>" in (fullbore.directory / "page.html").read_text()
    fullbore.script("notes.html", "mine")
    assert fullbore.call("fleet", "report", "--from", "fleet.db", "--html", "notes.html").code == 2


def test_secrets_never_enter(fullbore):
    run_under(fullbore, "x", {"SLURM_JOB_ID": "1", "WANDB_API_KEY": "planted-token"})
    collect(fullbore, "runs")
    held = (fullbore.directory / "fleet.db").read_bytes()
    assert b"--api-key=" in held
    assert b"x-secret" not in held
    assert b"planted-token" not in held


def test_what_is_wrong_is_said_with_the_next_step(fullbore):
    missing = fullbore.call("fleet", "report", "--from", "nowhere.db")
    assert missing.code == 2
    assert "fullbore fleet collect DIR --to nowhere.db makes it" in missing.stderr
    fullbore.script("notes.db", "no database")
    for part in (("report", "--from"), ("collect", ".", "--to")):
        refused = fullbore.call("fleet", *part, "notes.db")
        assert refused.code != 0
        assert "notes.db' is no" in refused.stderr
    assert (fullbore.directory / "notes.db").read_text() == "no database"
    (fullbore.directory / "empty").mkdir()
    assert collect(fullbore, "empty")["runs"] == 0
    assert fullbore.call("fleet", "collect", "empty").code == 0  # into .fullbore, which is made
    assert fullbore.call("fleet", "report", "--from", "fleet.db", "--by", "colour").code == 2
    assert fullbore.call("fleet", "report", "--from", "fleet.db", "--since", "tomorrow").code == 2
    assert fullbore.call("fleet", "report", "--from", "fleet.db").stdout.decode() == "no runs in 'fleet.db'\n"
    assert fullbore.call("fleet", "report", "--from", "fleet.db", "--since=-7d").code == 2
    assert fullbore.call("fleet", "report", "--from", "fleet.db", "--for", "").code == 2
    typo = fullbore.call("fleet", "collect", "shard/runs")
    assert typo.code == 2
    assert "'shard/runs'" in typo.stderr
    assert fullbore.call("fleet").code == 2


def test_the_table_of_groups(fullbore):
    run_under(fullbore, "x", {})
    collect(fullbore, "runs")
    said = fullbore.call("fleet", "report", "--from", "fleet.db", "--csv", "-")
    header, row = said.stdout.decode().splitlines()
    assert header == "group,runs,given_h,work_h,waste_h,not_judged_h"
    assert row.split(",")[1] == "1"


def test_what_it_costs_is_by_the_prices_of_each_device(fullbore):
    run_under(fullbore, "x", {})
    collect(fullbore, "runs")
    machine = '[[machine]]\nname = "a"\ndevice = "T4"\ncores = 4\nper_hour = 1\nsource = "made"\ndate = 2026-11-29\n'
    prices = fullbore.script("prices.toml", machine)
    found = report(fullbore, "--prices", prices)
    assert (found["cost"], found["currency"], found["unpriced"]) == (0, "USD", ["cpu"])
    one_price = report(fullbore, "--price", "3.6e6")
    assert one_price["cost"] == pytest.approx(one_price["given_ns"] / 1e6)
    assert one_price["cost"] == pytest.approx(sum(part["cost"] for part in one_price["parts"]))
    both = fullbore.call("fleet", "report", "--from", "fleet.db", "--price", "1", "--prices", prices)
    assert both.code == 2
    missing = fullbore.call("fleet", "report", "--from", "fleet.db", "--prices", "nowhere.toml")
    assert missing.code == 2 and "nowhere.toml" in missing.stderr
