"""What programs are put together from: pieces of source text whose `$name` stands for a setting or a number."""

from __future__ import annotations

import string
import textwrap
from dataclasses import dataclass, field

from ..settings import Settings

Numbers = dict[str, object]


@dataclass(frozen=True)
class Piece:
    """Definitions, and the expression that uses them."""

    text: str
    use: str
    imports: tuple[str, ...] = ()
    numbers: Numbers = field(default_factory=dict)

    def filled(self) -> Piece:
        """With its own numbers in place, so that two pieces may use the same names."""
        fill = lambda text: string.Template(text).safe_substitute(self.numbers)  # noqa: E731
        return Piece(fill(self.text).strip("\n"), fill(self.use), self.imports)


def indented(text: str, columns: int) -> str:
    return textwrap.indent(text.strip("\n"), " " * columns)


def assembled(imports: tuple[str, ...], settings: Settings, parts: list[str], docstring: str = "") -> str:
    """A script: docstring, imports as people sort them, settings, then the parts; settings' references filled in."""
    lines = sorted(set(imports) | set(settings.imports))
    standard = [line for line in lines if not is_foreign(line)]
    foreign = [line for line in lines if is_foreign(line)]
    body = "\n\n\n".join(part.strip("\n") for part in parts if part.strip())
    references = {name: settings.reference(name) for name in settings.values}
    body = string.Template(body).substitute(references)
    head = f'"""{docstring}"""\n' if docstring else ""
    return f"{head}{chr(10).join(standard)}\n\n{chr(10).join(foreign)}\n\n{settings.definition()}\n\n\n{body}\n"


def is_foreign(line: str) -> bool:
    return line.split()[1].split(".")[0] in {"torch", "numpy", "PIL", "torchvision"}
