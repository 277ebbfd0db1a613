"""One rank's host: the training thread, and autograd's thread while the training thread waits for it.

The two never run at the same time, so they are one process whose events carry the number of the thread at work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .engine import Engine, Steps
from .gpu import COLLECTIVE, COPY, KERNEL, MARKER, WAIT, Gpu, Meeting, Work
from .hardware import COPY_SETUP_NS, SMALL_COPY_BYTES, WAKE_NS, Device
from .noise import Noise
from .ops import CHECKPOINT_NS

if TYPE_CHECKING:
    from .ops import Kernel, Op

COMPUTE, COPIES, NCCL = 7, 20, 24  # numbers of the streams, as PyTorch usually gets them
EVENT_CALL_NS = 1_300
MEMCPY_CALL_NS = 8_000
SYNC_CALL_NS = 2_500  # of a synchronisation that has nothing to wait for
STAGED_BYTES_PER_NS = 8.0  # a small copy into the driver's own buffer
GRAPH_CALL_NS, GRAPH_NODE_NS, GRAPH_GAP_NS = 9_000, 60, 750


class Call(NamedTuple):
    """Of the runtime library."""

    name: str
    thread: int
    begin: int
    end: int
    correlation: int
    external: int
    stream: int = -1
    record: int = -1  # of a wait for an event: the correlation of the call that recorded it


class Span(NamedTuple):
    """An operator, an annotation or a Python frame."""

    category: str
    name: str
    thread: int
    begin: int
    end: int
    external: int = 0
    args: str = ""
    differentiated: bool = False


class Activity(NamedTuple):
    """What the host did other than running operators, for the truth about idle time."""

    tag: str
    begin: int
    end: int


class Runtime(NamedTuple):
    """The names of calls."""

    launch: str
    launch_matrix: str
    memcpy: str
    memcpy_blocking: str  # where a blocking copy is one call; else it is a copy and a synchronisation
    stream_sync: str
    device_sync: str
    event_record: str
    stream_wait: str
    graph: str


CUDA = Runtime(
    "cudaLaunchKernel", "cudaLaunchKernel", "cudaMemcpyAsync", "", "cudaStreamSynchronize", "cudaDeviceSynchronize",
    "cudaEventRecord", "cudaStreamWaitEvent", "cudaGraphLaunch",
)  # fmt: skip
HIP = Runtime(
    "hipLaunchKernel", "hipExtModuleLaunchKernel", "hipMemcpyAsync", "hipMemcpyWithStream", "hipStreamSynchronize",
    "hipDeviceSynchronize", "hipEventRecord", "hipStreamWaitEvent", "hipGraphLaunch",
)  # fmt: skip


class Host:
    def __init__(
        self, engine: Engine, device: Device, noise: Noise, rank: int, meetings: dict, ranks: int, recorded: bool
    ) -> None:
        self.engine, self.device, self.noise, self.rank = engine, device, noise, rank
        self.gpu = Gpu(engine)
        self.runtime = HIP if device.vendor == "amd" else CUDA
        self.scale = device.host_factor  # of all host work
        self.slow_device = 1.0
        self.main, self.autograd = 4_000 + 100 * rank, 4_050 + 100 * rank
        self.thread = self.main
        self.step = -1
        self.again = False  # what it launches is done for the second time
        self.recorded = recorded
        self.calls: list[Call] = []
        self.spans: list[Span] = []
        self.activities: list[Activity] = []
        self.step_begins: list[int] = []
        self.step_ends: list[int] = []
        self.events: dict[str, Work] = {}
        self.loader = None  # set by who builds the program
        self._meetings, self._ranks = meetings, ranks
        self._correlation = 1_000_000 * (rank + 1)
        self._external = 0
        self._open: list[tuple[str, str, int, int]] = []

    # Bookkeeping

    def next_external(self) -> int:
        self._external += 1
        return self._external

    def span(
        self, category: str, name: str, begin: int, external: int = 0, args: str = "", differentiated: bool = False
    ) -> None:
        if self.recorded:
            now = self.engine.now
            self.spans.append(Span(category, name, self.thread, begin, now, external, args, differentiated))

    def did(self, tag: str, begin: int) -> None:
        self.activities.append(Activity(tag, begin, self.engine.now))

    def _call(self, name: str, begin: int, external: int, stream: int, record: int = -1) -> int:
        self._correlation += 1
        if self.recorded:
            self.calls.append(
                Call(name, self.thread, begin, self.engine.now, self._correlation, external, stream, record)
            )
        return self._correlation

    def spend(self, nominal_ns: float) -> int:
        return self.noise.host_ns(nominal_ns * self.scale)

    def _put(self, stream: int, work: Work, correlation: int) -> Work:
        work.correlation, work.step = correlation, self.step
        self.gpu.stream(stream).put(work)
        return work

    def _wait_for_room(self, stream: int) -> Steps:
        queue = self.gpu.stream(stream)
        while queue.full():
            yield queue.room()

    # What a program does

    def operator(self, op: Op, stream: int = COMPUTE) -> Steps:
        engine, spend = self.engine, self.spend
        yield spend(op.before_ns)
        begin = engine.now
        externals = [self.next_external() for _ in op.names]
        yield spend(op.enter_ns)
        if op.again:
            yield spend(CHECKPOINT_NS)
        for each in op.again:
            self.again = True
            yield from self.operator(each, stream)
            self.again = False
        for call in op.calls:
            call_begin, external = engine.now, self.next_external()
            for kernel in call.kernels:
                yield spend(op.prepare_ns)
                yield from self.launch(kernel, stream, external)
            yield spend(op.leave_ns)
            self.span("cpu_op", call.name, call_begin, external, call.args, op.differentiated)
        yield spend(op.leave_ns)
        for name, external in zip(op.names, externals):
            self.span("cpu_op", name, begin, external, op.args, op.differentiated)

    def launch(self, kernel: Kernel, stream: int, external: int) -> Steps:
        begin = self.engine.now
        yield from self._wait_for_room(stream)
        arrival = self.engine.now + self.device.delay_ns
        yield self.noise.host_ns(self.device.call_ns)
        ns = self.noise.kernel_ns(kernel.ns * self.slow_device)
        work = Work(KERNEL, kernel.name, ns, arrival, self.device.gap_ns)
        work.fill, work.detail, work.again = kernel.fill, kernel, self.again
        name = self.runtime.launch_matrix if kernel.kind in ("gemm", "conv") else self.runtime.launch
        self._put(stream, work, self._call(name, begin, external, stream))

    def graph(self, kernels: list[Kernel]) -> Steps:
        """One call, and kernels behind one another with a smaller gap: all of them have the call's correlation."""
        begin = self.engine.now
        yield from self._wait_for_room(COMPUTE)
        arrival = self.engine.now + self.device.delay_ns
        yield self.spend(GRAPH_CALL_NS + GRAPH_NODE_NS * len(kernels))
        correlation = self._call(self.runtime.graph, begin, self.next_external(), COMPUTE)
        for number, kernel in enumerate(kernels):
            ns = self.noise.kernel_ns(kernel.ns * self.slow_device)
            gap_ns = self.device.gap_ns if number == 0 else GRAPH_GAP_NS
            work = Work(KERNEL, kernel.name, ns, arrival, gap_ns)
            work.fill, work.detail, work.places = kernel.fill, kernel, 1 if number + 1 == len(kernels) else 0
            self._put(COMPUTE, work, correlation)

    def copy(
        self, direction: str, size: int, pinned: bool, blocking: bool, stream: int = COMPUTE, pageable_rate: float = 5e9
    ) -> Steps:
        """`tensor.to`: pinned memory at the link's rate; else in pieces through the driver's buffer, and the host
        waits for that, small copies to the device excepted."""
        link = self.device.link_bytes_per_s
        external = self.next_external()
        op_begin = self.engine.now
        yield self.spend(9_000)
        begin = self.engine.now
        rate = link if pinned else min(pageable_rate, link)
        ns = self.noise.copy_ns(COPY_SETUP_NS + 1e9 * size / rate)
        staged = not pinned and direction == "HtoD" and size <= SMALL_COPY_BYTES
        one_call = blocking and self.runtime.memcpy_blocking
        yield from self._wait_for_room(stream)
        work = Work(COPY, self._copy_name(direction, pinned), ns, self.engine.now + self.device.delay_ns)
        work.gap_ns, work.bytes, work.detail = self.device.gap_ns, size, direction
        yield self.spend(MEMCPY_CALL_NS + (size / STAGED_BYTES_PER_NS if staged else 0))
        # The call's correlation is known at its end only, and a call that blocks has its work running before that.
        correlation = self._correlation = self._correlation + 1
        self._put(stream, work, correlation)
        if (not pinned and not staged) or one_call:
            yield work.when_done()
            yield self.spend(WAKE_NS / 2)
        name = self.runtime.memcpy_blocking if one_call else self.runtime.memcpy
        if self.recorded:
            self.calls.append(Call(name, self.thread, begin, self.engine.now, correlation, external, stream))
        if (not pinned and not staged) or one_call:
            self.did("blocked", begin)
        if blocking and not one_call:
            yield from self.stream_sync(stream, external)
        yield self.spend(3_000)
        for each in ("aten::copy_", "aten::_to_copy", "aten::to"):
            self.span("cpu_op", each, op_begin, external)

    def _copy_name(self, direction: str, pinned: bool) -> str:
        if self.device.vendor == "amd":
            there = "Host -> Device" if direction == "HtoD" else "Device -> Host"
        else:
            memory = "Pinned" if pinned else "Pageable"
            there = f"{memory} -> Device" if direction == "HtoD" else f"Device -> {memory}"
        return f"Memcpy {direction} ({there})"

    def stream_sync(self, stream: int = COMPUTE, external: int = 0) -> Steps:
        begin = self.engine.now
        yield self.spend(SYNC_CALL_NS)
        queue = self.gpu.stream(stream).queue
        if queue:
            yield queue[-1].when_done()
            yield self.spend(WAKE_NS)
        self._call(self.runtime.stream_sync, begin, external, stream)
        self.did("blocked", begin)

    def device_sync(self) -> Steps:
        begin = self.engine.now
        yield self.spend(SYNC_CALL_NS)
        for stream in list(self.gpu.streams.values()):
            if stream.queue:
                yield stream.queue[-1].when_done()
        yield self.spend(WAKE_NS)
        self._call(self.runtime.device_sync, begin, 0, -1)
        self.did("blocked", begin)

    def item(self) -> Steps:
        """`tensor.item()`: a few bytes come back, and with them everything that was queued before."""
        begin, external = self.engine.now, self.next_external()
        yield self.spend(4_000)
        yield from self.copy("DtoH", 4, pinned=False, blocking=True)
        yield self.spend(2_000)
        self.span("cpu_op", "aten::_local_scalar_dense", begin, external)
        self.span("cpu_op", "aten::item", begin, external)

    def record_event(self, key: str, stream: int) -> Steps:
        begin = self.engine.now
        work = Work(MARKER, key, 0, begin + self.device.delay_ns)
        yield self.spend(EVENT_CALL_NS)
        self.events[key] = self._put(stream, work, self._call(self.runtime.event_record, begin, 0, stream))

    def wait_event(self, key: str, stream: int) -> Steps:
        event = self.events.get(key)
        if event is None:
            return
        begin = self.engine.now
        work = Work(WAIT, key, 0, begin + self.device.delay_ns)
        work.event = event
        yield self.spend(EVENT_CALL_NS)
        self._put(stream, work, self._call(self.runtime.stream_wait, begin, 0, stream, event.correlation))

    def collective(self, key: str, kernel: Kernel) -> Steps:
        """On NCCL's stream, behind what the compute stream has been given so far."""
        begin, external = self.engine.now, self.next_external()
        yield self.spend(12_000)
        yield from self.record_event(f"before {key}", COMPUTE)
        yield from self.wait_event(f"before {key}", NCCL)
        call_begin = self.engine.now
        yield from self._wait_for_room(NCCL)
        arrival = self.engine.now + self.device.delay_ns
        yield self.spend(self.device.call_ns / self.scale)
        work = Work(COLLECTIVE, kernel.name, self.noise.collective_ns(kernel.ns), arrival, self.device.gap_ns)
        work.detail, work.fill = kernel, 0.0
        work.meeting = self._meeting(key)
        self._put(NCCL, work, self._call(self.runtime.launch, call_begin, external, NCCL))
        yield from self.record_event(f"after {key}", NCCL)
        yield self.spend(6_000)
        self.span("user_annotation", "nccl:all_reduce", begin, external, kernel.args)
        self.span("cpu_op", "record_param_comms", begin, external, kernel.args)
        self.span("cpu_op", "c10d::allreduce_", begin, external)

    def _meeting(self, key: str) -> Meeting:
        at = (key, self.step)
        if at not in self._meetings:
            self._meetings[at] = Meeting(self.engine, self._ranks)
        return self._meetings[at]

    def busy(self, tag: str, nominal_ns: float, spread: float = 0.1) -> Steps:
        begin = self.engine.now
        yield self.noise.varied_ns(nominal_ns, spread)
        self.did(tag, begin)

    def open(self, category: str, name: str) -> None:
        self._open.append((category, name, self.engine.now, self.next_external()))

    def close(self) -> Span | None:
        category, name, begin, external = self._open.pop()
        self.span(category, name, begin, external)
        return self.spans[-1] if self.recorded else None
