"""A terminal as a user sees it: a pseudo-terminal whose screen an emulator maintains."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence

import pyte
from waiting import PATIENCE_S

STATUS = re.compile(r"^ fullbore  [\d.]+ .*no training step yet")


def set_size(fd: int, rows: int, columns: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Terminal:
    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        cwd: os.PathLike,
        rows: int = 24,
        columns: int = 100,
    ) -> None:
        self.columns = columns
        self.screen = pyte.HistoryScreen(columns, rows, history=10_000)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.status: int | None = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as in a terminal, also where nohup runs the tests
            os.chdir(cwd)
            set_size(0, rows, columns)  # before the command asks for it
            os.execvpe(command[0], list(command), {"TERM": "xterm", **env})

    def resize(self, rows: int) -> None:
        set_size(self.fd, rows, self.columns)
        self.screen.resize(rows, self.columns)

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def read(self, for_s: float = 0.05) -> bool:
        """Reads what arrives within a moment; False at the end of the session."""
        ready, _, _ = select.select([self.fd], [], [], for_s)
        if not ready:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # EIO: the last program closed it
            return False
        self.raw += data
        self.stream.feed(data)
        return bool(data)

    def until(self, seen: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not seen():
            open_ = self.read()
            assert open_ or seen(), f"the session ended without {what}:\n{self.text()}"
            assert time.monotonic() < deadline, f"no {what}:\n{self.text()}"

    def until_text(self, text: str, times: int = 1) -> None:
        self.until(lambda: self.text().count(text) >= times, repr(text))

    def until_status(self) -> None:
        self.until(lambda: STATUS.match(self.last_row()) is not None, "a status line")

    def until_end(self) -> int:
        """Reads to the end of the session; the exit status as a shell shows it."""
        deadline = time.monotonic() + PATIENCE_S
        while self.read():
            assert time.monotonic() < deadline, f"no end:\n{self.text()}"
        _, status = os.waitpid(self.pid, 0)
        self.status = os.waitstatus_to_exitcode(status)
        return self.status if self.status >= 0 else 128 - self.status

    def lines(self) -> list[str]:
        """Everything that a user can scroll through, including the last row."""
        history = ["".join(row[x].data for x in range(self.columns)).rstrip() for row in self.screen.history.top]
        return history + [line.rstrip() for line in self.screen.display]

    def text(self) -> str:
        return "\n".join(self.lines())

    def last_row(self) -> str:
        return self.screen.display[-1].rstrip()

    def close(self) -> None:
        if self.status is None:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            os.close(self.fd)  # the rest of the session gets its SIGHUP
            os.waitpid(self.pid, 0)
        else:
            os.close(self.fd)
