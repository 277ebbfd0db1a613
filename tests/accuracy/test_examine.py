"""One case from start to end, with a stand-in for fullbore whose report is known, and once with the real one."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path

import exam
import pytest
from both.findings import NOTHING_SAID
from finished_case import finding, result
from live.advice import advised, usual_changes
from live.case import Case
from live.conditions import CONDITIONS, under
from live.examine import chosen_changes, examine, proven_before, said
from live.laboratory import FULLBORE, Laboratory, in_work, run_to_the_end, until_told_from, work_of_step
from live.programs import generated
from live.score import score
from live.settings import Settings

PROGRAM = """
import json, os
NUM_WORKERS = 0
TIMES = "step_times.json"
step = 0.01 if NUM_WORKERS == 2 or os.environ.get("OMP_NUM_THREADS") == "1" else 0.03
json.dump([step] * 20, open(TIMES, "w"))
"""

# By steps rather than by time, so that it is as long on a busy machine.
TRAINING = """
import json, time, torch
NUM_WORKERS = 0
TIMES = "step_times.json"
torch.set_num_threads(1)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
stamps = [time.perf_counter()]
for _ in range(40):
    optimizer.zero_grad()
    model(torch.rand(4, 8)).square().mean().backward()
    optimizer.step()
    stamps.append(time.perf_counter())
json.dump([b - a for a, b in zip(stamps, stamps[1:])], open(TIMES, "w"))
"""

SLEEPING = """
import time, torch
SLEPT = 0.02
STEPS = 40
TIMES = "step_times.json"
torch.set_num_threads(1)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(STEPS):
    optimizer.zero_grad()
    model(torch.rand(4, 8)).square().mean().backward()
    end = time.perf_counter() + 0.005
    while time.perf_counter() < end:
        pass
    time.sleep(SLEPT)
    optimizer.step()
"""

STAND_IN = """#!{python}
import json, shlex, subprocess, sys
def time_of_step():
    return json.load(open("clock.json"))[0]
words = sys.argv[1:]
report = {{"findings": [each for each in [{finding}] if each], "step_time": {{"mean_ns": 3e7}}}}
report["window"] = {{"steps": 20, "warmup_steps": 0}}
if words[0] == "explain":
    print(json.dumps(report))
    sys.exit()
if words[0] == "compare":
    baseline, candidate = (subprocess.run(shlex.split(words[words.index(of) + 1]), check=True) and time_of_step()
                           for of in ("--baseline", "--candidate"))
    gain = {{"expected": baseline / candidate, "low": 0.9, "high": 9}}
    said = {{"verdict": "not-proven", "gain": gain, "turns": "slices", "pairs": [], "unit": "samples/s"}}
    json.dump(said, open(words[words.index("--json") + 1], "w"))
    sys.exit()
