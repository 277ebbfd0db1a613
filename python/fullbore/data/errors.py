"""What the loader raises. Every text says what failed, with which value and why; a hint says what to do next."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text without what a terminal would obey or a reader would be misled by: names in it may hold anything."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


class LoaderError(Exception):
    """The loader cannot continue. `code` is the kind of failure, `hint` says what to do next (may be empty)."""

    code = "internal"
    hint = ""

    def __init__(self, text: str = "") -> None:
        super().__init__(printable(text))


class ArgumentError(LoaderError, ValueError):
    """An invalid argument: also a ValueError."""


class MissingFileError(LoaderError, FileNotFoundError):
    """A path that does not exist: also a FileNotFoundError."""


class NotTranslatable(LoaderError, ValueError):
    """`from_torch` cannot make an equivalent loader. `reasons` has all of them, each naming the object and a remedy."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("this DataLoader has no equivalent: " + "; ".join(reasons))
        self.reasons = reasons


class LoaderWarning(UserWarning):
    """A message from a loader that carries on: a bad sample, a cache that is off, a restarted process."""


CLASSES = {"invalid argument": ArgumentError, "not found": MissingFileError}


def make(code: str, text: str, hint: str) -> LoaderError:
    """The exception for an error of the engine."""
    error = CLASSES.get(code, LoaderError)(f"{text}\nhint: {hint}" if hint else text)
    error.code, error.hint = code, hint
    return error


def argument(text: str, hint: str = "") -> LoaderError:
    return make("invalid argument", text, hint)
