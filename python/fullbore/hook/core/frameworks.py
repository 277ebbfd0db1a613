"""Which framework runs the training: the highest one that the script uses. Advice is given in its words."""

from __future__ import annotations

from .runtime import hook

LEVELS = {"torch": 1, "tensorflow": 1, "jax": 1, "keras": 2}


def introduce(name: str) -> None:
    """States that this framework makes steps of the training."""
    if LEVELS[name] > LEVELS.get(hook.facts.get("framework", ""), 0):
        hook.fact("framework", name)
