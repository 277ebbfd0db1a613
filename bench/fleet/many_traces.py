"""How long one verdict over the traces of many ranks takes, and how much memory: copies of one trace, one of them late.

  bench/fleet/many_traces.py [--trace TRACE] [--ranks 8,32,128,512] [--directory DIR]

The copies differ by their rank, and the late one by its collectives: each begins when three quarters of it are over,
and ends as on the others. Prints one JSON object: for each number of ranks the seconds and the peak memory of
`explain`, and whether the finding `straggler` names the late rank; and for the first number what it says where nobody
is late.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import copy
import gzip
import json
import os
import pathlib
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FULLBORE = ROOT / "build" / "release" / "fullbore"
TRACE = ROOT.parent / "shared" / "traces" / "ddp-v100-rank1of2.json.gz"
LATE_BY = 0.75  # of a collective
LEVEL = 1  # of compression: the reader is measured, not the writer


def late(trace: dict) -> dict:
    trace = copy.deepcopy(trace)
    for event in trace["traceEvents"]:
        if event.get("cat") == "kernel" and event["name"].startswith("nccl"):
            event["ts"] += event["dur"] * LATE_BY
            event["dur"] *= 1 - LATE_BY
    return trace


def rests(path: pathlib.Path) -> tuple[bytes, bytes]:
    """What follows on the rank in each trace, and in the late one's."""
    trace = json.loads(gzip.decompress(path.read_bytes()))
    trace.pop("distributedInfo", None)

    def packed(rest: dict) -> bytes:
        return gzip.compress(json.dumps(rest).removeprefix("{").encode(), LEVEL)

    return packed(trace), packed(late(trace))


class Traces:
    """Writes traces: of all of them only the rank differs, so that it stands first, and the rest is compressed once."""

    def __init__(self, path: pathlib.Path):
        # In a process of its own: the kernel counts what a process had in memory to the peak of its children.
        with concurrent.futures.ProcessPoolExecutor(1) as pool:
            self.steady, self.late = pool.submit(rests, path).result()

    def write(self, folder: pathlib.Path, ranks: int, late_rank: int) -> None:
        for rank in range(ranks):
            info = {"backend": "nccl", "rank": rank, "world_size": ranks}
            begin = '{"distributedInfo": ' + json.dumps(info) + ", "
            rest = self.late if rank == late_rank else self.steady
            (folder / f"rank{rank}.pt.trace.json.gz").write_bytes(gzip.compress(begin.encode()) + rest)


def explained(traces: Traces, ranks: int, late_rank: int, directory: pathlib.Path | None) -> dict:
    with tempfile.TemporaryDirectory(dir=directory) as temporary:
        folder = pathlib.Path(temporary) / "traces"
        folder.mkdir()
        traces.write(folder, ranks, late_rank)
        report, page = pathlib.Path(temporary) / "report.json", pathlib.Path(temporary) / "report.html"
        words = [FULLBORE, "explain", folder, "--json", report, "--html", page, "--force", "--quiet"]
        begun = time.monotonic()
        process = subprocess.Popen([os.fspath(word) for word in words])
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begun
        if status != 0:
            raise SystemExit(f"many_traces: explain ended with status {status}")
        found = [each for each in json.loads(report.read_text())["findings"] if each["id"] == "straggler"]
        said = {
            "bytes": sum(file.stat().st_size for file in folder.iterdir()),
            "s": round(seconds, 1),
            "peak_mb": round(usage.ru_maxrss / 1024),
            "page_mb": round(page.stat().st_size / 1e6, 1),
            "says": found[0]["title"] if found else None,
        }
        if late_rank >= 0:
            said["names_the_late_rank"] = bool(found) and found[0]["title"].startswith(f"Rank {late_rank} ")
        return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", type=pathlib.Path, default=TRACE, help="compressed by gzip, with collectives")
    parser.add_argument("--ranks", default="8,32,128,512")
    parser.add_argument("--directory", type=pathlib.Path, help="where the copies go (default: a temporary one)")
    asked = parser.parse_args()
    numbers = [int(word) for word in asked.ranks.split(",")]
    traces = Traces(asked.trace)
    said = {"trace": asked.trace.name, "none_late": explained(traces, numbers[0], -1, asked.directory)}
    for ranks in numbers:
        said[str(ranks)] = explained(traces, ranks, ranks * 2 // 3, asked.directory)
    print(json.dumps(said, indent=2))


if __name__ == "__main__":
    main()
