"""The clock: events in order of time, and processes as generators that yield delays (ns) or gates."""

import heapq


class Gate:
    """Something that processes wait for; open once and for all."""

    __slots__ = ("open", "waiting")

    def __init__(self):
        self.open = False
        self.waiting = []


class Engine:
    """A discrete-event simulation; times are nanoseconds, as floats."""

    def __init__(self):
        self.now = 0.0
        self._heap = []
        self._count = 0

    def at(self, when: float, action, *arguments):
        """Calls action at a time."""
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, action, arguments))

    def spawn(self, process):
        """Starts a process."""
        self.at(self.now, self._resume, process)

    def release(self, gate: Gate):
        """Opens a gate: who waits goes on now."""
        gate.open = True
        for process in gate.waiting:
            self.at(self.now, self._resume, process)
        gate.waiting.clear()

    def run(self):
        """Until nothing is left to happen."""
        heap = self._heap
        while heap:
            when, _, action, arguments = heapq.heappop(heap)
            self.now = when
            action(*arguments)

    def _resume(self, process):
        """Runs a process to its next real wait; a delay that nothing else falls into just moves the clock."""
        heap = self._heap
        for wait in process:
            if wait.__class__ is Gate:
                if not wait.open:
                    wait.waiting.append(process)
                    return
                continue
            when = self.now + wait
            if heap and heap[0][0] <= when:
                self.at(when, self._resume, process)
                return
            self.now = when
