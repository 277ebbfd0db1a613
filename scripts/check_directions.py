#!/usr/bin/env python3
"""Checks that src/ keeps the directions of scripts/directions.txt.

Looks at #include "folder/..." lines and at the DEPENDS of the CMake targets, both by text, so that it needs nothing
but Python. A file belongs to the longest room that its path begins with. Prints each violation as file:line and
exits 1.

    scripts/check_directions.py [SOURCE_ROOT]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s+"([a-z_][a-z_/.0-9]*)"')
TARGET = re.compile(r"fullbore_component\((.*?)\)", re.DOTALL)
DEPENDS = re.compile(r"\b(?:PUBLIC_)?DEPENDS\b((?:\s+[a-z_]+)+)")
EVERYTHING = "*"


def read_rules(path: Path) -> dict[str, set[str]]:
    rules = {}
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            room, _, may_use = line.partition(":")
            rules[room.strip()] = set(may_use.split()) | {room.strip(), "base"}
    return rules


def room_of(path: str, rooms: set[str]) -> str | None:
    """The longest room that a path below src/ begins with."""
    parts = path.split("/")
    for length in range(len(parts), 0, -1):
        if (room := "/".join(parts[:length])) in rooms:
            return room
    return None


def room_of_target(name: str, rooms: set[str]) -> str | None:
    """A target has the name of its folder, and may be a part of it: fb_report_testing belongs to report."""
    by_folder = {room.rpartition("/")[2]: room for room in rooms}
    return by_folder.get(name) or by_folder.get(name.split("_")[0])


def allowed(rules: dict[str, set[str]], user: str, used: str) -> bool:
    if EVERYTHING in rules[user]:
        return used != "cli" or user == "cli"
    return used in rules[user]


def uses(path: Path, rooms: set[str]) -> Iterator[tuple[int, str]]:
    """Line numbers and rooms that a source file or a CMakeLists.txt names."""
    text = path.read_text(errors="replace")
    if path.name == "CMakeLists.txt":
        for target in TARGET.finditer(text):
            for depends in DEPENDS.finditer(target.group(1)):
                line = text.count("\n", 0, target.start(1) + depends.start()) + 1
                for name in depends.group(1).split():
                    if room := room_of_target(name, rooms):
                        yield line, room
        return
    for number, line in enumerate(text.splitlines(), 1):
        if (match := INCLUDE.match(line)) and (room := room_of(match.group(1), rooms)):
            yield number, room


def check(root: Path) -> list[str]:
    rules = read_rules(root / "scripts" / "directions.txt")
    rooms = set(rules)
    wrong, homeless = [], set()
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in {".h", ".cc", ".c"} and path.name != "CMakeLists.txt":
            continue
        inside = path.relative_to(root / "src").as_posix()
        room = room_of(inside, rooms)
        if room is None:
            # A CMakeLists.txt that only lists the rooms below it needs no room of its own.
            if path.name != "CMakeLists.txt":
                homeless.add(path.parent.relative_to(root).as_posix())
            continue
        # Tests may use anything below the command line: they are where parts meet.
        is_test = path.name.endswith("_test.cc")
        for line, used in uses(path, rooms):
            if not (used != "cli" if is_test else allowed(rules, room, used)):
                wrong.append(f"{path.relative_to(root)}:{line}: {room} may not use {used}")
    return [f"{folder}: has no line in scripts/directions.txt" for folder in sorted(homeless)] + wrong


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    wrong = check(root)
    for line in wrong:
        print(line)
    if wrong:
        print("hint: scripts/directions.txt has the rules, ARCHITECTURE.md the reasons")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
