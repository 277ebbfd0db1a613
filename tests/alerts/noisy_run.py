"""A training that is healthy and as noisy as real ones are, written as docs/run-file.md says, without any of our code.

Steps have a long tail, their pace drifts, the loader falls behind for a moment now and then, checkpoints and validation
interrupt it, memory rises at first, disks fill slowly, and every reading jitters.
"""

from __future__ import annotations

import json
import math
import pathlib
import random
import sqlite3
import struct
import time

S = 1_000_000_000
FULL_STEPS = 2048  # the first ones are kept one by one
SHARES = (
    "compute comm_exposed copy_exposed data_wait sync launch host_other gap h2d forward backward optimizer "
    "checkpoint validation garbage_collection unnamed compilation"
).split()  # the last five are the parts of host_other

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE tag (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE machine (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE stage (id INTEGER PRIMARY KEY, name TEXT, command TEXT, directory TEXT, begin_ns INTEGER, end_ns INTEGER,
  state INTEGER, exit_status INTEGER, out_of_memory INTEGER);
CREATE TABLE series (id INTEGER PRIMARY KEY, stage INTEGER, name TEXT, unit TEXT, labels TEXT, resolution REAL);
CREATE TABLE readings (stage INTEGER, probe INTEGER, begin_ns INTEGER, end_ns INTEGER, count INTEGER, data BLOB,
  PRIMARY KEY (stage, probe, begin_ns)) WITHOUT ROWID;
CREATE TABLE rank (stage INTEGER, rank INTEGER, pid INTEGER, hostname TEXT, device TEXT, samples_known INTEGER,
  device_activity INTEGER, totals TEXT, facts TEXT, hot_lines TEXT, PRIMARY KEY (stage, rank)) WITHOUT ROWID;
CREATE TABLE loader (stage INTEGER, rank INTEGER, id INTEGER, about TEXT, batch_fetch BLOB, slowest_sample BLOB,
  wait BLOB, PRIMARY KEY (stage, rank, id)) WITHOUT ROWID;
CREATE TABLE step (stage INTEGER, rank INTEGER, first_end_ns INTEGER, count INTEGER, data BLOB,
  PRIMARY KEY (stage, rank, first_end_ns)) WITHOUT ROWID;
CREATE TABLE step_window (stage INTEGER, rank INTEGER, begin_ns INTEGER, count INTEGER, data BLOB,
  PRIMARY KEY (stage, rank, begin_ns)) WITHOUT ROWID;
CREATE TABLE process (stage INTEGER, pid INTEGER, parent_pid INTEGER, role TEXT, rank INTEGER, command TEXT,
  begin_ns INTEGER, end_ns INTEGER, PRIMARY KEY (stage, pid, begin_ns)) WITHOUT ROWID;
CREATE TABLE message (stage INTEGER, t_ns INTEGER, severity INTEGER, source TEXT, text TEXT);
"""

GPU = {"gpu": "0"}
SERIES = [
    ("memory_total", "bytes", {}, 1 << 20),
    ("memory_used", "bytes", {}, 1 << 20),
    ("disk_space_total", "bytes", {"mount": "/"}, 1 << 20),
    ("disk_space_used", "bytes", {"mount": "/"}, 1 << 20),
    ("process_cpu", "cores", {"role": "trainer"}, 0.01),
    ("gpu_utilization", "ratio", GPU, 0.01),
    ("gpu_process_memory", "bytes", {**GPU, "owner": "command"}, 1 << 20),
    ("gpu_throttle_thermal", "ratio", GPU, 0.001),
]


def frame(raw: bytes) -> bytes:
    """Of zstd, with blocks that are not compressed."""
    pieces = [raw[at : at + (1 << 17)] for at in range(0, len(raw), 1 << 17)] or [b""]
    blocks = [struct.pack("<I", len(piece) << 3 | (i == len(pieces) - 1))[:3] + piece for i, piece in enumerate(pieces)]
    return struct.pack("<IBI", 0xFD2FB528, 0xA0, len(raw)) + b"".join(blocks)


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def block(columns: list[list[int]]) -> bytes:
    raw = bytearray(varint(len(columns)))
    for column in columns:
        raw += varint(len(column)) + b"\0"
        before = 0
        for value in column:
            delta = value - before
            raw += varint(delta << 1 if delta >= 0 else (-delta << 1) - 1)
            before = value
    return frame(bytes(raw))


class NoisyRun:
    """Grows to the second that it is told; what `wait_of(t)` says is the part of a step that waits for data."""

    def __init__(self, path: pathlib.Path, seed: int, wait_of=lambda t: 0.03, slowdown_of=lambda t: 1.0) -> None:
        self.path = path
        self.random = random.Random(seed)
        self.wait_of, self.slowdown_of = wait_of, slowdown_of
        self.begin_ns = time.monotonic_ns()
        self.now_ns = self.begin_ns + S
        self.step = 0
        self.read_until_s = 0
        self.last_t = 1.0
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.executescript(TABLES)
        meta = {
            "format": "fullbore-run/1",
            "id": path.stem,
            "wall_offset_ns": str(time.time_ns() - time.monotonic_ns()),
        }
        self.database.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
        self.database.execute("INSERT INTO machine VALUES ('cores', '8')")
        stage = (1, "train", json.dumps(["python", "train.py"]), "/", self.begin_ns, self.begin_ns + S, 0, None, 0)
        self.database.execute("INSERT INTO stage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", stage)
        self.database.execute("INSERT INTO rank VALUES (1, 0, 7, 'here', 'cuda:0', 1, 0, '{}', '{}', '[]')")
        for i, (name, unit, labels, resolution) in enumerate(SERIES, 1):
            row = (i, 1, name, unit, json.dumps(labels), resolution)
            self.database.execute("INSERT INTO series VALUES (?, ?, ?, ?, ?, ?)", row)

    def grow(self, until_s: float) -> None:
        steps, windows = [], []
        while self.now_ns < self.begin_ns + until_s * S:
            parts = self.next_step((self.now_ns - self.begin_ns) / S)
            wall_ns = sum(parts[:12])
            self.now_ns += wall_ns
            steps.append([self.step, self.now_ns, wall_ns, 32, 1, -1, -1, *parts])
            if not windows or self.now_ns - windows[-1][0] > S:
                windows.append([self.now_ns - wall_ns, 0, self.step, 0, 0, wall_ns, wall_ns] + [0] * len(SHARES))
            window = windows[-1]
            window[1] = self.now_ns
            window[3:7] = window[3] + 1, window[4] + 32, min(window[5], wall_ns), max(window[6], wall_ns)
            window[7:] = [a + b for a, b in zip(window[7:], parts, strict=True)]
            self.step += 1
        self.database.execute("BEGIN")
        kept = [step for step in steps if step[0] < FULL_STEPS]
        for table, rows, key in (("step", kept, 1), ("step_window", windows, 0)):
            if rows:
                data = block([list(column) for column in zip(*rows, strict=True)])
                self.database.execute(f"INSERT INTO {table} VALUES (1, 0, ?, ?, ?)", (rows[0][key], len(rows), data))
        self.read(int((self.now_ns - self.begin_ns) / S))
        self.database.execute("UPDATE stage SET end_ns = ?", (self.now_ns,))
        self.database.execute("COMMIT")

    def end(self, exit_status: int = 0) -> None:
        self.database.execute("UPDATE stage SET state = 1, exit_status = ?", (exit_status,))
        self.database.execute("PRAGMA journal_mode = DELETE")
        self.database.close()

    def next_step(self, t: float) -> list[int]:
        """Its shares, and the parts of what the host does besides."""
        tail = self.random.lognormvariate
        drift = 1 + 0.04 * math.sin(t / 47)  # of clocks and neighbours
        work_ms = 55 * drift * self.slowdown_of(t) * tail(0, 0.25)
        wait = self.wait_of(t)
        parts = dict.fromkeys(SHARES, 0.0)
        parts["data_wait"] = work_ms * wait / (1 - wait) * tail(-0.32, 0.8)  # of mean 1
        if self.random.random() < 0.001:
            parts["data_wait"] += 1500  # a slow file
        parts |= {"forward": 0.3 * work_ms, "backward": 0.55 * work_ms, "optimizer": 0.1 * work_ms}
        parts["unnamed"] = 0.05 * work_ms * tail(0, 0.5)
        if self.random.random() < 0.002:
            parts["garbage_collection"] = 80 * tail(0, 0.5)
        parts["checkpoint"] = 4000 * tail(0, 0.2) if self.passed(t, 97) else 0.0
        parts["validation"] = 20_000 * tail(0, 0.1) if self.passed(t, 181) else 0.0
        self.last_t = t
        ns = {share: int(1e6 * ms) for share, ms in parts.items()}
        ns["host_other"] = sum(ns[part] for part in SHARES[12:])
        return [ns[share] for share in SHARES]

    def passed(self, t: float, every_s: float) -> bool:
        return t // every_s > self.last_t // every_s

    def read(self, until_s: int) -> None:
        times = [self.begin_ns + t * S for t in range(self.read_until_s + 1, until_s + 1)]
        rows = [self.readings(t) for t in range(self.read_until_s + 1, until_s + 1)]
        self.read_until_s = max(self.read_until_s, until_s)
        if not times:
            return
        columns = [list(column) for column in zip(*rows, strict=True)]
        data = block([times, list(range(1, len(SERIES) + 1)), *columns])
        row = (times[0], times[-1], len(times), data)
        self.database.execute("INSERT INTO readings VALUES (1, 1, ?, ?, ?, ?)", row)

    def readings(self, t: float) -> list[int]:
        jitter = self.random.gauss
        values = [
            64e9,
            20e9 + 4e9 * (1 - math.exp(-t / 60)) + jitter(0, 3e8),
            1e12,
            5e11 + 5e9 * (t // 97) + abs(jitter(0, 1e8)),
            max(0.0, jitter(1.5, 0.4)),
            min(1.0, max(0.0, jitter(0.7, 0.25))),
            1e10,
            0.3 if self.random.random() < 0.02 else 0.0,
        ]
        return [round(value / resolution) for value, (*_, resolution) in zip(values, SERIES, strict=True)]


def written(path: pathlib.Path, seed: int, seconds: float = 600, **how) -> pathlib.Path:
    """A whole run at once."""
    run = NoisyRun(path, seed, **how)
    run.grow(seconds)
    run.end()
    return path
