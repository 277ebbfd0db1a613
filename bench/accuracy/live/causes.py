"""What may be planted, and which first findings name it: patterns over "id cause".

Several may be right: a generator that decodes in the loop is both waiting for data and work beside the training. What
was right for a case is kept with its result, so a finding that is renamed here counts from the next run on.
"""

from __future__ import annotations

CAUSES: dict[str, tuple[str, ...]] = {
    "healthy": ("healthy",),
    "no-workers": ("input-bound no-workers", "input-bound too-few-workers", "input-bound fast-data"),
    "too-few-workers": ("input-bound too-few-workers", "input-bound fast-data"),
    "decode": ("input-bound decode",),
    "storage": ("input-bound storage", "input-bound blocked*"),
    "storage-latency": ("input-bound storage", "input-bound blocked*", "input-bound *-workers"),
    "blocked": ("input-bound blocked*", "input-bound storage"),
    "collate": ("input-bound collate",),
    "blocked-collate": ("input-bound blocked*", "input-bound *collate*"),
    "slow-sample": ("input-bound slow-sample",),
    "epoch-start": ("input-bound epoch-start", "worker-overcommit"),
    "worker-overcommit": ("worker-overcommit", "input-bound epoch-start"),
    "own-loader": ("input-bound*", "host-other queue", "host-other data-preparation", "host-other tokenising"),
    "image-folder": ("input-bound*",),
    "logging": ("host-other logging", "host-other files", "host-other loop-code"),
    "checkpoint": ("host-other checkpoint",),
    "validation": ("host-other validation",),
    "garbage-collection": ("host-other garbage-collection",),
    "metrics": ("host-other metrics", "host-other loop-code"),
    "subprocess": ("host-other subprocess", "host-other loop-code"),
    "sleep": ("host-other sleep", "host-other loop-code"),
    "rollout": ("host-other rollout", "host-other loop-code"),
    "memory-growth": ("*memory*",),
    "thread-oversubscription": ("thread-oversubscription",),
    "straggler": ("straggler",),
    "foreign-load": ("cpu-contention",),
}
# What the cure does to a step. Where a pause goes away, the rest of the step changes with it; how much fewer threads
# gain depends on what else wants the cores.
PAUSES = (
    "blocked blocked-collate collate garbage-collection sleep slow-sample storage storage-latency subprocess".split()
)
THREADS = ("foreign-load", "thread-oversubscription")


def kind_of_cure(cause: str) -> str:
    return "a pause goes away" if cause in PAUSES else "fewer threads" if cause in THREADS else "anything else"


# These cost no time until the run ends of them: it is enough that they are among the findings.
NAMED_ANYWHERE = {"memory-growth"}
# First findings that say "there is nothing to gain", where they promise nothing.
NOTHING_TO_GAIN = {"healthy", "input-bound", "host-other", "unstable-steps"}
