"""Which lines of the user's code do what the reports speak of: the step, the backward pass, copies, checkpoints."""

from __future__ import annotations

from .frames import caller_place
from .runtime import hook


def say_where(what: str) -> None:
    """Names the user's line that does this, once. Never raises."""
    if what in hook.said or not hook.on:
        return
    try:
        hook.said.add(what)
        found = caller_place()
        if found is not None:
            hook.say("where", what=what, file=found[0], line=found[1])
    except Exception as error:
        if not hook.fail("where", error):
            raise
