"""What the simulator knows of where a step's time went: shares of the steps, by rank and over all ranks.

A kind of work is exposed where it runs and no computation does. Idle time of a device belongs to what its host was
doing between the moment it ran dry and the launch that ended the pause.
"""

from __future__ import annotations

from bisect import bisect_right

from .gpu import COLLECTIVE, COPY, Work
from .host import Activity, Host
from .simulate import Run

Intervals = list[tuple[int, int]]
# Of activities that contain each other, the first that is named counts: a checkpoint also blocks.
PAUSES = ("checkpoint", "validation", "garbage-collection", "silent", "data", "blocked")


def union(intervals: Intervals) -> Intervals:
    merged: list[list[int]] = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        elif end > begin:
            merged.append([begin, end])
    return [(begin, end) for begin, end in merged]


def length(intervals: Intervals) -> int:
    return sum(end - begin for begin, end in intervals)


def without(intervals: Intervals, others: Intervals) -> Intervals:
    """Both are unions."""
    left: Intervals = []
    place = 0
    for begin, end in intervals:
        while place < len(others) and others[place][1] <= begin:
            place += 1
        at, next_ = begin, place
        while next_ < len(others) and others[next_][0] < end:
            if others[next_][0] > at:
                left.append((at, others[next_][0]))
            at = max(at, others[next_][1])
            next_ += 1
        if at < end:
            left.append((at, end))
    return left


def clipped(intervals: Intervals, begin: int, end: int) -> Intervals:
    return [(max(a, begin), min(b, end)) for a, b in intervals if b > begin and a < end]


class RankTruth:
    def __init__(self, run: Run, host: Host) -> None:
        self.begin, self.end = run.completions[0], run.completions[-1]
        self.host = host
        works = [work for work in host.gpu.history if work.end > self.begin and work.begin < self.end]
        self.works = sorted(works, key=lambda work: work.begin)
        self.compute = self._of([work for work in self.works if work.kind not in (COPY, COLLECTIVE)])
        self.comm = self._of([work for work in self.works if work.kind == COLLECTIVE])
        self.copies = self._of([work for work in self.works if work.kind == COPY])

    def _of(self, works: list[Work]) -> Intervals:
        return clipped(union([(work.begin, work.end) for work in works]), self.begin, self.end)

    @property
    def busy(self) -> Intervals:
        return union(self.compute + self.comm + self.copies)

    def waiting(self) -> Intervals:
        """In collectives that not all ranks have entered, while nothing else is computed."""
        spans = [(w.begin, min(w.end, w.meeting.complete_at)) for w in self.works if w.kind == COLLECTIVE]
        return without(clipped(union(spans), self.begin, self.end), self.compute)

    def shares(self) -> dict[str, float]:
        """They add up to 1."""
        comm = without(self.comm, self.compute)
        waiting = length(self.waiting())
        parts = {
            "compute": length(self.compute),
            "waiting": waiting,
            "comm": length(comm) - waiting,
            "copy": length(without(without(self.copies, self.compute), self.comm)),
            **self._idle(),
        }
        return {name: part / (self.end - self.begin) for name, part in parts.items()}

    def _idle(self) -> dict[str, int]:
        parts = dict.fromkeys(("data", "sync", "launch", "gap", "checkpoint", "validation", "garbage-collection"), 0)
        parts["silent"] = 0
        by_begin = [work.begin for work in self.works]
        activities = _by_tag(self.host.activities)
        delay = self.host.device.delay_ns
        for begin, end in without([(self.begin, self.end)], self.busy):
            index = bisect_right(by_begin, end - 1)
            launched = self.works[index].arrival - delay if index < len(self.works) else end
            if launched <= begin:
                parts["gap"] += end - begin
                continue
            self._divide(begin, min(end, launched), activities, parts)
            parts["launch"] += end - min(end, launched)
        return parts

    def _divide(self, begin: int, end: int, activities: dict[str, Intervals], parts: dict[str, int]) -> None:
        left: Intervals = [(begin, end)]
        blocked = False
        for tag in PAUSES:
            covered = clipped(activities[tag], begin, end)
            rest = without(left, covered)
            name = "sync" if tag == "blocked" else tag
            parts[name] += length(left) - length(rest)
            blocked = blocked or (tag == "blocked" and bool(covered))
            left = rest
        # after it was blocked, the host has to launch anew: that is the price of having been blocked
        parts["sync" if blocked else "launch"] += length(left)


def _by_tag(activities: list[Activity]) -> dict[str, Intervals]:
    return {tag: union([(a.begin, a.end) for a in activities if a.tag == tag]) for tag in PAUSES}


def shares(run: Run) -> dict[str, float]:
    """Mean over the ranks."""
    each = [RankTruth(run, host).shares() for host in run.hosts]
    return {name: sum(of[name] for of in each) / len(each) for name in each[0]}


def lateness(run: Run) -> float:
    """How much longer the other ranks wait for the slow one than it waits for them."""
    waits = {}
    for host in run.hosts:
        truth = RankTruth(run, host)
        waits[host.rank] = length(truth.waiting()) / (truth.end - truth.begin)
    others = [wait for rank, wait in waits.items() if rank != run.program.slow_rank]
    return sum(others) / len(others) - waits.get(run.program.slow_rank, 0.0) if others else 0.0


def recomputed(run: Run) -> float:
    """Of the step, what the device does for the second time."""
    truth = RankTruth(run, run.hosts[0])
    again = [work for work in truth.works if work.again]
    return length(truth._of(again)) / (truth.end - truth.begin)


def without_matrix_units(run: Run) -> float:
    truth = RankTruth(run, run.hosts[0])
    slow = [w for w in truth.works if w.kind == "kernel" and w.detail.kind in ("gemm", "conv")]
    slow = [w for w in slow if not w.detail.matrix_units]
    return length(truth._of(slow)) / (truth.end - truth.begin)
