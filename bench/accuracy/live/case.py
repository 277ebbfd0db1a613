"""One case of the exam: a program as text, what is planted in it, and the changes that its settings allow."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Union

from .settings import Invocation, Settings

Value = Union[int, float, str, bool]
# New values by setting; "env:NAME" sets an environment variable instead.
Change = dict[str, Value]
ENVIRONMENT = "env:"


@dataclass(frozen=True)
class Case:
    name: str
    cause: str  # what is planted: a key of causes.CAUSES
    about: str  # in one sentence, what the program is and where its time goes
    script: str
    settings: Settings
    changes: dict[str, Change] = field(default_factory=dict)  # by what they cure: a key of advice.CHANGES
    cure: Change = field(default_factory=dict)  # what removes the planted cause; empty if nothing is wrong
    base: Change = field(default_factory=dict)  # how the program is started before any change
    needs: tuple[str, ...] = ()  # modules that it imports besides torch, numpy and PIL
    foreign_load: int = 0  # other programs beside it that take a core each
    expects: tuple[str, ...] = ()  # the findings that name what is planted; else those of causes.CAUSES
    clock: str = "times"  # the setting that says where the program's clock is written
    file: Path | None = None  # a script that has its place already; a generated one is written where it runs

    @property
    def seed(self) -> int | None:
        return int(self.name) if self.name.isdigit() else None

    def takes(self, setting: str) -> bool:
        return setting in self.settings.values

    def invocation(self, change: Change) -> Invocation:
        """How to start the program with the change: its text, arguments and environment."""
        wanted = {**self.base, **change}
        environment = {k[len(ENVIRONMENT) :]: str(v) for k, v in wanted.items() if k.startswith(ENVIRONMENT)}
        values = {k: v for k, v in wanted.items() if not k.startswith(ENVIRONMENT)}
        started = self.settings.apply(self.script, values)
        return Invocation(started.script, started.arguments, {**environment, **started.environment})
