"""One case from start to end: recorded and judged, then the program as it is in turns with each change."""

from __future__ import annotations

import json

from both.findings import findings_of, names

from .advice import advised, usual_changes
from .case import Case, Change
from .causes import CAUSES
from .conditions import Condition, under
from .laboratory import Failed, Laboratory

ADVISED = "advised"
CURE = "cure"


def missing(case: Case, laboratory: Laboratory) -> str:
    """Why this machine cannot run the case; empty if it can."""
    absent = [module for module in case.needs if laboratory.lacks(module)]
    return f"needs {', '.join(absent)}" if absent else ""


def examine(
    case: Case,
    condition: Condition,
    laboratory: Laboratory,
    before: dict | None = None,
    measured: dict | None = None,
) -> dict:
    """The finished case as one JSON object: what was said and measured, nothing judged yet. With what was said `before`
    of the same case, its recording is judged again. Of what was `measured` of it, under the condition that its changes
    are measured under, nothing is measured anew.
    """
    result: dict = {
        "case": case.name,
        "condition": condition.name,
        "cause": case.cause,
        "about": case.about,
        "expects": list(case.expects or CAUSES[case.cause]),
        "foreign": case.foreign_load + condition.foreign,
        "seconds": laboratory.seconds,
    }
    if why := missing(case, laboratory):
        return {**result, "skipped": why}
    try:
        with under(condition, case.foreign_load) as enter:
            kept_as = f"{case.name}-{condition.name}"
            report = laboratory.explain(kept_as) if before and "recorded" in before else None
            if before and report:
                result.update(said(report), recorded=before["recorded"], seconds=before["seconds"])
            else:
                recorded, report = laboratory.record(case, enter, kept_as)
                result.update(said(report), recorded=recorded.json())
            named = names(result["findings"][0], tuple(result["expects"]))
            changes, state = chosen_changes(result["findings"][0], case, condition, named)
            result.update(advice=state, changes=changes, alone=condition.alone)
        with under(condition.measured_under, case.foreign_load) as enter:
            known = proven_before(measured or {}, changes)
            promised = result["findings"][0].get("speedup")
            result["proofs"] = {
                name: known.get(name) or laboratory.prove(case, change, enter, promised if name == ADVISED else None)
                for name, change in changes.items()
            }
    except Failed as failure:
        result["failed"] = str(failure)
    return result


def chosen_changes(finding: dict, case: Case, condition: Condition, named: bool) -> tuple[dict[str, Change], str]:
    """The advised change; and, unless the finding `named` what was planted, the planted cure, which then shows whether
    the advice is as good. Where nothing is advised: what people usually try."""
    advice = advised(finding, case)
    if advice.change is not None:
        compared = case.cure and case.cure != advice.change and not named
        return {ADVISED: advice.change, **({CURE: case.cure} if compared else {})}, advice.state
    if advice.state == "none":
        return usual_changes(case, condition.cores), advice.state
    return ({CURE: case.cure} if case.cure else {}), advice.state


def said(report: dict) -> dict:
    step = report.get("step_time", {})
    return {
        "findings": findings_of(report),
        "step_s": step["mean_ns"] / 1e9 if step else None,
        "steps": report["window"]["steps"],
        "warmup_steps": report["window"]["warmup_steps"],
    }


def proven_before(before: dict, changes: dict[str, Change]) -> dict[str, dict]:
    """Those of these changes that were measured, whatever they were called then."""
    proofs = before.get("proofs", {})
    known = {json.dumps(change, sort_keys=True): proofs.get(name) for name, change in before.get("changes", {}).items()}
    again = {name: known.get(json.dumps(change, sort_keys=True)) for name, change in changes.items()}
    return {name: proof for name, proof in again.items() if proof}
