#!/usr/bin/env python3
"""Checks that src/ keeps the directions of scripts/directions.txt.

Looks at #include "folder/..." lines and at the DEPENDS of the CMake targets, both by text, so that it needs nothing
but Python. Prints each violation as file:line and exits 1.

    scripts/check_directions.py [SOURCE_ROOT]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s+"([a-z_]+)/')
TARGET = re.compile(r"fullbore_component\((.*?)\)", re.DOTALL)
DEPENDS = re.compile(r"\b(?:PUBLIC_)?DEPENDS\b((?:\s+[a-z_]+)+)")
EVERYTHING = "*"


def read_rules(path: Path) -> dict[str, set[str]]:
    rules = {}
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            folder, _, may_use = line.partition(":")
            rules[folder.strip()] = set(may_use.split()) | {folder.strip(), "base"}
    return rules


def allowed(rules: dict[str, set[str]], user: str, used: str) -> bool:
    if EVERYTHING in rules[user]:
        return used != "cli" or user == "cli"
    return used in rules[user]


def uses(path: Path, folders: set[str]) -> Iterator[tuple[int, str]]:
    """Line numbers and folders that a source file or a CMakeLists.txt names."""
    text = path.read_text(errors="replace")
    if path.name == "CMakeLists.txt":
        for target in TARGET.finditer(text):
            for depends in DEPENDS.finditer(target.group(1)):
                line = text.count("\n", 0, target.start(1) + depends.start()) + 1
                # A target may be a part of a folder: fb_probe_nvml belongs to probe.
                for name in depends.group(1).split():
                    yield line, name if name in folders else name.split("_")[0]
        return
    for number, line in enumerate(text.splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match.group(1)


def check(root: Path) -> list[str]:
    rules = read_rules(root / "scripts" / "directions.txt")
    wrong = []
    for folder in sorted(path for path in (root / "src").iterdir() if path.is_dir()):
        if folder.name not in rules:
            wrong.append(f"src/{folder.name}: has no line in scripts/directions.txt")
            continue
        for path in sorted(folder.rglob("*")):
            if path.suffix not in {".h", ".cc", ".c"} and path.name != "CMakeLists.txt":
                continue
            # Tests may use anything below the command line: they are where parts meet.
            user = "serve" if path.name.endswith("_test.cc") else folder.name
            for line, used in uses(path, set(rules)):
                if used in rules and not allowed(rules, user, used):
                    wrong.append(f"{path.relative_to(root)}:{line}: {folder.name} may not use {used}")
    return wrong


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
