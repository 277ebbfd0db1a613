"""The generator: every seed is a program that compiles, is always the same one, and takes the changes it names."""

from __future__ import annotations

import ast

import pytest
from live.case import ENVIRONMENT
from live.causes import CAUSES
from live.programs import BUILDERS, generated
from live.settings import STYLES, Settings

SEEDS = range(4 * len(BUILDERS))


@pytest.fixture(scope="module")
def cases():
    return [generated(seed) for seed in SEEDS]


def test_every_program_compiles_with_and_without_its_changes(cases):
    for case in cases:
        for change in ({}, case.cure, *case.changes.values()):
            compile(case.invocation(change).script, f"seed {case.name}", "exec")
        assert "$" not in case.script, f"seed {case.name}: a placeholder was not filled in"


def test_a_seed_always_gives_the_same_program(cases):
    assert [generated(seed) for seed in SEEDS] == cases


def test_seeds_give_different_programs(cases):
    assert len({case.script for case in cases}) > 0.95 * len(cases)


def test_both_halves_plant_the_same_causes(cases):
    assert [case.cause for case in cases[0::2]] == [case.cause for case in cases[1::2]]


def test_every_planted_cause_has_findings_that_name_it(cases):
    assert {case.cause for case in cases} <= set(CAUSES)


def test_programs_are_started_in_every_way_that_people_use(cases):
    assert {case.settings.style for case in cases} == set(STYLES)


def test_every_program_imports_what_it_uses(cases):
    """Names of modules only: whatever else is undefined, compiling does not see."""
    modules = {"glob", "json", "math", "np", "os", "queue", "random", "re", "threading", "time", "torch", "zlib", "gc"}
    for case in cases:
        tree = ast.parse(case.script)
        imported = {
            alias.asname or alias.name.split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names
        }
        used = {node.value.id for node in ast.walk(tree) if isinstance(node, ast.Attribute) and is_name(node.value)}
        assert used & modules <= imported, f"seed {case.name}"


def is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name)


def test_a_change_reaches_the_program_in_its_own_way(cases):
    for case in cases:
        for change in (case.cure, *case.changes.values()):
            environment = {k for k in change if k.startswith(ENVIRONMENT)}
            if not change or environment:
                continue
            started, plain = case.invocation(change), case.invocation({})
            assert started != plain, f"seed {case.name}: {change} changes nothing"


VALUES = {"num_workers": 0, "fast": False, "cached": True, "rate": 0.5, "folder": "photos"}


@pytest.mark.parametrize("style", STYLES)
def test_settings_arrive_as_they_were_given(style, monkeypatch):
    settings = Settings(style, VALUES)
    reads = ", ".join(f'"{name}": {settings.reference(name)}' for name in VALUES)
    script = "\n".join([*settings.imports, settings.definition(), f"seen = {{{reads}}}"])
    wanted = {"num_workers": 3, "fast": True, "cached": False, "rate": 0.25, "folder": "else"}
    for values, change in ((VALUES, {}), (wanted, wanted)):
        started = settings.apply(script, change)
        monkeypatch.setattr("sys.argv", ["train.py", *started.arguments])
        with monkeypatch.context() as environment:
            for name, value in started.environment.items():
                environment.setenv(name, value)
            seen: dict = {"__name__": "__main__"}
            exec(compile(started.script, style, "exec"), seen)  # noqa: S102
        assert seen["seen"] == values


def test_a_change_that_the_program_does_not_know_is_an_error():
    with pytest.raises(KeyError, match="no setting speed"):
        Settings("constants", VALUES).apply("", {"speed": 1})
