"""The writing end of the channel: a ring of binary records and a file of JSON lines (docs/channel.md)."""

from __future__ import annotations

import errno
import itertools
import json
import mmap
import os
import posix
import struct
import sys
import time
from typing import Any, Callable

from . import native
from .files import Directory, Lines, Written
from .interrupts import is_the_scripts
from .library import standard_library

MAGIC = b"FBCHAN1\0"
HEADER_BYTES = 4096
RECORD_BYTES = 64
TRAINER, WORKER = 1, 2  # ChannelRole
CAPACITY = {TRAINER: 8192, WORKER: 1024}
LEAST_CAPACITY = {TRAINER: 512, WORKER: 128}  # what is written between two looks of the recorder
PAUSE_NS = 1_000_000_000  # after a write that failed
SHARE = 64  # a ring takes no more than this part of the memory that is free: loader workers need it
# The directory of large files. Where it is the channel's own, that is not in memory.
DISK = os.environ.get("FULLBORE_CHANNEL_DISK", "")

# EventKind and OtherKind of channel.h
NEXT, FORWARD, BACKWARD, OPTIMIZER, H2D, FETCH, OTHER, COLLECTIVE, LINE, SYNC, DEVICE_TIME, MEMORY = range(1, 13)
CHECKPOINT, GARBAGE_COLLECTION, COMPILATION = 1, 2, 3

HEADER = struct.Struct("<8sIIIIqIiIi")
RECORD = struct.Struct("<HHIqqqqqqQ")

Record = Callable[..., None]
Writer = tuple[Record, Callable[[], int]]  # what writes a record, and what says how many were written


def size_of(capacity: int) -> int:
    return HEADER_BYTES + capacity * RECORD_BYTES


class Ring:
    """The file of records. `record` is built once and holds everything it needs: it is the hot path."""

    def __init__(self, directory: Directory, name: str, header: bytes, capacity: int, mapped: bool) -> None:
        scratch = name + ".new"
        self.file = Written(directory, scratch, os.O_RDWR)
        is_made = False
        try:
            make = self.map if mapped else self.write_through
            self.record, self.written = make(self.file, capacity)
            os.pwrite(self.file.descriptor(), header, 0)
            directory.rename(scratch, name)  # a reader never sees a ring without its header
            self.file.path = f"{directory.path}/{name}"
            is_made = True
        finally:
            if not is_made:
                directory.remove_if_there(scratch)  # the script's own exception may have come after it was renamed
            if mapped or not is_made:
                self.close()

    def map(self, file: Written, capacity: int) -> Writer:
        # Allocate first: writing to a mapped hole where no memory is left would raise SIGBUS in the training process.
        os.posix_fallocate(file.descriptor(), 0, size_of(capacity))
        return make_writer(file.descriptor(), size_of(capacity), capacity)

    def write_through(self, file: Written, capacity: int) -> Writer:
        """On a disk, where even an allocated page of a map may not be written to: a call for each record, whose errors
        are seen. What could not be written leaves its number to the next record, because readers wait for each."""
        os.ftruncate(file.descriptor(), size_of(capacity))
        sequence = itertools.count(1)
        missed: list[int] = []
        pack, clock = RECORD.pack, time.monotonic_ns
        paused_until = 0  # a write that fails may take a full disk many milliseconds

        def record(
            kind: int, ident: int, thread: int, begin: int, end: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0
        ) -> None:
            nonlocal paused_until
            if paused_until and clock() < paused_until:
                return
            n = newest_of(missed) or next(sequence)
            offset = HEADER_BYTES + (n - 1) % capacity * RECORD_BYTES
            data = pack(kind, ident, thread, begin, end, a, b, c, d, n)
            written = False
            try:
                written = posix.pwrite(file.descriptor(), data, offset) == RECORD_BYTES
            except OSError as error:
                if is_the_scripts(error):
                    raise
            finally:
                if not written:
                    missed.append(n)
                    paused_until = clock() + PAUSE_NS

        return record, lambda: written_by(sequence) - len(missed)

    def close(self) -> None:
        """The map stays until the process ends, because a record may be in progress."""
        self.file.close()


