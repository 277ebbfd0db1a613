"""Executes pieces of Python, each in its own namespace and directory, and reports what went wrong in each.

test_finding_pages.py runs this as a separate process: torch is imported once for all pieces, and what they switch (the
garbage collector, cuDNN's search, the precision of products) does not affect pytest. Standard input is a JSON object
from the name of a piece to its code, standard output one from the name to a traceback or null.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import tempfile
import traceback


def restore() -> None:
    """Undoes what a piece may have switched for the whole process."""
    gc.enable()
    gc.unfreeze()
    torch = sys.modules.get("torch")
    if torch is None:
        return
    torch.backends.cudnn.benchmark = False
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def fault_of(name: str, code: str) -> str | None:
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        try:
            exec(compile(code, name, "exec"), {"__name__": name})
        except BaseException:
            return traceback.format_exc()
        finally:
            restore()
            os.chdir(before)
    return None


def main() -> None:
    pieces = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        faults = {name: fault_of(name, code) for name, code in pieces.items()}
    json.dump(faults, sys.stdout)


if __name__ == "__main__":
    main()
