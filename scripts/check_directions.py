#!/usr/bin/env python3
"""Checks that src/, include/ and python/ keep the directions of scripts/directions.txt.

In C++ it looks at #include "folder/..." lines and at the DEPENDS of the CMake targets, by text; in Python at the import
statements in each module's syntax tree. Needs nothing but Python. Prints each violation as file:line and exits with 1.

    scripts/check_directions.py [SOURCE_ROOT]
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s+"([a-z_][a-z_/.0-9]*)"')
TARGET = re.compile(r"fullbore_component\((\w+)(.*?)\)", re.DOTALL)
DEPENDS = re.compile(r"\b(?:PUBLIC_)?DEPENDS\b((?:\s+[a-z_0-9]+)+)")
EVERYTHING = "*"
PUBLIC_HEADERS = "fullbore"


@dataclass
class Rules:
    """C++ components are paths, Python components dotted names."""

    may_use: dict[str, set[str]] = field(default_factory=dict)
    may_use_in_functions: dict[str, set[str]] = field(default_factory=dict)

    def allow(self, user: str, used: str, in_function: bool = False) -> bool:
        if EVERYTHING in self.may_use[user]:
            return used != "cli" or user == "cli"
        return used in self.may_use[user] or (in_function and used in self.may_use_in_functions[user])


def read_rules(path: Path) -> tuple[Rules, Rules]:
    """The rules for C++ and those for Python."""
    cpp, python = Rules(), Rules()
    for line in path.read_text().splitlines():
        component, colon, used = line.split("#")[0].strip().partition(":")
        if not colon:
            continue
        is_python = "." in component
        given = used.split()
        always = {name for name in given if not name.startswith("(")} | {component}
        if not is_python and component != PUBLIC_HEADERS:
            always |= {"base", PUBLIC_HEADERS}
        rules = python if is_python else cpp
        rules.may_use[component] = always
        rules.may_use_in_functions[component] = {name.strip("()") for name in given if name.startswith("(")}
    return cpp, python


def component_of(path: str, components: dict[str, set[str]], separator: str = "/") -> str | None:
    """The longest component that a path or a module name begins with."""
    parts = path.split(separator)
    for length in range(len(parts), 0, -1):
        if (component := separator.join(parts[:length])) in components:
            return component
    return None


# --- C++


def sources(root: Path) -> Iterator[tuple[Path, str]]:
    """Files and their paths below src/ or include/."""
    for top in (root / "include", root / "src"):
        for path in sorted(top.rglob("*")):
            if path.suffix in {".h", ".cc", ".c"} or path.name == "CMakeLists.txt":
                yield path, path.relative_to(top).as_posix()


def components_of_targets(root: Path, rules: Rules) -> dict[str, str]:
    """A target belongs to the folder whose CMakeLists.txt defines it."""
    found = {}
    for path, inside in sources(root):
        if path.name == "CMakeLists.txt" and (component := component_of(inside, rules.may_use)):
            found.update((target.group(1), component) for target in TARGET.finditer(path.read_text()))
    return found


def links(text: str, targets: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Line numbers and components that a CMakeLists.txt names."""
    for target in TARGET.finditer(text):
        for depends in DEPENDS.finditer(target.group(2)):
            line = text.count("\n", 0, target.start(2) + depends.start()) + 1
            for name in depends.group(1).split():
                if name in targets:
                    yield line, targets[name]


def includes(text: str, rules: Rules) -> Iterator[tuple[int, str]]:
    """Line numbers and components that a source file names."""
    for number, line in enumerate(text.splitlines(), 1):
        if (match := INCLUDE.match(line)) and (component := component_of(match.group(1), rules.may_use)):
            yield number, component


def check_cpp(root: Path, rules: Rules) -> list[str]:
    wrong, unlisted = [], set()
    targets = components_of_targets(root, rules)
    for path, inside in sources(root):
        is_cmake = path.name == "CMakeLists.txt"
        component = component_of(inside, rules.may_use)
        if component is None:
            # A CMakeLists.txt that only lists the components below it belongs to none.
            if not is_cmake:
                unlisted.add(path.parent.relative_to(root).as_posix())
            continue
        # Tests may use everything but the command line, unless it is their own: they are where components meet.
        is_test = path.name.endswith("_test.cc")
        text = path.read_text(errors="replace")
        for line, used in links(text, targets) if is_cmake else includes(text, rules):
            if not (used != "cli" or component == "cli" if is_test else rules.allow(component, used)):
                wrong.append(f"{path.relative_to(root)}:{line}: {component} may not use {used}")
    return [f"{folder}: has no line in scripts/directions.txt" for folder in sorted(unlisted)] + wrong


# --- Python


@dataclass(frozen=True)
class Import:
    line: int
    name: str  # the module's dotted name
    in_function: bool


def module_name(path: Path, top: Path) -> str:
    parts = path.relative_to(top).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST, package: str, modules: dict[str, Path], in_function: bool = False) -> Iterator[Import]:
    """The imports of any of `modules`; `package` is what a leading dot stands for."""
    for node in ast.iter_child_nodes(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            # `from package import name`: a module of the package, or something in the package itself
            names = [full if (full := f"{source}.{alias.name}") in modules else source for alias in node.names]
        yield from (Import(node.lineno, name, in_function) for name in dict.fromkeys(names) if name in modules)
        is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        yield from imports(node, package, modules, in_function or is_function)


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """One cycle for each group of modules that reach each other: the shortest through the group's first name."""
    reach = {name: reachable(name, graph) for name in graph}
    found, seen = [], set()
    for name in sorted(graph):
        if name in reach[name] and name not in seen:
            seen |= {other for other in reach[name] if name in reach[other]}
            found.append(shortest_way_back(name, graph))
    return found


def reachable(start: str, graph: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def shortest_way_back(start: str, graph: dict[str, set[str]]) -> list[str]:
    ways = [[start]]
    seen: set[str] = set()
    for way in ways:  # grows during the iteration
        for after in sorted(graph[way[-1]]):
            if after == start:
                return [*way, start]
            if after not in seen:
                seen.add(after)
                ways.append([*way, after])
    return []


def check_python(root: Path, rules: Rules) -> list[str]:
    top = root / "python"
    modules = {module_name(path, top): path for path in sorted(top.rglob("*.py*")) if path.suffix in {".py", ".pyi"}}
    graph: dict[str, set[str]] = {name: set() for name in modules}
    wrong = []
    for name, path in modules.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        component = component_of(name, rules.may_use, ".")
        for found in imports(ast.parse(path.read_text(), str(path)), package, modules):
            used = component_of(found.name, rules.may_use, ".")
            declared = component and found.in_function and used in rules.may_use_in_functions[component]
            if not declared:
                graph[name].add(found.name)
            if component and used and not rules.allow(component, used, found.in_function):
                wrong.append(f"{path.relative_to(root)}:{found.line}: {component} may not use {used}")
    return wrong + [f"python: import cycle: {' -> '.join(way)}" for way in cycles(graph)]


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    cpp, python = read_rules(root / "scripts" / "directions.txt")
    wrong = check_cpp(root, cpp) + check_python(root, python)
    for line in wrong:
        print(line)
    if wrong:
        print("hint: scripts/directions.txt has the rules, ARCHITECTURE.md the reasons")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
