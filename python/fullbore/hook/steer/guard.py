"""Landlock (Linux 5.13): the kernel lets this process, and all that it starts, write below a few directories only.

It stands behind outputs.py, for what does not go through Python: a library in C that opens a file by itself, a program
that the script starts. Such a write fails with "Permission denied" rather than reaching a file of the user's. Where the
kernel has no Landlock, nothing is guarded. Numbers and structures: linux/landlock.h, landlock(7).
"""

from __future__ import annotations

import ctypes
import os
import struct

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # system calls, on all architectures
SET_NO_NEW_PRIVS = 38  # of prctl
PATH_BENEATH = 1
ASK_VERSION = 1
MARK = "FULLBORE_TRIAL_GUARD"  # inherited by what this process starts, as the guard is: 16 layers are the most

# Writing and truncating a file; removing and making directories, files, links, sockets, pipes, devices.
WRITE_FILE, TRUNCATE = 1 << 1, 1 << 14
OF_DIRECTORIES = sum(1 << bit for bit in range(4, 13))
REFER = 1 << 13  # renaming from one directory to another


def rights(version: int) -> int:
    """What is refused elsewhere: all of it that this kernel knows."""
    found = WRITE_FILE | OF_DIRECTORIES
    if version >= 2:
        found |= REFER
    return found | TRUNCATE if version >= 3 else found


def attach(places: list[str]) -> None:
    """Never raises."""
    if os.environ.get(MARK):
        return
    try:
        call = ctypes.CDLL(None, use_errno=True).syscall
        version = call(CREATE_RULESET, None, ctypes.c_size_t(0), ASK_VERSION)
        if version < 1:
            return
        refused = rights(version)
        ruleset = call(CREATE_RULESET, struct.pack("Q", refused), ctypes.c_size_t(8), 0)
        if ruleset < 0:
            return
        os.set_inheritable(ruleset, False)
        for place in places:
            allow(call, ruleset, place, refused)
        ctypes.CDLL(None).prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if call(RESTRICT_SELF, ruleset, 0) == 0:
            os.environ[MARK] = "1"
        os.close(ruleset)
    except (OSError, AttributeError):
        pass


def allow(call: ctypes._CFuncPtr, ruleset: int, place: str, what: int) -> None:
    try:
        beneath = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # it does not exist
    call(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", what, beneath), 0)
    os.close(beneath)
