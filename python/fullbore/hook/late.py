"""Runs that are a part of a process, which began without us: `fullbore.record` in a script, the cells of a notebook.

What the process has imported by then is patched as it is; what it imports during a run, as always. Between runs the
hook is off, and its wrappers only look whether it is on.
"""

from __future__ import annotations

import os
import sys

from .core import channel
from .core.library import standard_library
from .core.runtime import hook


def begin() -> None:
    """The environment says where to: it has what the recorder asked for. Raises RuntimeError where the hook has failed
    in this process before: it stays off."""
    with standard_library:
        from .finder import FINDER
    if hook.failed:
        raise RuntimeError("the hook has switched itself off in this process")
    channel.DISK = os.environ.get("FULLBORE_CHANNEL_DISK", "")
    hook.begin_run(os.environ["FULLBORE_CHANNEL"])
    if FINDER not in sys.meta_path:
        sys.meta_path.insert(0, FINDER)
    FINDER.attach()
    hook.open()


def end(error: BaseException | None = None) -> None:
    """`error`: what ended the run, if something did."""
    hook.end_run(error)