json.dump(report, open(words[words.index("--json") + 1], "w"))
sys.exit(subprocess.run(words[words.index("--") + 1:]).returncode)
"""


def program(text: str = PROGRAM, **more) -> Case:
    settings = more.pop("settings", Settings("constants", {"num_workers": 0, "times": "step_times.json"}))
    return Case("1", "no-workers", "a program", text, settings, **more)


def stand_in(folder: Path, first: dict) -> Path:
    path = folder / "fullbore"
    path.write_text(STAND_IN.format(python=sys.executable, finding=first))
    path.chmod(0o755)
    return path


def examined(folder: Path, first: dict, case: Case) -> dict:
    (folder / "photos").mkdir()
    return examine(case, CONDITIONS["as-is"], Laboratory(folder, 1, stand_in(folder, first)))


def test_the_advised_change_is_compared_with_the_program_as_it_is(tmp_path):
    done = examined(tmp_path, finding(change="DataLoader(num_workers=2)"), program(cure={"num_workers": 2}))
    assert done["changes"] == {"advised": {"num_workers": 2}}
    assert done["proofs"]["advised"]["gain"]["expected"] == pytest.approx(3)
    json.dumps(done)


def test_the_planted_cure_is_measured_only_where_the_finding_names_something_else():
    cured = program(cure={"num_workers": 1})
    named = chosen_changes(finding(change="DataLoader(num_workers=2)"), cured, CONDITIONS["as-is"], named=True)
    other = chosen_changes(finding(change="DataLoader(num_workers=2)"), cured, CONDITIONS["as-is"], named=False)
    assert named[0] == {"advised": {"num_workers": 2}}
    assert other[0] == {"advised": {"num_workers": 2}, "cure": {"num_workers": 1}}


def test_where_nothing_is_advised_the_usual_changes_are_tried(tmp_path):
    done = examined(tmp_path, finding("healthy", None), program())
    assert done["proofs"]["one-thread"]["gain"]["expected"] == pytest.approx(3)
    assert "advised" not in done["proofs"]


def test_a_report_without_findings_is_a_wrong_answer_not_a_case_left_out(tmp_path):
    done = examined(tmp_path, {}, program(cure={"num_workers": 2}))
    assert done["findings"] == [NOTHING_SAID]
    assert not score(done).right and score(done).best == pytest.approx(3)


def test_a_program_that_fails_is_a_result_with_its_last_words(tmp_path):
    done = examined(tmp_path, finding("healthy", None), program("raise SystemExit('no data here')"))
    assert "no data here" in done["failed"] and "proofs" not in done


def test_a_module_that_is_missing_skips_the_case(tmp_path):
    done = examined(tmp_path, finding(), program(needs=("no_such_module",)))
    assert done["skipped"] == "needs no_such_module"


@pytest.mark.parametrize(
    ("first", "state"),
    [
        (finding("healthy", None), "none"),
        (finding("input-bound decode"), "untestable"),
        (finding("host-other loop-code"), "misfit"),
        (finding("input-bound too-few-workers", change="DataLoader(num_workers=4)"), "applied"),
        (finding("thread-oversubscription", change="OMP_NUM_THREADS=1"), "applied"),
    ],
)
def test_advice_is_what_a_person_could_do_to_this_program(first, state):
    assert advised(first, program()).state == state


def test_a_program_that_logs_can_log_less():
    case = program(changes={"logging": {"num_workers": 0}})
    assert advised(finding("host-other loop-code"), case).state == "applied"


def test_the_usual_changes_begin_with_the_planted_cure_and_name_each_once():
    tried = usual_changes(program(cure={"num_workers": 2}), cores=2)
    assert list(tried) == ["cure", "one-thread", "workers-1"]


def test_affinity_holds_for_the_programs_of_a_condition(tmp_path):
    code = "import os; open('cpus', 'w').write(str(len(os.sched_getaffinity(0))))"
    with under(CONDITIONS["one-core"]) as enter:
        run_to_the_end([sys.executable, "-c", code], dict(os.environ), tmp_path, enter, 60)
    assert (tmp_path / "cpus").read_text() == "1"


def test_every_part_is_a_different_tenth_of_the_same_cases():
    cases = exam.all_cases("odd", 40)
    parts = [exam.part(cases, f"{number}/10") for number in range(1, 11)]
    assert sorted(case.name for each in parts for case in each) == sorted(case.name for case in cases)


def test_an_exam_that_was_stopped_continues_with_the_cases_that_are_left(tmp_path, monkeypatch):
    cases = [generated(seed) for seed in (1, 3, 5)]
    examined_now: list[str] = []

    def stopped_at_the_second(case, condition, *_):
        examined_now.append(case.name)
        if len(examined_now) == 2:
            raise KeyboardInterrupt
        return {**result(case=case.name), "condition": condition.name}

    monkeypatch.setattr(exam, "all_cases", lambda *_: cases)
    monkeypatch.setattr(exam, "examine", stopped_at_the_second)
    monkeypatch.setattr(exam.Laboratory, "make_photos", lambda self: None)
    results = ["--results", str(tmp_path / "results.jsonl"), "--fullbore", sys.executable]
    monkeypatch.setattr(sys, "argv", ["exam.py", "run", *results])
    assert exam.run(exam.parse()) == 130
    assert exam.run(exam.parse()) == 0
    assert examined_now == ["1", "3", "3", "5"]
    assert [json.loads(line)["case"] for line in open(tmp_path / "results.jsonl")] == ["1", "3", "5"]


@pytest.mark.long
def test_a_real_program_is_recorded_by_the_real_fullbore(tmp_path):
    pytest.importorskip("torch")
    if not FULLBORE.exists():
        pytest.skip("the binary is not built: make build")
    (tmp_path / "photos").mkdir()
    recorded, report = Laboratory(tmp_path, 1).record(program(TRAINING), lambda: None)
    assert recorded.steps == 40
    assert report["window"]["steps"] + report["window"]["warmup_steps"] == 40
    assert said(report)["findings"][0]["title"]


def test_a_recording_is_judged_again_and_what_was_measured_is_kept(tmp_path):
    before = examined(tmp_path, finding(change="DataLoader(num_workers=2)"), program())
    recordings = tmp_path / "kept"
    recordings.mkdir()
    (recordings / "1-as-is.fbr").touch()
    again = tmp_path / "again"
    again.mkdir()
    version = stand_in(again, finding(change="DataLoader(num_workers=2)", title="said anew"))
    laboratory = Laboratory(again, 1, version, recordings=recordings)
    done = examine(program(), CONDITIONS["as-is"], laboratory, before, before)
    assert done["findings"][0]["title"] == "said anew"
    assert done["proofs"] == before["proofs"]
    assert done["recorded"] == before["recorded"]


def test_what_is_advised_for_the_first_time_is_measured(tmp_path):
    before = examined(tmp_path, finding(change="DataLoader(num_workers=2)"), program())
    assert proven_before(before, {"cure": {"num_workers": 2}}) == {"cure": before["proofs"]["advised"]}
    assert proven_before(before, {"advised": {"num_workers": 2, "env:OMP_NUM_THREADS": 1}}) == {}


def test_advice_beside_others_is_measured_alone_and_what_is_known_of_that_is_kept(tmp_path):
    alone = {**examined(tmp_path, finding(change="DataLoader(num_workers=2)"), program()), "recorded": {}}
    laboratory = Laboratory(tmp_path, 1, stand_in(tmp_path, finding(change="DataLoader(num_workers=2)")))
    done = examine(program(), CONDITIONS["load-2-then-alone"], laboratory, None, alone)
    assert done["foreign"] == 2 and done["alone"]
    assert done["proofs"] == alone["proofs"]
    assert done["recorded"]["steps"] == 20


def test_threads_and_workers_that_are_advised_together_are_changed_together():
    told = finding(change="OMP_NUM_THREADS=1 and DataLoader(num_workers=2)")
    assert advised(told, program()).change == {"num_workers": 2, "env:OMP_NUM_THREADS": 1}
    generator = program(changes={"behind-loader": {"workers": 1}})
    assert advised(told, dataclasses.replace(generator, settings=Settings("constants", {}))).change == {
        "workers": 2,
        "env:OMP_NUM_THREADS": 1,
    }


def test_a_proof_goes_on_until_the_gain_is_told_from_none_and_from_what_was_promised():
    assert until_told_from(None) == ["--fail-if", "not-faster"]
    promised = ["--fail-if", "not-faster", "--fail-if", "not-faster 30.0%", "--fail-if", "not-faster 70.0%"]
    assert until_told_from({"low": 1.3, "high": 1.7}) == promised
    assert until_told_from({"low": 1.0001, "high": 40}) == promised[:2], "no thresholds of fullbore compare"


def test_a_step_that_does_more_counts_for_more_where_only_steps_are_counted():
    ranks = program(settings=Settings("constants", {"accumulate": 2}))
    assert work_of_step(ranks, {"accumulate": 10}) == 5
    assert work_of_step(ranks, {"num_workers": 2}) == 1
    proof = in_work({"expected": 0.4, "low": 0.3, "high": 0.5}, 5)
    assert proof == {"verdict": "faster", "gain": {"expected": 2.0, "low": 1.5, "high": 2.5}}


@pytest.mark.long
def test_a_real_change_is_proven_by_the_real_fullbore(tmp_path):
    pytest.importorskip("torch")
    if not FULLBORE.exists():
        pytest.skip("the binary is not built: make build")
    (tmp_path / "photos").mkdir()
    settings = Settings("constants", {"slept": 0.02, "steps": 40, "times": "step_times.json"})
    slow = Case("1", "loop-code", "sleeps", SLEEPING, settings)
    done = Laboratory(tmp_path, 1, budget_s=120).prove(slow, {"slept": 0.0}, lambda: None)
    assert done["verdict"] == "faster" and done["gain"]["low"] > 1.5
