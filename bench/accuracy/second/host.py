"""The host of one rank: runs operators, launches kernels and graphs, copies, waits; tells the recorder."""

from second.engine import Engine, Gate
from second.gpu import QUEUE_DEPTH, Event, Gpu, Stream, Task
from second.noise import Noise
from second.ops import DISPATCH_NS, LAUNCH_NS, PYTHON_NS, VIEW_NS, Op
from second.recording import CALL_NS, Recorder

SMALL_COPY = 65536  # bytes: pageable copies up to here do not wait for the stream in the call itself (CUDA, driver API)
EVENT_NS = 1500.0  # cudaEventRecord, cudaStreamWaitEvent: 1 to 2 us
BESIDE = 1.06  # drawn by hand: the host is slower while a thread of it writes a checkpoint (the interpreter's lock)
SYNC_NS = 3000.0  # drawn by hand: cudaStreamSynchronize returns this long after the work has ended
RUNTIME = {  # CUDA's name -> HIP's
    "cudaLaunchKernel": "hipLaunchKernel",
    "cuLaunchKernel": "hipModuleLaunchKernel",
    "cudaLaunchKernelExC": "hipExtModuleLaunchKernel",
    "cudaMemcpyAsync": "hipMemcpyWithStream",
    "cudaMemsetAsync": "hipMemsetAsync",
    "cudaStreamSynchronize": "hipStreamSynchronize",
    "cudaDeviceSynchronize": "hipDeviceSynchronize",
    "cudaEventRecord": "hipEventRecord",
    "cudaStreamWaitEvent": "hipStreamWaitEvent",
    "cudaGraphLaunch": "hipGraphLaunch",
    "cudaMalloc": "hipMalloc",
}
MAIN, AUTOGRAD = 0, 1  # threads


