"""The programs of public reports: each says what it is, and its row says what was measured."""

import sys

import pytest
import reports
from both.cured import Program, is_right, row


def result(findings: list[dict], place: int | None) -> dict:
    promised = findings[0].get("speedup") if place == 0 else None
    return {"program": "iloc", "findings": findings, "place": place, "promised": promised, "gain": 2.049}


@pytest.mark.parametrize("name", reports.EXPECTED)
def test_each_program_names_its_cause_and_has_a_cure(name):
    program = reports.program_of(name)
    assert len(program.said("Cause")) > 20
    assert "Source:" in program.about() and "Fix:" in program.about()
    assert "opts.fixed" in program.script.read_text()


def test_every_program_is_examined():
    assert {path.stem for path in reports.PROGRAMS.glob("*.py")} == {*reports.EXPECTED, "clock"}


def test_programs_of_several_ranks_are_launched_as_such():
    assert "torch.distributed.run" in reports.program_of("ddpaccum").command(3)
    assert "torch.distributed.run" not in reports.program_of("iloc").command(3)


def test_a_missing_module_is_said(tmp_path):
    (tmp_path / "made.py").write_text("import json\nimport no_such_module.part\n")
    assert Program(tmp_path / "made.py", (), sys.executable).lacks() == ["no_such_module"]


def test_a_row_says_where_the_cause_stands_and_what_was_promised():
    first = {"id": "input-bound", "cause": "no-workers", "speedup": {"low": 1.07, "expected": 1.2, "high": 1.84}}
    assert (
        row(result([first], 0))
        == "| iloc | input-bound no-workers | first | 1.20x (1.07 to 1.84) | 2.05x | 71% | **no** |"
    )
    healthy = {"id": "healthy"}
    assert row(result([healthy], None)) == "| iloc | healthy | no | nothing | 2.05x | - | - |"
    assert "| number 3 |" in row(result([healthy], 2))


def test_to_promise_nothing_is_right_where_nothing_is_to_be_gained():
    own_work, promises = {"id": "host-other"}, {"id": "input-bound", "speedup": {"low": 1.1, "high": 1.5}}
    assert is_right(result([promises], 0))
    assert not is_right(result([promises], 1))
    assert not is_right(result([own_work], None))
    assert is_right({**result([own_work], None), "gain": 1.02})
