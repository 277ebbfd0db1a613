"""One device: streams in order, kernels that share SMs and bandwidth, copy engines, events."""

from collections import deque

from second.devices import Hardware
from second.engine import Engine, Gate
from second.noise import Noise

QUEUE_DEPTH = 1024  # launches that may wait on a stream before a launch blocks: about 1,000 on all devices
LEAST = 0.03  # share that a kernel gets while others hold the device: blocks that come through between theirs
BOTH_WAYS = 0.92  # drawn by hand: a copy's rate while the other engine copies too (bidirectionalBandwidth sample)


class Event:
    """A CUDA event: recorded on one stream, waited for by streams and by the host."""

    __slots__ = ("done", "streams", "gate")

    def __init__(self):
        self.done = False
        self.streams = []
        self.gate = Gate()


class Task:
    """Something on a stream: a kernel, a copy, a collective, or a record of or wait for an event."""

    __slots__ = (
        "kind", "name", "work", "share", "need", "band", "arrive", "start", "end", "event", "step", "launch", "left",
        "rate", "since", "version", "stream", "direction", "collective", "gap", "kernel", "bytes", "counted", "waiting",
    )  # fmt: skip

    def __init__(self, kind: str, name: str, work: float = 0.0):
        self.kind, self.name, self.work = kind, name, work
        self.share = self.need = self.band = self.rate = 0.0
        self.left = self.since = self.start = self.end = self.arrive = 0.0
        self.event = self.launch = self.kernel = self.collective = self.stream = None
        self.direction = ""
        self.gap = None
        self.step = self.version = self.bytes = 0
        self.counted = True
        self.waiting = False


class Stream:
    """A queue of tasks that run one after the other."""

    __slots__ = ("number", "queue", "busy", "free", "depth", "room", "timer")

    def __init__(self, number: int):
        self.number = number
        self.queue = deque()
        self.busy = False
        self.free = 0.0  # when its last task ended
        self.depth = 0
        self.room = None  # gate of a host that waits for a place in the queue
        self.timer = 0.0


class Gpu:
    """A device of one rank."""

    def __init__(self, engine: Engine, hardware: Hardware, noise: Noise, slow: float = 1.0, watched: bool = False):
        self.engine, self.hardware, self.noise = engine, hardware, noise
        self.slow = slow  # factor of all kernels: throttled clocks, or this step's share of the work
        self.watch = 250.0 if watched else 0.0  # CUPTI: a little between kernels, ns (drawn by hand)
        self.running, self.resident = [], []  # kernels; collectives' kernels
        self.copying = {}
        self.queued = {"HtoD": deque(), "DtoH": deque()}
        self.done = {}  # step -> when the last of its tasks ended
        self.record = None  # called with each task that ended

    def submit(self, stream: Stream, task: Task):
        """Puts a task on a stream; it can start when its launch has come to the device."""
        task.stream = stream
        task.arrive = self.engine.now + self.hardware.arrival
        if task.counted:
            stream.depth += 1
        stream.queue.append(task)
        if not stream.busy and len(stream.queue) == 1:
            self._pump(stream)

    def _pump(self, stream: Stream):
        """Starts what stands first, if it may."""
        now, queue = self.engine.now, stream.queue
        while queue and not stream.busy:
            task = queue[0]
            if task.kind == "wait" and not task.event.done:
                if not task.waiting:
                    task.waiting = True
                    task.event.streams.append(stream)
                return
            ready = task.arrive
            if task.kind not in ("wait", "record"):
                gap = self.hardware.gap if task.gap is None else task.gap
                ready = max(ready, stream.free + gap + self.watch)
            if ready > now:
                if stream.timer <= now or ready < stream.timer:
                    stream.timer = ready
                    self.engine.at(ready, self._wake, stream)
                return
            queue.popleft()
            if task.kind == "wait" or task.kind == "record":
                self._mark(stream, task)
            else:
                self._begin(stream, task)

    def _wake(self, stream: Stream):
        if not stream.busy:
            self._pump(stream)

    def _mark(self, stream: Stream, task: Task):
        """An event is recorded, or was waited for."""
        self._leave(stream, task)
        if task.kind == "wait":
            stream.free = max(stream.free, self.engine.now - self.hardware.gap * 0.5)
            return
        event = task.event
        event.done = True
        self.engine.release(event.gate)
        for other in event.streams:
            self.engine.at(self.engine.now, self._wake, other)
        event.streams.clear()

    def _leave(self, stream: Stream, task: Task):
        if task.counted:
            stream.depth -= 1
            if stream.room is not None and stream.depth < QUEUE_DEPTH:
                gate, stream.room = stream.room, None
                self.engine.release(gate)

    def _begin(self, stream: Stream, task: Task):
        stream.busy = True
        task.start = self.engine.now
        if task.kind == "kernel":
            task.left = task.work * self.noise.kernel() * self.slow
            task.since = task.start
            self.running.append(task)
            self._share()
        elif task.kind == "collective":
            self.resident.append(task)
            self._share()
            task.collective.arrive(self, task)
        elif task.direction in self.copying:
            self.queued[task.direction].append(task)
        else:
            self._copy(task)

    def _copy(self, task: Task):
        """A copy engine takes a copy; DtoD copies and memsets have no engine."""
        time = task.work * self.noise.kernel()
        if task.direction:
            if self.copying:
                time /= BOTH_WAYS
            self.copying[task.direction] = task
        task.start = self.engine.now
        self.engine.at(self.engine.now + time, self._finish_copy, task)

    def _finish_copy(self, task: Task):
        if task.direction:
            del self.copying[task.direction]
            if self.queued[task.direction]:
                self._copy(self.queued[task.direction].popleft())
        self._end(task)

    def _share(self):
        """Rates of all running kernels: SMs in order of arrival, then the memory's bandwidth."""
        now, running = self.engine.now, self.running
        alone = len(running) == 1 and not self.resident
        free = 1.0 - sum(task.share for task in self.resident)
        band = sum(task.band for task in self.resident)
        rates = []
        for task in running:
            got = task.share if alone else min(task.share, max(free, LEAST))
            free -= got
            rates.append(min(1.0, got / task.need))
            band += task.band * rates[-1]
        for task, rate in zip(running, rates):
            if band > 1.0:
                rate *= 1.0 - task.band * (1.0 - 1.0 / band)
            if rate != task.rate:
                task.left -= (now - task.since) * task.rate
                task.since, task.rate = now, rate
                task.version += 1
                self.engine.at(now + max(0.0, task.left) / rate, self._finish, task, task.version)

    def _finish(self, task: Task, version: int):
        if task.version == version:
            self.running.remove(task)
            if self.running:
                self._share()
            self._end(task)

    def finish_collective(self, task: Task):
        """All ranks have exchanged."""
        self.resident.remove(task)
        if self.running:
            self._share()
        self._end(task)

    def _end(self, task: Task):
        stream = task.stream
        task.end = stream.free = self.engine.now
        stream.busy = False
        self.done[task.step] = self.engine.now
        self._leave(stream, task)
        if task.event is not None:
            task.event.done = True
            self.engine.release(task.event.gate)
        if self.record is not None:
            self.record(task)
        self._pump(stream)
