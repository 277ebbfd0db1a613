"""What a report said, as far as the exam looks at it."""

from __future__ import annotations

from fnmatch import fnmatchcase

# A report without findings is an answer, too, and a wrong one: every program of the exam trains or evaluates.
NOTHING_SAID = {"id": "none", "title": "No training was seen."}
KEPT = ("id", "cause", "severity", "share", "title", "change", "speedup")


def findings_of(report: dict) -> list[dict]:
    kept = [{k: f[k] for k in KEPT if k in f} | {"fix": f.get("fix", [])[:1]} for f in report["findings"]]
    return kept or [NOTHING_SAID]


def names(finding: dict, patterns: tuple[str, ...] | list[str]) -> bool:
    """Whether it is one of the patterns over "id cause"."""
    said = f"{finding['id']} {finding.get('cause', '')}".strip()
    return any(fnmatchcase(said, pattern) for pattern in patterns)