class Host:
    """Threads of one process that feed one device."""

    def __init__(self, engine: Engine, gpu: Gpu, noise: Noise, cpu: float, recorder: Recorder = None):
        self.engine, self.gpu, self.noise, self.cpu = engine, gpu, noise, cpu
        self.recorder = recorder
        self.amd = gpu.hardware.spec.arch == "cdna"
        self.hopper = gpu.hardware.spec.arch == "hopper"
        main = 0 if self.amd else 7  # the default stream's number in traces
        self.main, self.side, self.comm = Stream(main), Stream(main + 13), Stream(main + 21)
        self.thread = MAIN
        self.step = 0
        self.busy_until = 0.0  # another thread of this process works until then
        self.work = 1.0  # this step's share of the work, for unevenly spread batches
        self.watch_op = recorder.profile.operator_ns if recorder else 0.0
        self.watch_call = CALL_NS if recorder else 0.0
        if recorder:
            gpu.record = recorder.task

    @property
    def recording(self) -> bool:
        """Whether events are kept now."""
        return self.recorder is not None and self.recorder.on

    def factor(self) -> float:
        """The host's time as a multiple of a fast, quiet one's."""
        beside = BESIDE if self.engine.now < self.busy_until else 1.0
        return self.cpu * beside * self.noise.host()

    def runtime(self, name: str) -> str:
        """A runtime call's name on this device."""
        return RUNTIME[name] if self.amd else name

    # Operators

    def run(self, op: Op, sequence=None):
        """One operator: Python, wrappers, and each call with its launches."""
        factor = self.factor()
        if op.python:
            yield op.python * factor
        start = self.engine.now
        outer = [self.recorder.new_external() for _ in op.names] if self.recording else ()
        lead = (DISPATCH_NS * 0.35 * factor + self.watch_op) * len(op.names) + op.inside * factor
        if lead:
            yield lead
        for call in op.calls:
            yield from self._call(call, factor, op.dtype, sequence)
        if op.names:
            yield DISPATCH_NS * 0.15 * factor * len(op.names)
        if self.recording:
            self._wrappers(op, outer, start, sequence)

    def _wrappers(self, op: Op, outer, start: float, sequence):
        """Nested events around the calls, each a little shorter than the one around it."""
        end = self.engine.now
        shapes = op.calls[0].shapes if op.calls else ()
        for depth, (name, external) in enumerate(zip(op.names, outer)):
            inset = 150.0 * depth
            self.recorder.operator(
                name, self.thread, start + inset, end - inset * 0.5, shapes, op.dtype, sequence, external
            )
        if op.module:
            self.recorder.function(f"nn.Module: {op.module}", self.thread, start - 900.0, end + 300.0)

    def _call(self, call, factor: float, dtype: str, sequence):
        """One ATen operator."""
        begin = self.engine.now
        external = self.recorder.new_external() if self.recording else 0
        yield call.dispatch * 0.6 * factor + self.watch_op
        for view in call.views:
            at = self.engine.now
            yield VIEW_NS * factor + self.watch_op * 0.7
            if self.recording:
                self.recorder.operator(view, self.thread, at, self.engine.now, (call.viewed,), dtype)
        for kernel in call.kernels:
            yield from self.launch(kernel, factor, external)
        yield call.dispatch * 0.4 * factor
        if self.recording:
            self.recorder.operator(
                call.name, self.thread, begin, self.engine.now, call.shapes, dtype, sequence, external
            )

    # Launches

    def launch_name(self, kernel) -> str:
        """Which call launches a kernel."""
        if kernel.name.startswith("triton"):
            return self.runtime("cuLaunchKernel")
        library = kernel.kind == "gemm" and (self.hopper or self.amd)
        return self.runtime("cudaLaunchKernelExC" if library else "cudaLaunchKernel")

    def kernel_task(self, kernel) -> Task:
        """Device work of a kernel."""
        usage = self.gpu.hardware.usage(kernel)
        task = Task("kernel", kernel.name, usage.time * self.work)
        task.share, task.need, task.band = usage.share, usage.need, usage.band
        task.kernel, task.step = kernel, self.step
        return task

    def launch(self, kernel, factor: float, external: int):
        """One launch; it blocks while the queue is full."""
        yield from self.submit(
            self.main, self.kernel_task(kernel), self.launch_name(kernel), LAUNCH_NS * factor, external
        )

    def submit(self, stream: Stream, task: Task, name: str, cost: float, external: int = 0):
        """A runtime call that puts a task on a stream."""
        begin = self.engine.now
        if stream.depth >= QUEUE_DEPTH:
            stream.room = Gate()
            yield stream.room
        task.step = self.step
        yield cost * 0.6
        self.gpu.submit(stream, task)
        yield cost * 0.4 + self.watch_call
        if self.recording:
            launch = self.recorder.call(name, self.thread, begin, self.engine.now - self.watch_call * 0.5, external)
            task.launch = launch

    def graph(self, kernels: list):
        """cudaGraphLaunch: all nodes at once, with smaller gaps between them."""
        hardware, begin = self.gpu.hardware, self.engine.now
        if self.main.depth >= QUEUE_DEPTH:
            self.main.room = Gate()
            yield self.main.room
        yield (hardware.graph_launch + hardware.graph_node * len(kernels)) * self.factor() + self.watch_call
        launch = None
        if self.recording:
            name = self.runtime("cudaGraphLaunch")
            launch = self.recorder.call(name, self.thread, begin, self.engine.now, self.recorder.new_external())
        for index, kernel in enumerate(kernels):
            task = self.kernel_task(kernel)
            task.gap, task.launch, task.counted = hardware.node_gap, launch, index == len(kernels) - 1
            self.gpu.submit(self.main, task)

    # Events and waits

    def mark(self, stream: Stream):
        """cudaEventRecord; returns the event."""
        event = Event()
        task = Task("record", "")
        task.event = event
        yield from self.submit(stream, task, self.runtime("cudaEventRecord"), EVENT_NS * self.cpu)
        return event

    def follow(self, stream: Stream, event: Event):
        """cudaStreamWaitEvent."""
        task = Task("wait", "")
        task.event = event
        yield from self.submit(stream, task, self.runtime("cudaStreamWaitEvent"), EVENT_NS * self.cpu)

    def wait(self, event: Event, name: str = "cudaStreamSynchronize", external: int = 0):
        """The host waits until an event has come."""
        begin = self.engine.now
        yield event.gate
        yield SYNC_NS * self.cpu * self.noise.host() + self.watch_call
        if self.recording:
            self.recorder.call(self.runtime(name), self.thread, begin, self.engine.now, external)

    def synchronize(self):
        """cudaDeviceSynchronize, of the main stream."""
        event = Event()
        task = Task("record", "")
        task.event = event
        self.gpu.submit(self.main, task)
        yield from self.wait(event, "cudaDeviceSynchronize")

    # Copies

    def copy(self, size: float, way: str, pinned: bool, blocking: bool, stream: Stream = None, names=None):
        """One tensor between host and device; pageable copies are staged by the driver and hold the caller."""
        factor = self.factor()
        names = names or ("aten::to", "aten::_to_copy", "aten::copy_")
        start, external = self.engine.now, self.recorder.new_external() if self.recording else 0
        yield (PYTHON_NS + DISPATCH_NS * len(names)) * factor + self.watch_op * len(names)
        task = self.copy_task(size, way, pinned)
        begin = self.engine.now
        waits = blocking or not pinned
        yield from self.submit(stream or self.main, task, self.runtime("cudaMemcpyAsync"), LAUNCH_NS * factor, external)
        if waits and not pinned and size > SMALL_COPY:
            yield task.event.gate
            yield SYNC_NS * factor
            if task.launch is not None:
                task.launch.end = self.engine.now
        if waits:
            yield from self.wait(task.event, external=external)
        if self.recording:
            self._copied(names, start, begin, size, external)

    def _copied(self, names, start, begin, size, external):
        end = self.engine.now + 300.0
        for depth, name in enumerate(names):
            own = external if depth == len(names) - 1 else None
            at = start + (begin - start) * (0.3 + 0.6 * depth / len(names))
            self.recorder.operator(
                name, self.thread, at, end - 80.0 * depth, ((int(size // 4),), ()), "float", None, own
            )

    def copy_task(self, size: float, way: str, pinned: bool) -> Task:
        """Device work of a copy: latency, then the bus's (or the memory's) rate."""
        hardware = self.gpu.hardware
        kind = "Pinned" if pinned else "Pageable"
        ends = {"HtoD": f"{kind} -> Device", "DtoH": f"Device -> {kind}", "DtoD": "Device -> Device"}
        rate = hardware.pinned if pinned else hardware.pageable
        if way == "DtoD":
            rate = hardware.spec.memory * hardware.memory_reach / 2
        task = Task("copy", f"Memcpy {way} ({ends[way]})", hardware.copy_latency + size / rate)
        task.direction = "" if way == "DtoD" else way
        task.bytes, task.event = int(size), Event()
        return task

    def item(self):
        """tensor.item(): four bytes to the host, which waits for all before them."""
        start = self.engine.now
        yield from self.copy(4, "DtoH", False, True, None, ("aten::item", "aten::_local_scalar_dense"))
        if self.recording:
            name = "<built-in method item of Tensor object at 0x7f3a5c0e2d40>"
            self.recorder.function(name, self.thread, start, self.engine.now)
