"""How long `fullbore fleet report` takes over a million runs in PostgreSQL, which it starts and removes again.

  bench/fleet/million.py [--runs 1000000] [--jobs-of-two]

The runs are made in the database, from the rows of one that `fleet collect` put there: of 1,000 users, in ten
partitions on four kinds of devices, with four causes of waste and as many edits. With
--jobs-of-two each two of them are one job that knows of three things what it asked for and used, and of a third of the
jobs that was hardly anything. Prints one JSON object: seconds of
reports of all, grouped, of the last week and of one user, the peak memory, and whether the sums are exact.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FULLBORE = ROOT / "build" / "release" / "fullbore"
sys.path.insert(0, str(ROOT / "scripts"))
import postgresql  # noqa: E402

MAKE = """
    SET search_path TO fullbore;
    CREATE TEMPORARY TABLE one AS SELECT * FROM run LIMIT 1;
    CREATE TEMPORARY TABLE many AS SELECT number FROM generate_series(1, {runs}) AS number;
    INSERT INTO run (key, bytes, changed_ns, {columns})
      SELECT number, bytes, changed_ns, {values} FROM many, one;
    INSERT INTO part SELECT number, kind, CASE WHEN kind = 'waste' THEN 'cause-' || number % 4 ELSE '' END,
      CASE WHEN kind = 'work' THEN 3000000000000 - number ELSE 200000000000 END
      FROM many, unnest(ARRAY['work', 'waste', 'start', 'end']) AS kind;
    INSERT INTO advice SELECT number, place, 'cause-' || number % 4, 'cause', 'a title of some length, as they are',
      'num_workers=' || number % 8, 1.2, 1.5, 2.0, 3000000000000, 500000000000, 1000000000000 - number, 1500000000000
      FROM many, generate_series(0, 1) AS place;
    DELETE FROM run WHERE key IN (SELECT key FROM one);
    DELETE FROM part WHERE run IN (SELECT key FROM one);
"""
ASKED = """
    SET search_path TO fullbore;
    INSERT INTO asked SELECT number, what, 16, CASE WHEN number % 3 = 0 THEN 2 ELSE 12 END,
      CASE WHEN number % 3 = 0 THEN 1 ELSE 0 END, 0
      FROM generate_series(1, {runs}) AS number, unnest(ARRAY['cores', 'memory', 'time']) AS what;
    UPDATE run SET job = 'job-' || key / 2, "user" = 'user-' || key / 2 % 1000;
"""
OTHER = {
    "id": "'run-' || number",
    "path": "'/runs/run-' || number || '.fbr'",
    "begin_unix_ns": "begin_unix_ns - number * 3600000000000 / 100",
    '"user"': "'user-' || number % 1000",
    "partition": "'partition-' || number % 10",
    "device": "'device-' || number % 4",
    "given_ns": "(3000000000000 - number) + 600000000000",
}


def fill(server: postgresql.Server, runs: int, jobs_of_two: bool = False) -> None:
    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "FULLBORE_WINDOWS": "off"}
        subprocess.run([FULLBORE, "run", "-q", "-o", directory, "--", "true"], check=True, env=environment)
        subprocess.run([FULLBORE, "fleet", "collect", directory, "--to", server.url(), "-q"], check=True)
    columns = server.sql(
        "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = 'fullbore.run'::regclass "
        "AND attnum > 0 AND attname NOT IN ('key', 'bytes', 'changed_ns')"
    )
    names = [name for (name,) in columns]
    values = [OTHER.get(name, name) for name in names]
    server.sql(MAKE.format(runs=runs, columns=", ".join(names), values=", ".join(values)))
    if jobs_of_two:
        server.sql(ASKED.format(runs=runs))
        server.sql("VACUUM FULL fullbore.run")
    server.sql("ANALYZE")


def report(server: postgresql.Server, *words: str) -> tuple[float, dict]:
    begun = time.monotonic()
    command = [FULLBORE, "fleet", "report", "--from", server.url(), "--json", "-", *words]
    said = json.loads(subprocess.check_output(command))
    return round(time.monotonic() - begun, 2), said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--jobs-of-two", action="store_true")
    asked = parser.parse_args()
    with postgresql.server() as server:
        begun = time.monotonic()
        fill(server, asked.runs, asked.jobs_of_two)
        made_s = round(time.monotonic() - begun, 1)
        first_s, whole = report(server)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        said = {
            "runs": whole["runs"],
            "made_s": made_s,
            "report_s": first_s,
            "by_partition_s": report(server, "--by", "partition")[0],
            "last_week_s": report(server, "--since", "7d")[0],
            "for_one_s": report(server, "--for", "user-7")[0],
            "peak_mib": round(peak / 1024),
            "exact": whole["runs"] == asked.runs
            and whole["given_ns"] == sum(part["device_ns"] for part in whole["parts"])
            and whole["given_ns"] == sum(group["given_ns"] for group in whole["groups"]),
            "database_mib": int(server.sql("SELECT pg_database_size('postgres') >> 20")[0][0]),
        }
    print(json.dumps(said, indent=2))


if __name__ == "__main__":
    main()
