"""The tables over finished cases."""

from __future__ import annotations

import json

import pytest
from both.tables import BEGIN, END, half_of, percentile, read_results, wilson, write_into
from finished_case import finding, proof, result
from live.summary import markdown


def test_wilsons_interval_is_that_of_the_textbook():
    low, high = wilson(81, 263)
    assert (low, high) == (pytest.approx(0.2553, abs=1e-4), pytest.approx(0.3662, abs=1e-4))


def test_all_of_a_few_is_not_certainty():
    low, high = wilson(5, 5)
    assert low < 0.6 and high == 1.0


def test_nothing_measured_leaves_everything_possible():
    assert wilson(0, 0) == (0.0, 1.0)


def test_the_percentile_is_one_of_the_values():
    assert percentile([5, 1, 4, 2, 3], 0.95) == 5
    assert percentile([5, 1, 4, 2, 3], 0.5) == 3


def test_the_first_table_counts_every_judged_case_once():
    wrong = result(finding("host-other checkpoint"), case="9", proofs={"advised": proof(1.5), "cure": proof(3)})
    text = markdown([result(), wrong, result(case="11", condition="one-core")], "odd")
    assert "| all | 3 | 2 of 3 (21 to 94 %) |" in text
    assert text.startswith("Odd seeds (never fitted to), 3 cases. Recorded for 12 s;")
    assert "| one-core | 1 | 1 of 1 (21 to 100 %) |" in text


def test_the_worst_cases_quote_the_verdict_and_what_was_measured():
    text = markdown([result(), result(case="13", proofs={"advised": proof(0.67, 0.6, 0.72)})], "odd")
    assert '- `13` (no-workers, as-is): decodes in the training thread.\n  Said: "Training waits."' in text
    assert "Predicted 1.50x (1.30x to 1.70x); measured 0.67x (an interval 1.20 wide, high over low)" in text
    assert "- `7`" not in text


def test_cases_that_were_not_measured_are_listed_with_their_reason():
    skipped = {**result(), "case": "35", "skipped": "needs torchvision"}
    del skipped["proofs"]
    failed = {**skipped, "case": "37", "failed": "ended with 1: no room"}
    del failed["skipped"]
    text = markdown([result(), skipped, failed], "odd")
    assert "- `35`: needs torchvision" in text and "- `37` failed: ended with 1: no room" in text
    assert "| all | 1 |" in text


def test_odd_seeds_are_kept_apart_from_those_that_constants_may_be_fitted_to():
    results = [{"case": name} for name in ("1", "2", "3", "planted-collate")]
    assert [each["case"] for each in half_of(results, "odd")] == ["1", "3"]
    assert [each["case"] for each in half_of(results, "even")] == ["2", "planted-collate"]


def test_a_line_cut_short_costs_only_its_own_case(tmp_path):
    file = tmp_path / "results.jsonl"
    file.write_text(json.dumps({"case": "1"}) + "\n" + '{"case": "2", "proo')
    assert read_results(file) == [{"case": "1"}]


def test_the_page_keeps_what_stands_around_the_marks(tmp_path):
    page = tmp_path / "accuracy.md"
    page.write_text(f"# Before\n\n{BEGIN}\nold\n{END}\n\nafter\n")
    write_into(page, "new")
    write_into(page, "newer")
    assert page.read_text() == f"# Before\n\n{BEGIN}\n\nnewer\n\n{END}\n\nafter\n"


def test_a_page_without_marks_is_left_alone(tmp_path):
    page = tmp_path / "other.md"
    page.write_text("text")
    with pytest.raises(ValueError, match="no marks"):
        write_into(page, "new")
    assert page.read_text() == "text"
