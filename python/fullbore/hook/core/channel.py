"""The writing end of the channel: a ring of binary records and a file of JSON lines (docs/channel.md)."""

from __future__ import annotations

import itertools
import json
import mmap
import os
import struct
import time
from typing import Any, Callable

from . import native

MAGIC = b"FBCHAN1\0"
HEADER_BYTES = 4096
RECORD_BYTES = 64
TRAINER, WORKER = 1, 2  # ChannelRole
CAPACITY = {TRAINER: 8192, WORKER: 1024}

# EventKind and OtherKind of channel.h
NEXT, FORWARD, BACKWARD, OPTIMIZER, H2D, FETCH, OTHER, COLLECTIVE, LINE, SYNC, DEVICE_TIME, MEMORY = range(1, 13)
CHECKPOINT, GARBAGE_COLLECTION, COMPILATION = 1, 2, 3

HEADER = struct.Struct("<8sIIIIqIiIi")
RECORD = struct.Struct("<HHIqqqqqqQ")

Record = Callable[..., None]


class Ring:
    """The mapped file. `record` is built once and holds everything it needs: it is the hot path."""

    def __init__(self, path: str, header: bytes, capacity: int) -> None:
        size = HEADER_BYTES + capacity * RECORD_BYTES
        scratch = path + ".new"
        fd = os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            # Allocate first: writing to a mapped hole on a full disk would raise SIGBUS in the training process.
            os.posix_fallocate(fd, 0, size)
            os.pwrite(fd, header, 0)
            self.record, self.written = make_writer(fd, size, capacity)
            os.rename(scratch, path)  # a reader never sees a ring without its header
        except BaseException:
            os.unlink(scratch)
            raise
        finally:
            os.close(fd)


def make_writer(fd: int, size: int, capacity: int) -> tuple[Record, Callable[[], int]]:
    """What writes a record into this file (-1: into memory of its own), and what says how many were written."""
    if native.extension is not None:
        ring = native.extension.Ring(fd, HEADER_BYTES, capacity)
        return ring.record, ring.written
    sequence = itertools.count(1)

    def written() -> int:
        return int(repr(sequence)[6:-1]) - 1  # count(n), without consuming n

    return make_record(mmap.mmap(fd, size), capacity, sequence), written


def make_record(buffer: Any, capacity: int, sequence: itertools.count) -> Record:
    pack_into = RECORD.pack_into

    def record(
        kind: int, ident: int, thread: int, begin: int, end: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0
    ) -> None:
        n = next(sequence)
        offset = HEADER_BYTES + (n - 1) % capacity * RECORD_BYTES
        pack_into(buffer, offset, kind, ident, thread, begin, end, a, b, c, d, n)

    return record


class Channel:
    """The two files of this process. Raises OSError if they cannot be created; it is then not used."""

    def __init__(self, directory: str, role: int, parent_pid: int, worker_id: int = -1) -> None:
        created = time.monotonic_ns()
        pid = os.getpid()
        stem = os.path.join(directory, f"{pid}-{created}")
        self._text_fd: int | None = os.open(
            stem + ".jsonl", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        capacity = CAPACITY[role]
        header = HEADER.pack(
            MAGIC, HEADER_BYTES, RECORD_BYTES, capacity, pid, created, role, rank(), parent_pid, worker_id
        )
        self.role = role
        try:
            self.ring = Ring(stem + ".ring", header, capacity)
        except OSError as error:
            self.say("message", severity="warning", text=f"no channel for process {pid}: {error}")
            self.close()
            raise

    def say(self, kind: str, **members: Any) -> None:
        """Appends one line. On a full disk, further text is lost, but not the ring."""
        if self._text_fd is None:
            return
        line = json.dumps({"t": time.monotonic_ns(), "k": kind, **members}, default=str) + "\n"
        try:
            os.write(self._text_fd, line.encode("utf-8", "replace"))
        except OSError:
            self.close()

    def close(self) -> None:
        """Closes the text file; the map stays until the process ends, because a record may be in progress."""
        if self._text_fd is not None:
            fd, self._text_fd = self._text_fd, None
            os.close(fd)


def rank() -> int:
    return env_int("RANK", -1)


def env_int(name: str, default: int) -> int:
    try:
        return int(os.environ[name])
    except (KeyError, ValueError):
        return default
