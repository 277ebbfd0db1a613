"""How long `fullbore fleet` takes over many runs: real ones, recorded here, copied under other ids and times.

  bench/fleet/collect.py [--runs 10000] [--directory DIR] [--python PYTHON]

Records a training that waits for its data and one that does not, copies them, and prints one JSON object: seconds of
`fleet collect` into a PostgreSQL server of its own and into a file, again when nothing has changed, of two at once into
one file of which one is killed in the middle and started again, and of `fleet report`; whether the sums are exact and
each run is there once.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import postgresql  # noqa: E402

BUILD = ROOT / "build" / "release"
FULLBORE = BUILD / "fullbore"
TRAIN = """
import sys, time, torch
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 8 * 300
    def __getitem__(self, index):
        time.sleep(float(sys.argv[1]))
        return torch.ones(64)
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.utils.data.DataLoader(Slow(), batch_size=8):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
"""


def recorded(directory: pathlib.Path, python: str) -> list[pathlib.Path]:
    script = directory / "train.py"
    script.write_text(TRAIN)
    for wait in ("0.002", "0"):
        command = [FULLBORE, "run", "-q", "-o", directory / "recorded", "--", python, script, wait]
        subprocess.run(command, check=True, env={**os.environ, "FULLBORE_WINDOWS": "off"})
    return sorted((directory / "recorded").glob("*.fbr"))


def copy(run: pathlib.Path, number: int, into: pathlib.Path) -> None:
    """Under another id, an hour later than the one before, by one of 40 users."""
    path = into / f"run-{number:06}.fbr"
    shutil.copyfile(run, path)
    database = sqlite3.connect(path)
    database.execute("PRAGMA synchronous = OFF")
    with database:
        database.execute("UPDATE meta SET value = ? WHERE key = 'id'", [f"run-{number:06}"])
        database.execute("UPDATE meta SET value = value - ? WHERE key = 'wall_offset_ns'", [number * 3_600_000_000_000])
        database.execute("INSERT OR REPLACE INTO machine VALUES ('user', ?)", [f"user-{number % 40:02}"])
    database.close()


def timed(*words) -> float:
    begun = time.monotonic()
    subprocess.run([FULLBORE, "fleet", *words], check=True, stdout=subprocess.DEVNULL)
    return round(time.monotonic() - begun, 2)


def two_of_which_one_is_killed(runs: pathlib.Path, store: pathlib.Path) -> float:
    command = [FULLBORE, "fleet", "collect", runs, "--to", store, "-q"]
    begun = time.monotonic()
    stays, dies = subprocess.Popen(command), subprocess.Popen(command)
    time.sleep(3)
    dies.kill()
    dies.wait()
    again = subprocess.Popen(command)
    if stays.wait() or again.wait():
        raise SystemExit("collect: a collector failed beside another")
    return round(time.monotonic() - begun, 2)


def exact(store: pathlib.Path, runs: int) -> bool:
    said = subprocess.check_output([FULLBORE, "fleet", "report", "--from", store, "--json", "-"], text=True)
    report = json.loads(said)
    parts = sum(part["device_ns"] for part in report["parts"])
    return report["runs"] == runs and report["given_ns"] == parts == sum(g["given_ns"] for g in report["groups"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--directory", type=pathlib.Path, help="where the copies go (default: a temporary one)")
    parser.add_argument("--python", default=sys.executable, help="one that has torch")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.directory) as temporary:
        directory = pathlib.Path(temporary)
        originals = recorded(directory, asked.python)
        runs = directory / "runs"
        runs.mkdir()
        for number in range(asked.runs):
            copy(originals[number % len(originals)], number, runs)
        first, second = directory / "fleet.db", directory / "two.db"
        with postgresql.server() as server:
            into_server_s = timed("collect", runs, "--to", server.url(), "-q")
        said = {
            "runs": asked.runs,
            "bytes": sum(file.stat().st_size for file in runs.iterdir()),
            "collect_postgresql_s": into_server_s,
            "collect_s": timed("collect", runs, "--to", first, "-q"),
            "again_s": timed("collect", runs, "--to", first, "-q"),
            "report_s": timed("report", "--from", first),
            "exact": exact(first, asked.runs),
            "two_at_once_s": two_of_which_one_is_killed(runs, second),
            "two_exact": exact(second, asked.runs),
        }
    print(json.dumps(said, indent=2))


if __name__ == "__main__":
    main()
