"""Simulated time: actions in the order of their moments, and processes that wait.

A process is a generator. It yields a number of nanoseconds to let them pass, or a Signal to wait until it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from heapq import heappop, heappush
from typing import Union


class Signal:
    """Something that happens once. Whoever asks later goes on at once."""

    __slots__ = ("given", "waiting")

    def __init__(self) -> None:
        self.given = False
        self.waiting: list[Callable[[], None]] = []

    def give(self) -> None:
        self.given = True
        waiting, self.waiting = self.waiting, []
        for action in waiting:
            action()

    def then(self, action: Callable[[], None]) -> None:
        if self.given:
            action()
        else:
            self.waiting.append(action)


Wait = Union[int, Signal]
Steps = Generator[Wait, None, None]


class Engine:
    def __init__(self) -> None:
        self.now = 0
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0  # of two actions at the same moment, the one that was asked for first comes first
        self._unfinished = 0

    def at(self, moment: int, action: Callable[[], None]) -> None:
        self._number += 1
        heappush(self._queue, (moment, self._number, action))

    def start(self, steps: Steps) -> Signal:
        """Runs a process from now on; the signal is its end."""
        ended = Signal()
        self._unfinished += 1

        def go_on() -> None:
            queue = self._queue
            for wanted in steps:
                if type(wanted) is int:
                    moment = self.now + wanted
                    if queue and queue[0][0] <= moment:
                        self.at(moment, go_on)
                        return
                    self.now = moment  # nothing happens in between: no need to queue
                elif not wanted.given:
                    # through the queue: whoever gives the signal first ends what it is in the middle of
                    wanted.waiting.append(lambda: self.at(self.now, go_on))
                    return
            self._unfinished -= 1
            ended.give()

        self.at(self.now, go_on)
        return ended

    def run(self) -> None:
        """Until nothing is left to do; processes that wait for what never comes are an error."""
        queue = self._queue
        while queue:
            self.now, _, action = heappop(queue)
            action()
        if self._unfinished:
            raise RuntimeError(f"{self._unfinished} processes wait for something that never happens")
