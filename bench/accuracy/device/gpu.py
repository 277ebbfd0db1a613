"""One device: streams in which work runs in order, the link to the host, and what runs beside each other.

The host puts work into streams; what is at the head of a stream begins as soon as it has arrived, what it waits for
has happened, and the resource it needs is free. Nothing here knows about training.
"""

from __future__ import annotations

from collections import deque

from .engine import Engine, Signal
from .hardware import COLLECTIVE_SLOWS, EVENT_NS, LAUNCH_QUEUE

KERNEL, COPY, COLLECTIVE, MARKER, WAIT = "kernel", "copy", "collective", "marker", "wait"


class Work:
    """One thing in a stream. `nominal_ns` is how long it takes with the device to itself."""

    __slots__ = (
        "kind", "name", "nominal_ns", "arrival", "stream", "begin", "end", "done", "bytes", "detail", "correlation",
        "fill", "meeting", "event", "left", "rate", "since", "version", "step", "gap_ns",
        "places", "again",
    )  # fmt: skip

    def __init__(self, kind: str, name: str, nominal_ns: int, arrival: int, gap_ns: int = 0) -> None:
        self.kind, self.name, self.nominal_ns, self.arrival, self.gap_ns = kind, name, nominal_ns, arrival, gap_ns
        self.begin = self.end = -1
        self.done: Signal | None = None
        self.bytes = 0
        self.detail: object = None
        self.correlation = 0
        self.fill = 1.0  # of the device's units
        self.meeting: Meeting | None = None
        self.event: Work | None = None
        self.left = float(nominal_ns)
        self.rate = 1.0
        self.since = 0
        self.version = 0
        self.step = -1
        self.again = False  # done for the second time
        self.places = 1  # in the launch queue; the kernels of a graph take one together

    def when_done(self) -> Signal:
        if self.done is None:
            self.done = Signal()
            self.done.given = self.end >= 0
        return self.done


class Meeting:
    """A collective as all its ranks see it: it moves data once the last of them has come."""

    def __init__(self, engine: Engine, ranks: int) -> None:
        self.engine, self.missing = engine, ranks
        self.came: list[tuple[Gpu, Work]] = []
        self.complete_at = -1

    def join(self, gpu: Gpu, work: Work) -> None:
        self.came.append((gpu, work))
        self.missing -= 1
        if self.missing == 0:
            self.complete_at = self.engine.now
            longest = max(each.nominal_ns for _, each in self.came)
            for member, each in self.came:
                self.engine.at(self.engine.now + longest, lambda m=member, e=each: m.ended(e))


class Link:
    """One direction of the way to the host: one copy at a time, first come, first served."""

    def __init__(self) -> None:
        self.busy = False
        self.waiting: deque = deque()


class Stream:
    def __init__(self, gpu: Gpu, number: int) -> None:
        self.gpu, self.number = gpu, number
        self.queue: deque[Work] = deque()
        self.free_at = -(10**9)  # the end of the last work
        self.unfinished = 0
        self._room: Signal | None = None
        self._looks_at = -1

    def put(self, work: Work) -> None:
        work.stream = self.number
        self.unfinished += work.places
        self.queue.append(work)
        if len(self.queue) == 1:
            self.look()

    def full(self) -> bool:
        return self.unfinished >= LAUNCH_QUEUE

    def room(self) -> Signal:
        if self._room is None:
            self._room = Signal()
            self._room.given = not self.full()
        return self._room

    def look(self) -> None:
        """Begins what is at the head, if it can begin; else makes sure that somebody looks again."""
        engine = self.gpu.engine
        while self.queue:
            head = self.queue[0]
            if head.begin >= 0:
                return
            moment = max(head.arrival, self.free_at + head.gap_ns)
            if engine.now < moment:
                if self._looks_at != moment:
                    self._looks_at = moment
                    engine.at(moment, self.look)
                return
            if head.kind == MARKER:
                head.begin = engine.now
                self.finish(head)
            elif head.kind == WAIT:
                if head.event is not None and head.event.end < 0:
                    if head.version == 0:
                        head.version = 1
                        head.event.when_done().then(lambda: engine.at(engine.now + EVENT_NS, self.look))
                    return
                if head.version and head.event is not None and engine.now < head.event.end + EVENT_NS:
                    return
                head.begin = engine.now
                self.finish(head)
            elif head.kind == COPY and head.detail is not None and self.gpu.links[head.detail].busy:
                link = self.gpu.links[head.detail]
                if self not in link.waiting:
                    link.waiting.append(self)
                return
            else:
                self.gpu.begin(head)
                return

    def finish(self, work: Work) -> None:
        """Leaves the stream; a marker or a wait takes no time, so the gap to the next counts from before it."""
        self.queue.popleft()
        self.unfinished -= work.places
        work.end = self.gpu.engine.now
        if work.kind not in (MARKER, WAIT):
            self.free_at = work.end
        if work.done is not None:
            work.done.give()
        if self._room is not None and not self.full():
            room, self._room = self._room, None
            room.give()


class Gpu:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.streams: dict[int, Stream] = {}
        self.links = {"HtoD": Link(), "DtoH": Link()}
        self.running: list[Work] = []
        self.history: list[Work] = []  # what ran, markers and waits left out, in the order of its ends

    def stream(self, number: int) -> Stream:
        if number not in self.streams:
            self.streams[number] = Stream(self, number)
        return self.streams[number]

    def begin(self, work: Work) -> None:
        work.begin = work.since = self.engine.now
        if work.kind == COPY and work.detail is not None:
            self.links[work.detail].busy = True
        self.running.append(work)
        if work.meeting is not None:
            work.meeting.join(self, work)
            self.share()
        elif len(self.running) == 1:
            self.engine.at(work.begin + work.nominal_ns, lambda: self.ended_if(work, 0))
        else:
            self.share(new=work)

    def share(self, new: Work | None = None) -> None:
        """What runs beside each other slows each other down: each gets its rate anew, and a new end."""
        kernels = [work for work in self.running if work.kind == KERNEL]
        crowded = max(1.0, sum(work.fill for work in kernels))
        beside = any(work.kind == COLLECTIVE for work in self.running)
        for work in self.running:
            if work.meeting is not None:
                continue
            rate = 1.0
            if work.kind == KERNEL:
                rate = 1 / crowded / ((1 + COLLECTIVE_SLOWS) if beside else 1)
            if rate == work.rate and work is not new:
                continue
            work.left -= (self.engine.now - work.since) * work.rate
            work.since, work.rate = self.engine.now, rate
            work.version += 1
            end = self.engine.now + max(0, round(work.left / rate))
            self.engine.at(end, lambda w=work, version=work.version: self.ended_if(w, version))

    def ended_if(self, work: Work, version: int) -> None:
        if work.version == version and work.end < 0:
            self.ended(work)

    def ended(self, work: Work) -> None:
        self.running.remove(work)
        self.history.append(work)
        stream = self.streams[work.stream]
        stream.finish(work)
        if work.kind == COPY and work.detail is not None:
            link = self.links[work.detail]
            link.busy = False
            while link.waiting and not link.busy:  # who waited longest comes before this stream's next copy
                link.waiting.popleft().look()
        stream.look()
        if self.running:
            self.share()
