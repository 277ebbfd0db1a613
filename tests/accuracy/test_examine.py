"""One case from start to end, with a stand-in for fullbore whose report is known, and once with the real one."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import exam
import pytest
from finished_case import finding
from live.advice import advised, usual_changes
from live.case import Case
from live.conditions import CONDITIONS, under
from live.examine import examine
from live.laboratory import FULLBORE, Laboratory, run_to_the_end
from live.programs import BUILDERS, generated, whole
from live.settings import Settings

PROGRAM = """
import json, os
NUM_WORKERS = 0
TIMES = "step_times.json"
step = 0.01 if NUM_WORKERS == 2 or os.environ.get("OMP_NUM_THREADS") == "1" else 0.03
json.dump([step] * 20, open(TIMES, "w"))
"""

STAND_IN = """#!{python}
import json, subprocess, sys
words = sys.argv[1:]
command = words[words.index("--") + 1:]
report = {{"findings": [{finding}], "window": {{"steps": 20, "warmup_steps": 0}}, "step_time": {{"mean_ns": 3e7}}}}
json.dump(report, open(words[words.index("--json") + 1], "w"))
sys.exit(subprocess.run(command).returncode)
"""


def program(text: str = PROGRAM, **more) -> Case:
    settings = Settings("constants", {"num_workers": 0, "times": "step_times.json"})
    return Case("1", "no-workers", "a program", text, settings, **more)


def stand_in(folder: Path, said: dict) -> Path:
    path = folder / "fullbore"
    path.write_text(STAND_IN.format(python=sys.executable, finding=said))
    path.chmod(0o755)
    return path


def examined(folder: Path, said: dict, case: Case) -> dict:
    (folder / "photos").mkdir()
    return examine(case, CONDITIONS["as-is"], Laboratory(folder, 1, stand_in(folder, said)), rounds=2)


def test_the_advised_change_is_measured_in_turns_with_the_program_as_it_is(tmp_path):
    result = examined(tmp_path, finding(change="DataLoader(num_workers=2)"), program(cure={"num_workers": 2}))
    assert result["changes"] == {"advised": {"num_workers": 2}}
    assert [half["mean_s"] for half in result["halves"]["as-is"]] == pytest.approx([0.03, 0.03])
    assert [half["mean_s"] for half in result["halves"]["advised"]] == pytest.approx([0.01, 0.01])
    json.dumps(result)


def test_where_nothing_is_advised_the_usual_changes_are_tried(tmp_path):
    result = examined(tmp_path, finding("healthy", None), program())
    assert result["halves"]["one-thread"][0]["mean_s"] == pytest.approx(0.01)
    assert "advised" not in result["halves"]


def test_a_program_that_fails_is_a_result_with_its_last_words(tmp_path):
    result = examined(tmp_path, finding("healthy", None), program("raise SystemExit('no data here')"))
    assert "no data here" in result["failed"] and "halves" not in result


def test_a_module_that_is_missing_skips_the_case(tmp_path):
    result = examined(tmp_path, finding(), program(needs=("no_such_module",)))
    assert result["skipped"] == "needs no_such_module"


@pytest.mark.parametrize(
    ("said", "state"),
    [
        (finding("healthy", None), "none"),
        (finding("input-bound decode"), "untestable"),
        (finding("host-other loop-code"), "misfit"),
        (finding("input-bound too-few-workers", change="DataLoader(num_workers=4)"), "applied"),
        (finding("thread-oversubscription", change="OMP_NUM_THREADS=1"), "applied"),
    ],
)
def test_advice_is_what_a_person_could_do_to_this_program(said, state):
    assert advised(said, program()).state == state


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


def test_a_real_program_is_recorded_and_measured(tmp_path):
    pytest.importorskip("torch")
    if not FULLBORE.exists():
        pytest.skip("the binary is not built: make build")
    (tmp_path / "photos").mkdir()
    case = generated(2 * BUILDERS.index(whole.adversarial))
    recorded, report = Laboratory(tmp_path, 1).record(case, lambda: None)
    assert recorded.steps > 0 and recorded.mean_s > 0
    assert report["window"]["steps"] > 0 and report["findings"]
