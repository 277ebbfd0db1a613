"""Pairs from seeds, and the run over them with a stand-in for fullbore whose report is known."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter

import exam
import pytest
from device import run
from device.causes import ANY, BFLOAT16, CAUSES, LATER
from device.examine import examine, forbidden, prediction, what_if_of
from device.hardware import DEVICES
from device.pair import period_of
from device.plant import PLANTS, cause_of, generated
from device.training import layout_of
from finished_pair import said

STAND_IN = """#!{python}
import json, sys
words = sys.argv[1:]
if "--help" in words:
    print("{help}")
    sys.exit()
open("{log}", "a").write(" ".join(words) + "\\n")
steps = sum('"ProfilerStep#' in line and "user_annotation" in line for line in open(words[1]))
report = {{"window": {{"steps": 3, "warmup_steps": 1}}, "step_time": {{"mean_ns": 2e7, "shares": {{}}}}}}
report["findings"] = [{{"id": "input-bound", "title": "Training waits.", "share": 0.4,
                       "speedup": {{"expected": 2.0, "low": 1.6, "high": 2.5}}}}]
if "--what-if" in words:
    gain = {{"expected": 2.0, "low": 1.6, "high": 2.5}}
    report["replay"] = {{"what_if": [{{"change": words[-1], "step_ns": 10e6, "speedup": gain}}]}}
