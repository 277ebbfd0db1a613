"""Every finding has a page that `fullbore help FINDING` can print, and the pages keep one form."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
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


def quoted_after(assignment: str, sources: str) -> set[str]:
    """The quoted names on lines of the diagnosis that assign to `assignment`."""
    names = set()
    for path in (ROOT / "src" / "explain" / "diagnose").glob(sources):
        if not path.name.endswith("_test.cc"):
            for line in re.findall(rf"finding\.{assignment} = .*", path.read_text()):
                names |= set(re.findall(r'"([a-z-]+)"', line))
    assert names, f"no assignment to {assignment} found in src/explain/diagnose/{sources}"
    return names


def test_every_finding_that_the_diagnosis_makes_has_a_page():
    assert quoted_after("id", "*.cc") <= {path.stem for path in PAGES}


def test_every_cause_of_input_bound_has_its_section():
    text = (ROOT / "docs" / "findings" / "input-bound.md").read_text()
    assert {cause for cause in quoted_after("cause", "judge_input*.cc") if f"### {cause}\n" not in text} == set()
