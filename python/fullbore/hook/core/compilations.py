"""What is compiled while the training runs, how often, and why again, as one fact: stated again when it has changed, at
most once a second."""

from __future__ import annotations

from typing import Any

from .runtime import clock, guarded, hook

SAY_EVERY_NS = 1_000_000_000
MOST_NAMED = 8


class Compiled:
    """The compilations of one function."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.place: tuple[str, int] | None = None
        self.count = self.ns = 0
        self.reasons: dict[str, int] = {}
        self.example = ""
        state.all.append(self)

    def described(self) -> dict[str, Any]:
        file, line = self.place or ("", 0)
        why = max(self.reasons, key=lambda reason: self.reasons[reason], default="")
        return {
            "function": self.name,
            "file": file,
            "line": line,
            "count": self.count,
            "ns": self.ns,
            "why": why,
            "example": self.example,
        }


class Compilations:
    def __init__(self) -> None:
        self.all: list[Compiled] = []
        self.said_at = 0
        self.ends_with_it = False  # what is left to say is said at the end
        self.changed = False


state = Compilations()
hook.forget_in_child.append(lambda: state.__init__())  # type: ignore[misc]


def count(compiled: Compiled, ns: int, reason: str) -> None:
    """It was compiled once more."""
    compiled.count += 1
    compiled.ns += ns
    if reason and compiled.count > 1:
        compiled.reasons[reason] = compiled.reasons.get(reason, 0) + 1
    state.changed = True
    if not state.ends_with_it:  # not when attached: what is registered last runs first, and the `bye` must come after
        state.ends_with_it = True
        hook.at_end(say)
    if clock() - state.said_at >= SAY_EVERY_NS:
        say()


@guarded
def say() -> None:
    if not state.changed:
        return
    state.said_at, state.changed = clock(), False
    named = sorted((each for each in state.all if each.count > 1), key=lambda each: each.ns, reverse=True)
    if named:
        hook.fact("compilations", [each.described() for each in named[:MOST_NAMED]])