print(json.dumps(report))
"""


@pytest.fixture
def stand_in(tmp_path):
    def made(help_text: str = "--json FILE"):
        path = tmp_path / "fullbore"
        path.write_text(STAND_IN.format(python=sys.executable, help=help_text, log=tmp_path / "log"))
        path.chmod(0o755)
        return path

    return made


# Of every kind one: nothing wrong, on the host, on the way, on the device, in the loader, between ranks, now and then,
# and where no advice may be given.
SAMPLE = ("healthy", "item", "pageable", "fp32", "no-workers", "slow-links", "checkpoint", "unexplained", "single-step")


@pytest.fixture(scope="module")
def pairs():
    return [generated(seed_of(cause)) for cause in SAMPLE]


def seed_of(cause: str) -> int:
    return 2 * list(CAUSES).index(cause)


@pytest.mark.long
def test_every_cause_has_its_plant_and_its_turn():
    assert set(PLANTS) == set(CAUSES)
    later = {cause_of(first + 1) for first in LATER.values()}
    assert later == set(LATER), "which leave the seeds of the others to them"
    assert {cause_of(seed) for seed in range(2 * len(CAUSES))} | later == set(CAUSES)


@pytest.mark.long
def test_what_is_computed_again_is_a_part_of_the_forward_pass():
    pair = generated(LATER["recomputation"])
    assert pair.before.recompute and not pair.after.recompute
    again = [op for op in layout_of(pair.before).backward if op.again]
    once = layout_of(pair.after)
    kernels = sum(len(each.kernels) for op in again for each in op.again)
    assert 0 < kernels < len([kernel for op in once.forward for kernel in op.kernels])
    assert len(layout_of(pair.before).kernels) == len(once.kernels) + kernels


@pytest.mark.long
def test_both_halves_plant_the_same():
    odd, even = (Counter(cause_of(seed) for seed in range(first, 600, 2)) for first in (1, 0))
    assert odd == even


@pytest.mark.long
def test_a_seed_always_gives_the_same_pair(pairs):
    assert generated(0) == pairs[0]
    assert generated(1) != pairs[0]


@pytest.mark.long
def test_the_cure_is_the_only_difference_that_a_pair_has(pairs):
    for pair in pairs:
        if pair.after is not None:
            assert pair.before != pair.after
            same = ("key", "device_key", "shape", "batch", "ranks", "optimizer", "steps", "warmup", "host_scale")
            assert all(getattr(pair.before, name) == getattr(pair.after, name) for name in same)
        assert bool(pair.rule.change) == (pair.after is not None)


@pytest.mark.long
def test_a_recording_holds_whole_periods_of_what_happens_now_and_then(pairs):
    for pair in pairs:
        if pair.cause in ("checkpoint", "validation", "garbage-collection"):
            assert pair.before.steps % period_of(pair.before) == 0


@pytest.mark.long
def test_float32_on_a_device_without_bfloat16_must_not_be_told_to_use_it(pairs):
    for pair in pairs:
        if pair.before.device_key == "v100":
            assert BFLOAT16 in forbidden(pair)
        if pair.before.device_key in ("a100", "h100", "mi300x") and pair.rule.forbids == ():
            assert forbidden(pair) == ()
    assert re.search(BFLOAT16, "torch.autocast('cuda', torch.bfloat16)")
    assert not re.search(BFLOAT16, "has tensor cores for float16, but not for bfloat16 or TF32")
    assert re.search(ANY, "anything")
    assert "bf16" not in DEVICES["v100"].peak


@pytest.mark.long
def test_without_a_what_if_the_finding_that_names_the_cause_predicts(pairs):
    pair = next(each for each in pairs if each.cause == "pageable")
    report = {"step_time": {"mean_ns": 20e6}, "findings": [said("healthy", None), said("copy-bound", 2.0)]}
    predicted = prediction(report, pair)
    assert predicted["by"] == "finding" and predicted["expected"] == pytest.approx(10e6)
    assert predicted["low"] == pytest.approx(20e6 / 2.2) and predicted["high"] == pytest.approx(20e6 / 1.8)
    assert prediction({**report, "findings": [said("sync-bound")]}, pair) is None


@pytest.mark.long
def test_a_what_if_goes_before_a_finding(pairs):
    pair = next(each for each in pairs if each.cause == "pageable")
    rung = {"change": "pin", "step_ns": 10e6, "speedup": {"expected": 2.0, "low": 1.6, "high": 2.5}}
    report = {"step_time": {"mean_ns": 21e6}, "findings": [said()], "replay": {"what_if": [rung]}}
    assert prediction(report, pair) == {"by": "what-if", "expected": 10e6, "low": 8e6, "high": 12.5e6}


@pytest.mark.long
def test_a_pair_is_examined_from_its_trace_to_its_prediction(stand_in, tmp_path):
    done = examine(generated(seed_of("garbage-collection")), stand_in(), tmp_path)
    json.dumps(done)
    assert done["findings"][0]["id"] == "input-bound" and done["true"]["before_ns"] > 0
    assert "--what-if" not in (tmp_path / "log").read_text()


@pytest.mark.long
def test_a_binary_that_knows_what_ifs_is_asked_for_the_planted_cure(stand_in, tmp_path):
    pair = generated(seed_of("no-workers"))
    done = examine(pair, stand_in("--what-if LIST"), tmp_path)
    assert what_if_of(pair).startswith("workers=")
    assert (tmp_path / "log").read_text().split()[-2:] == ["--what-if", what_if_of(pair)]
    assert done["prediction"] == {"by": "what-if", "expected": 10e6, "low": 8e6, "high": 12.5e6}


@pytest.mark.long
def test_a_failure_of_fullbore_is_a_result_too(tmp_path):
    broken = tmp_path / "fullbore"
    broken.write_text("#!/bin/sh\necho no such trace >&2\nexit 3\n")
    broken.chmod(0o755)
    done = examine(generated(0), broken, tmp_path)
    assert "ended with 3: no such trace" in done["failed"] and "findings" not in done


def exam_with(arguments: list[str], monkeypatch) -> int:
    monkeypatch.setattr(sys, "argv", ["exam.py", "device", *arguments])
    parsed = exam.parse()
    return parsed.command(parsed)


@pytest.mark.long
def test_a_run_that_was_stopped_continues_with_the_pairs_that_are_left(stand_in, tmp_path, monkeypatch, capsys):
    examined_now: list[int] = []
    real = run.generated

    def stopped_at_the_second(seed):
        examined_now.append(seed)
        if len(examined_now) == 2:
            raise KeyboardInterrupt
        return real(seed)

    monkeypatch.setattr(run, "generated", stopped_at_the_second)
    results = tmp_path / "results.jsonl"
    arguments = ["--only", "1", "43", "45", "--results", str(results), "--fullbore", str(stand_in())]
    assert exam_with(arguments, monkeypatch) == 130
    assert exam_with([*arguments, "--json"], monkeypatch) == 0
    assert examined_now == [1, 43, 43, 45]
    assert [json.loads(line)["case"] for line in open(results)] == ["1", "43", "45"]
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["groups"]["all"]["pairs"] == 3


@pytest.mark.long
def test_pairs_are_chosen_by_half_and_in_a_fixed_random_order():
    odd = run.seeds_of("odd", 600)
    assert len(odd) == 300 and all(seed % 2 for seed in odd) and odd != sorted(odd)
    assert odd == run.seeds_of("odd", 600)
    assert len(run.seeds_of("both", 600)) == 600
