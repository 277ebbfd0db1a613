"""The recorder: `fullbore run` in a process of its own, beside one that runs already.

It listens on a socket for what it shall record, says what the environment of the recorded needs, and hears how that
ended: src/measure/collect/starter.h describes what is said. Nothing here waits for it longer than it is told to.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile

from .program import FullboreError, error_in, find

MOST_BYTES = 64 << 10  # of a packet
START_S = 10.0  # a recorder answers within milliseconds
END_S = 60.0  # and writes the last of a run within a second
IN_BACKGROUND = '"$@" &'  # a shell's: the recorder is then no child that the script could wait for


def packet(*texts: str) -> bytes:
    return b"".join(os.fsencode(text.replace("\0", "")) + b"\0" for text in texts)


def texts_of(received: bytes) -> list[str]:
    return [os.fsdecode(text) for text in received.split(b"\0")[:-1]]


def command() -> list[str]:
    """What this process runs, as its user typed it."""
    return list(getattr(sys, "orig_argv", None) or [sys.executable, *sys.argv])


class Recorder:
    def __init__(self, name: str, directory: str) -> None:
        """Starts it. Raises FullboreError or OSError where it cannot record."""
        self.socket, others = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(START_S)
        words = [find(), "run", "--started-by", str(others.fileno()), "--name", name, "-o", directory]
        with others, tempfile.TemporaryFile() as said:
            subprocess.run(
                ["/bin/sh", "-c", IN_BACKGROUND, "sh", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                pass_fds=[others.fileno()],
                start_new_session=True,  # Ctrl-C is for the script
                check=True,
            )
            others.close()
            self.environment = self.ask(said)

    def ask(self, said: tempfile._TemporaryFileWrapper) -> dict[str, str]:
        """What the environment of the recorded needs."""
        self.tell("begin", "1", os.getcwd(), *command())
        kind, *texts = texts_of(self.socket.recv(MOST_BYTES)) or [""]
        if kind == "refused":
            raise FullboreError(*texts[:1])
        if kind != "environment":
            said.seek(0)
            raise error_in(said.read())
        return dict(text.split("=", 1) for text in texts)

    def tell(self, *texts: str) -> None:
        try:
            self.socket.send(packet(*texts))
        except BrokenPipeError:  # it has ended: the next answer says so
            pass

    def begin(self) -> None:
        self.tell("task", str(os.getpid()))

    def forget(self) -> None:
        """In a forked child: the recorder is the parent's."""
        self.socket.close()

    def end(self, failed: bool) -> None:
        """Waits until it has written the run. Raises OSError where that takes too long."""
        with self.socket:
            self.tell("exit", str((1 << 8) if failed else 0))  # as wait(2) has it
            self.socket.settimeout(END_S)
            while self.socket.recv(MOST_BYTES):
                pass
