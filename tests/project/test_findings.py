"""Every finding has a page that `fullbore help FINDING` can print, and the pages keep one form."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DIAGNOSE = ROOT / "src" / "explain" / "diagnose"
JUDGES = DIAGNOSE / "judge"
PAGES = sorted((ROOT / "docs" / "findings").glob("*.md"))


@pytest.fixture(params=PAGES, ids=lambda path: path.stem)
def page(request):
    return request.param


def test_the_first_line_names_the_finding_and_describes_it(page):
    assert re.fullmatch(rf"# {page.stem}: \S.{{20,90}}", page.read_text().splitlines()[0])


def test_no_line_is_wider_than_a_terminal_of_100_columns(page):
    assert [line for line in page.read_text().splitlines() if len(line) > 100] == []


def test_a_page_says_how_to_confirm_when_not_to_and_what_fullbore_looks_at(page):
    headings = re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE)
    wanted = ["Confirm it by hand", "What fullbore looks at"]
    wanted += ["When not to trust it"] if page.stem == "healthy" else ["What it costs", "Fix it", "When not to"]
    assert set(wanted) <= set(headings)


def test_findings_that_a_page_refers_to_have_pages(page):
    names = {path.stem for path in PAGES}
    referred = re.findall(r"see `([a-z-]+)`", page.read_text())
    assert set(referred) <= names


def table_of_findings() -> list[str]:
    rows = re.findall(r'^FINDING\("([a-z-]+)", Judge(\w+), ', (DIAGNOSE / "findings.inc").read_text(), re.MULTILINE)
    for finding, judge in rows:
        assert judge == "".join(word.capitalize() for word in finding.split("-"))
    return [finding for finding, _ in rows]


def judge_file(finding: str, suffix: str = ".cc") -> Path:
    name = finding.replace("-", "_")
    folder = JUDGES / name if (JUDGES / name).is_dir() else JUDGES
    return folder / f"{name}{suffix}"


def test_findings_and_pages_are_the_same():
    assert sorted(table_of_findings()) == [path.stem for path in PAGES]


@pytest.mark.parametrize("finding", table_of_findings())
def test_a_finding_is_a_file_that_says_at_its_top_what_it_is(finding):
    text = judge_file(finding).read_text()
    assert text.startswith(f"// {finding}: ")
    judges = re.findall(r"^std::optional<Finding> (Judge\w+)\(", text, re.MULTILINE)
    assert len(judges) == 1


@pytest.mark.parametrize("finding", table_of_findings())
def test_a_finding_is_tested_on_what_raises_it_and_on_a_near_miss(finding):
    tests = re.findall(r"^TEST\(\w+, (\w+)\)", judge_file(finding, "_test.cc").read_text(), re.MULTILINE)
    if "return finding;" not in judge_file(finding).read_text():
        assert any(name.startswith("IsLeft") for name in tests), "a finding that no recording raises is left open"
        return
    assert any(name.startswith("IsRaised") for name in tests)
    assert any(name.startswith("IsNotRaised") for name in tests)


def test_no_two_findings_share_a_file():
    files = {judge_file(finding) for finding in table_of_findings()}
    others = {path for path in JUDGES.rglob("*.cc") if not path.name.endswith("_test.cc")} - files
    # What all share, one cause of a finding each, and, in a folder of the finding, what its causes share, a group of
    # causes each, and other loaders.
    causes = {"fp8_overhead.cc", "sync_bound_host.cc"}
    assert {path.name for path in others if path.parent == JUDGES} == {"judge.cc", *causes}
    assert {path.parent for path in others} == {JUDGES, JUDGES / "input_bound"}


def causes_of_input_bound() -> set[str]:
    causes = set()
    for path in (JUDGES / "input_bound").glob("*.cc"):
        if not path.name.endswith("_test.cc"):
            for line in re.findall(r"finding\.cause = .*", path.read_text()):
                causes |= set(re.findall(r'"([a-z-]+)"', line))
    assert causes
    return causes


def test_every_cause_of_input_bound_has_its_section():
    text = (ROOT / "docs" / "findings" / "input-bound.md").read_text()
    assert {cause for cause in causes_of_input_bound() if f"### {cause}\n" not in text} == set()


def test_pages_name_only_sources_of_device_activity_that_there_are():
    """Traces, exports and the profiler's windows: fullbore has no collector of its own in the training's process."""
    pages = {path.name: path.read_text() for path in (ROOT / "docs").rglob("*.md")}
    assert [name for name, text in pages.items() if re.search(r"(CUDA|CUPTI)\s+collector", text)] == []
