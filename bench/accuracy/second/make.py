#!/usr/bin/env python3
"""Makes one pair: `make.py SEED FOLDER` writes FOLDER/rank*.pt.trace.json and FOLDER/truth.json."""

import argparse
import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from second.pair import make_pair


def make(seed: int, folder: Path) -> dict:
    """Writes the pair of a seed into a folder; returns what stands in truth.json."""
    return make_pair(seed, Path(folder))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    print(json.dumps(make(arguments.seed, arguments.folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
