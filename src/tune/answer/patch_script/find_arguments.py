"""Where a script says what a DataLoader gets: the bytes to change for a setting, found by Python's own parser.

    find_arguments.py '{"line": 57, "settings": {"num_workers": 4}, "command": ["python", "train.py"]}' < train.py

prints {"edits": [[begin, end, text]], "by_hand": [[setting, line, why]]}, in bytes of the file. The script is parsed
and never run. An argument is followed to where its value stands: a constant that is assigned once, a parameter's
default, an option of argparse. Wherever that could mean something else than what was measured, the line is left to a
person. What comes out is parsed again, and has to be the same program but for those values.
"""

from __future__ import annotations

import ast
import codecs
import io
import json
import re
import sys
import tokenize
from typing import Any

from argument_finder import WORDS, Finder
from script_names import ByHand, Names, last_name


class Source:
    """The bytes of the script, its tree, and where in the bytes a node stands."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        self.begin = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
        self.encoding = "utf-8" if encoding == "utf-8-sig" else encoding
        self.tree = ast.parse(data)
        self.lines = data[self.begin :].splitlines(keepends=True)

    def place(self, line: int, column: int) -> int:
        """Python counts columns in bytes of UTF-8, whatever the file is written in."""
        text = self.lines[line - 1].decode(self.encoding).encode("utf-8")[:column].decode("utf-8")
        return self.begin + sum(map(len, self.lines[: line - 1])) + len(text.encode(self.encoding))

    def span(self, node: Any) -> tuple[int, int]:
        return self.place(node.lineno, node.col_offset), self.place(node.end_lineno, node.end_col_offset)


def loader_at(names: Names, line: int) -> ast.Call:
    """The call that makes the loader: by its name, or else the only one there that has such an argument."""
    in_text = {id(part) for each in names.all if isinstance(each, ast.JoinedStr) for part in ast.walk(each)}
    calls = [each for each in names.all if isinstance(each, ast.Call) and id(each) not in in_text]
    here = [each for each in calls if each.lineno <= line <= (each.func.end_lineno or 0)]
    if not here:
        here = [each for each in calls if each.lineno <= line <= (each.end_lineno or 0)]
    for test in (r"dataloader$", r"loader$", r"loader"):
        named = [each for each in here if re.search(test, last_name(each.func).lower())]
        if named:
            here = named
            break
    else:
        here = [each for each in here if any(word.arg in WORDS or word.arg is None for word in each.keywords)] or here
    if len(here) == 1:
        return here[0]
    at = ast.Pass(lineno=line, col_offset=0)
    raise ByHand(at, "several calls are on this line" if here else "no call is on this line")


def is_torchs(names: Names, call: ast.Call) -> bool:
    """Whether the name that is called is torch's own, by the imports of the file."""
    first = call.func
    while isinstance(first, ast.Attribute):
        first = first.value
    scope = names.scope_of[call].has(first.id) if isinstance(first, ast.Name) else None
    bindings = scope.bindings[first.id] if isinstance(first, ast.Name) and scope is not None else []
    if last_name(call.func) != "DataLoader" or not bindings:
        return False
    for each in bindings:
        imported = [part.name for part in each.node.names] if isinstance(each.node, ast.Import) else []
        module = each.node.module or "" if isinstance(each.node, ast.ImportFrom) and not each.node.level else ""
        if (module.split(".")[0] != "torch") and not any(name.split(".")[0] == "torch" for name in imported):
            return False
    return True


def written(value: Any, before: Any) -> ast.Constant:
    """The new value, as a text where the old one is: argparse converts a default that is one."""
    is_text = isinstance(before, str) and not isinstance(value, str)
    return ast.Constant(value=str(value) if is_text else value)


class Change:
    def __init__(self, source: Source, names: Names) -> None:
        self.source, self.names = source, names
        self.edits: dict[tuple[int, int], str] = {}
        self.by_hand: list[tuple[str, int, str]] = []
        self.changed: list[tuple[ast.AST, ast.Constant]] = []
        self.added: list[tuple[ast.Call, str, Any]] = []

    def set(self, call: ast.Call, setting: str, value: Any, finder: Finder) -> None:
        node = finder.argument(call)
        if node is None:
            self.add(call, setting, value)
            return
        before = node.value if isinstance(node, ast.Constant) else None
        new = written(value, before)
        if isinstance(node, ast.Constant) and type(before) is type(new.value) and before == new.value:
            return
        span = self.source.span(node)
        if self.source.data[span[0] : span[1]].splitlines()[1:]:
            raise ByHand(node, "the value takes several lines")
        there = ast.parse(self.source.data[span[0] : span[1]].decode(self.source.encoding), mode="eval").body
        if ast.dump(there) != ast.dump(node):
            raise ByHand(node, "its place in the file is not sure")
        if any(each is node for each, _ in self.changed):
            raise ByHand(node, "the same value stands for another setting, too")
        self.changed.append((node, new))
        self.edits[span] = repr(new.value)

    def add(self, call: ast.Call, setting: str, value: Any) -> None:
        last = [*call.args, *(each.value for each in call.keywords)]
        is_sampled = setting == "batch_size" and any(each.arg == "batch_sampler" for each in call.keywords)
        if not is_torchs(self.names, call) or not last or is_sampled:
            raise ByHand(call, f"the call has no {setting} in plain sight")
        place = max(self.source.span(each)[1] for each in last)
        self.edits[(place, place)] = self.edits.get((place, place), "") + f", {setting}={value!r}"
        self.added.append((call, setting, value))

    def result(self) -> bytes:
        data, done, at = self.source.data, b"", 0
        for (begin, end), text in sorted(self.edits.items()):
            done += data[at:begin] + text.encode("ascii")
            at = end
        return done + data[at:]

    def is_what_was_meant(self) -> bool:
        for node, new in self.changed:
            parent = self.names.parent[node]
            for field, value in ast.iter_fields(parent):
                if value is node:
                    setattr(parent, field, new)
                elif isinstance(value, list):
                    setattr(parent, field, [new if each is node else each for each in value])
        for call, setting, value in self.added:
            call.keywords.append(ast.keyword(arg=setting, value=ast.Constant(value=value)))
        try:
            return ast.dump(ast.parse(self.result())) == ast.dump(self.source.tree)
        except (SyntaxError, ValueError):
            return False


def answer(data: bytes, line: int, settings: dict[str, Any], command: list[str]) -> dict[str, Any]:
    source = Source(data)
    names = Names(source.tree)
    change = Change(source, names)
    for setting, value in settings.items():
        try:
            change.set(loader_at(names, line), setting, value, Finder(names, setting, command))
        except ByHand as reason:
            change.by_hand.append((setting, reason.line or line, reason.why))
    if change.edits and not change.is_what_was_meant():
        change.edits = {}
        change.by_hand = [(setting, line, "the change could not be made safely") for setting in settings]
    return {"edits": [[*span, text] for span, text in sorted(change.edits.items())], "by_hand": change.by_hand}


def main() -> None:
    question = json.loads(sys.argv[1])
    try:
        said = answer(sys.stdin.buffer.read(), question["line"], question["settings"], question["command"])
    except Exception as error:  # a syntax that this Python does not know, an encoding, a tree that is too deep
        said = {"error": f"{type(error).__name__}: {error}"}
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
