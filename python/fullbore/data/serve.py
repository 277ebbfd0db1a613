"""python -m fullbore.data.serve FD: the separate process of a loader (in_process=False). FD is its end of a socket."""

from __future__ import annotations

import sys

from . import _core, stage


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not arguments[0].isdigit():
        print("fullbore.data.serve is started by a loader with in_process=False, not by hand", file=sys.stderr)
        return 2
    _core.serve(int(arguments[0]), stage.from_bytes)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
