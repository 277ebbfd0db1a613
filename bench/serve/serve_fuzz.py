#!/usr/bin/env python3
"""Fuzzed requests to `fullbore serve` for a minute, as tests/serve/test_fuzz.py sends them for some seconds.

    bench/serve/serve_fuzz.py [--seconds 60] [--seed 1]

Prints how many were answered, closed without an answer, and given up by the sender to make room for later ones; what
was answered to what; and how much memory the server took more than before. Ends with status 1 if an answer was flawed,
a connection that was open at the end neither answered nor closed within 20 s, or anything changed.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.serve import fuzzing  # noqa: E402
from tests.serve.conftest import TOKEN, Made, start  # noqa: E402

UNTIL_ANSWERED_S = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        runs = pathlib.Path(directory) / "runs"
        token = pathlib.Path(directory) / "token"
        token.write_text(TOKEN)
        made = Made(runs, "made", 6, 1)
        serving = start("--dir", str(runs), "--token-file", str(token))
        try:
            report = fuzzing.fuzz(serving, runs, flags.seconds, flags.seed, UNTIL_ANSWERED_S)
            healthy = serving.process.poll() is None and serving.ask("/healthz").status == 200
        finally:
            for process in (serving.process, made.process):
                process.kill()
                process.wait()
    print(json.dumps({**report._asdict(), "healthy_afterwards": healthy}, indent=1, sort_keys=True))
    return 0 if healthy and not report.flaws and not report.changed else 1


if __name__ == "__main__":
    sys.exit(main())
