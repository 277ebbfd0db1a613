"""`fullbore fleet` on a real PostgreSQL: it says what it says of a file, and roles may do what they are granted."""

from __future__ import annotations

import json
import subprocess
import textwrap

import postgresql
import pytest

pytestmark = pytest.mark.skipif(not postgresql.BINARIES, reason="needs PostgreSQL: apt install postgresql")

ROLES = """
    CREATE ROLE collector LOGIN; CREATE ROLE guarded LOGIN; CREATE ROLE reader LOGIN;
    GRANT USAGE ON SCHEMA fullbore TO collector, guarded, reader;
    GRANT INSERT ON fullbore.run, fullbore.part, fullbore.advice, fullbore.asked TO collector, guarded;
    GRANT SELECT (path, bytes, changed_ns) ON fullbore.run TO collector;
    GRANT SELECT ON ALL TABLES IN SCHEMA fullbore TO reader;
"""


@pytest.fixture(scope="module")
def server():
    with postgresql.server() as started:
        yield started


@pytest.fixture
def url(server):
    """An empty database."""
    server.sql("DROP SCHEMA IF EXISTS fullbore CASCADE")
    server.sql("DROP ROLE IF EXISTS collector, guarded, reader")
    return server.url()


def record(fullbore, count: int, **environment: str) -> None:
    for number in range(count):
        done = fullbore.call("run", "-o", "runs", "-q", "--", "true", f"--of={number}", env=environment)
        assert done.code == 0, done.stderr


def collect(fullbore, to: str, *flags: str) -> dict:
    said = fullbore.call("fleet", "collect", "runs", "--to", to, "--json", "-", *flags)
    assert said.code == 0, said.stderr
    return json.loads(said.stdout)


def report(fullbore, of: str, *flags: str) -> dict:
    said = fullbore.call("fleet", "report", "--from", of, "--json", "-", *flags)
    assert said.code == 0, said.stderr
    return json.loads(said.stdout)


def test_a_server_and_a_file_say_the_same(fullbore, url):
    record(fullbore, 2, SLURM_JOB_ID="7", SLURM_JOB_PARTITION="gpu")
    record(fullbore, 1)
    fullbore.script("exempt.toml", '[[exempt]]\npartition = "gpu"\ncommand = "OF=0"\nwhy = "planted"\n')
    for target in (url, "fleet.db"):
        assert collect(fullbore, target)["changed"] == 3
        assert collect(fullbore, target)["changed"] == 0
    for flags in ((), ("--by", "partition"), ("--since", "1h"), ("--for", "nobody"), ("--exempt", "exempt.toml")):
        of_server, of_file = report(fullbore, url, *flags), report(fullbore, "fleet.db", *flags)
        for each in (of_server, of_file):
            del each["database"], each["next_step"]
        assert of_server == of_file, flags
    assert {part.get("cause") for part in report(fullbore, url, "--exempt", "exempt.toml")["parts"]} == {
        None,
        "planted",
    }
    assert fullbore.call("fleet", "nodes", "--from", url).code == 0


def test_roles_do_what_they_are_granted(fullbore, server, url):
    record(fullbore, 2)
    collect(fullbore, url)
    server.sql(textwrap.dedent(ROLES))
    record(fullbore, 1)
    assert collect(fullbore, server.url("collector"))["changed"] == 1
    assert server.sql("SELECT count(*) FROM fullbore.run") == [["3"]]
    # One that may not even read what it has collected reads all runs again, and puts nothing twice.
    again = fullbore.call("fleet", "collect", "runs", "--to", server.url("guarded"))
    assert again.code == 0, again.stderr
    assert "so all runs were read" in again.stderr
    assert server.sql("SELECT count(*) FROM fullbore.run") == [["3"]]
    assert report(fullbore, server.url("reader"))["runs"] == 3
    for role, words in (
        ("reader", ("collect", "runs", "--to")),
        ("guarded", ("report", "--from")),
        ("collector", ("report", "--from")),
    ):
        refused = fullbore.call("fleet", *words, server.url(role))
        if role == "reader":  # nothing is new: nothing was to be written
            assert refused.code == 0
            record(fullbore, 1)
            refused = fullbore.call("fleet", *words, server.url(role))
        assert refused.code != 0, role
        assert "permission denied for" in refused.stderr
        assert "docs/fleet.md lists" in refused.stderr
    assert server.sql("SELECT count(*) FROM fullbore.run") == [["3"]]


def test_two_at_once_of_which_one_is_killed_put_each_run_once(fullbore, server, url):
    record(fullbore, 12)
    command = fullbore.arguments([], [])[:1]
    both = [
        subprocess.Popen(
            [*command, "fleet", "collect", "runs", "--to", url, "-q"],
            cwd=fullbore.directory,
            env=fullbore.environment(),
        )
        for _ in range(2)
    ]
    both[0].kill()
    assert both[0].wait() != 0
    assert both[1].wait() == 0
    collect(fullbore, url)
    assert server.sql("SELECT count(*), count(DISTINCT id) FROM fullbore.run") == [["12", "12"]]
    assert server.sql(
        "SELECT count(*) FROM fullbore.run r WHERE given_ns <> "
        "(SELECT sum(device_ns) FROM fullbore.part p WHERE p.run = r.key)"
    ) == [["0"]]


def test_names_that_are_no_text_are_mended(fullbore, server, url):
    done = fullbore.call("run", "-o", "runs", "-q", "--", "true", b"caf\xe9 \xff")
    assert done.code == 0, done.stderr
    assert collect(fullbore, url)["changed"] == 1
    assert server.sql("SELECT command FROM fullbore.run")[0][0].startswith("true 'caf")


def test_what_cannot_be_reached_is_said_without_secrets(fullbore, server):
    nowhere = "postgresql://anna:planted@127.0.0.1:1/fleet"
    for words in (("collect", "--to"), ("report", "--from")):
        refused = fullbore.call("fleet", *words, nowhere)
        assert refused.code != 0
        assert "cannot connect to 'postgresql://" in refused.stderr
        assert "planted" not in refused.stderr
    missing = fullbore.call("fleet", "report", "--from", server.url(database="nowhere"))
    assert missing.code != 0
    assert 'database "nowhere" does not exist' in missing.stderr