def newest_of(missed: list[int]) -> int:
    """0 where there is none: asked before it is taken, because an exception takes longer than a record."""
    try:
        return missed.pop() if missed else 0
    except IndexError as error:  # another thread was faster
        if is_the_scripts(error):
            raise
        return 0


def make_writer(fd: int, size: int, capacity: int) -> Writer:
    """Into the mapped file (-1: into memory of its own)."""
    if native.extension is not None:
        ring = native.extension.Ring(fd, HEADER_BYTES, capacity)
        return ring.record, ring.written
    sequence = itertools.count(1)
    return make_record(memory_of(fd, size), capacity, sequence), lambda: written_by(sequence)


def memory_of(fd: int, size: int) -> Any:
    """A map without a descriptor. Python's own keeps one up to 3.12, under a low number, and closes that at the end,
    whosever file it is by then."""
    if fd < 0:
        return bytearray(size)
    if sys.version_info >= (3, 13):
        return mmap.mmap(fd, size, trackfd=False)
    with standard_library:
        import ctypes

    call = ctypes.CDLL(None, use_errno=True).mmap
    call.restype = ctypes.c_void_p
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    address = call(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return (ctypes.c_char * size).from_address(address)


def written_by(sequence: itertools.count) -> int:
    return int(repr(sequence)[6:-1]) - 1  # count(n), without consuming n


def make_record(buffer: Any, capacity: int, sequence: itertools.count) -> Record:
    pack_into = RECORD.pack_into

    def record(
        kind: int, ident: int, thread: int, begin: int, end: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0
    ) -> None:
        n = next(sequence)
        offset = HEADER_BYTES + (n - 1) % capacity * RECORD_BYTES
        pack_into(buffer, offset, kind, ident, thread, begin, end, a, b, c, d, n)

    return record


def capacity_for(role: int, free_bytes: int) -> int:
    """Of a ring in memory. Raises OSError where even the smallest would take too much."""
    capacity = CAPACITY[role]
    while size_of(capacity) > free_bytes // SHARE:
        capacity //= 2
        if capacity < LEAST_CAPACITY[role]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return capacity


def is_in_memory(directory: str) -> bool:
    return DISK != directory


class Channel:
    """The two files of this process. Raises OSError if they cannot be created; it is then not used."""

    def __init__(self, directory: str, role: int, parent_pid: int, worker_id: int = -1) -> None:
        created = time.monotonic_ns()
        pid = os.getpid()
        stem = f"{pid}-{created}"
        self.role = role
        mapped = is_in_memory(directory)
        with Directory(directory) as place:
            self.lines = Lines(place, stem + ".jsonl")
            try:
                capacity = capacity_for(role, place.free_bytes()) if mapped else CAPACITY[role]
                header = HEADER.pack(
                    MAGIC, HEADER_BYTES, RECORD_BYTES, capacity, pid, created, role, rank(), parent_pid, worker_id
                )
                self.ring = Ring(place, stem + ".ring", header, capacity, mapped)
            except OSError as error:
                if is_the_scripts(error):
                    raise
                self.say("message", severity="warning", text=f"no channel for process {pid}: {error}")
                self.lines.close()
                raise

    def say(self, kind: str, **members: Any) -> None:
        """Appends one line."""
        self.lines.append(json.dumps({"t": time.monotonic_ns(), "k": kind, **members}, default=str))

    def close(self) -> None:
        """In a forked child."""
        self.lines.close()
        self.ring.close()


def rank() -> int:
    return env_int("RANK", -1)


def env_int(name: str, default: int) -> int:
    said = os.environ.get(name)
    if said is None:
        return default
    try:
        return int(said)
    except ValueError as error:
        if is_the_scripts(error):
            raise
        return default
