"""A small reader of the channel, written from src/record/channel.h and docs/channel.md, not from the hook."""

from __future__ import annotations

import json
import pathlib
import struct
from typing import Any, NamedTuple

NEXT, FORWARD, BACKWARD, OPTIMIZER, H2D, FETCH, OTHER, COLLECTIVE, LINE, SYNC, DEVICE_TIME, MEMORY, CORES = range(1, 14)
CHECKPOINT, GARBAGE, COMPILATION = 1, 2, 3
TRAINER, WORKER = 1, 2


class Record(NamedTuple):
    kind: int
    id: int
    thread: int
    begin: int
    end: int
    a: int
    b: int
    c: int
    d: int
    sequence: int

    @property
    def ns(self) -> int:
        return self.end - self.begin

    @property
    def makes_iterator(self) -> bool:
        """A wait of its own, which it is if the first batch is asked for later than a moment after it."""
        return self.kind == NEXT and self.c == 1 and self.a == 0


class Process:
    """One process's two files."""

    def __init__(self, ring: pathlib.Path) -> None:
        data = ring.read_bytes()
        magic, header_bytes, record_bytes, capacity, *rest = struct.unpack_from("<8sIIIIqIiIi", data)
        self.pid, self.created, self.role, self.rank, self.parent, self.worker_id = rest
        assert magic == b"FBCHAN1\0" and header_bytes == 4096 and record_bytes == 64
        assert len(data) == header_bytes + capacity * record_bytes
        assert ring.name == f"{self.pid}-{self.created}.ring"
        slots = [Record(*struct.unpack_from("<HHIqqqqqqQ", data, 4096 + i * 64)) for i in range(capacity)]
        assert all((slot.sequence - 1) % capacity == i for i, slot in enumerate(slots) if slot.sequence)
        self.capacity = capacity
        self.records: list[Record] = sorted((s for s in slots if s.sequence), key=lambda s: s.sequence)
        text = ring.with_suffix(".jsonl").read_text().splitlines()
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in text]

    def of(self, kind: int, ident: int | None = None) -> list[Record]:
        return [r for r in self.records if r.kind == kind and ident in (None, r.id)]

    def say(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["k"] == kind]

    def one(self, kind: str) -> dict[str, Any]:
        (line,) = self.say(kind)
        return line

    @property
    def facts(self) -> dict[str, Any]:
        return {line["key"]: line["value"] for line in self.say("fact")}

    @property
    def steps(self) -> list[Record]:
        return [r for r in self.of(OPTIMIZER) if r.a == 1]

    @property
    def batches(self) -> list[Record]:
        """The waits that ended with a batch."""
        return [r for r in self.of(NEXT) if r.a != 0]


class Channel:
    """All processes of a run."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.processes = [Process(ring) for ring in sorted(directory.glob("*.ring"))]

    @property
    def trainers(self) -> list[Process]:
        return [p for p in self.processes if p.role == TRAINER]

    @property
    def workers(self) -> list[Process]:
        return [p for p in self.processes if p.role == WORKER]

    @property
    def trainer(self) -> Process:
        (process,) = self.trainers
        return process
