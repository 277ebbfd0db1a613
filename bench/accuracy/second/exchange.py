"""Data parallelism on one rank: DDP's buckets behind the backward pass, or an exchange after it."""

from second.collective import World
from second.gpu import Task
from second.host import Host
from second.kernels import pointwise
from second.ops import Call, Op, Param, node, simple
from second.program import FIRST_BUCKET, Program

COLLECTIVE_NS = 28000.0  # drawn by hand: c10d::allreduce_, work objects, NCCL's enqueue: 30 to 60 us with events
WAIT_BAND = 0.03  # of the memory's bandwidth while NCCL's kernel moves bytes through it (drawn by hand)


def buckets_of(params: list, cap: float) -> list:
    """DDP's buckets: weights in reverse order, the first bucket at most 1 MB, the others at most cap MB."""
    limit, result, current, size = min(FIRST_BUCKET, cap * 2**20), [], [], 0
    for param in reversed(params):
        current.append(param)
        size += param.count * 4
        if size >= limit:
            result.append(current)
            current, size, limit = [], 0, cap * 2**20
    return result + ([current] if current else [])


class Exchanger:
    """Gradients of one rank on their way to all ranks."""

    def __init__(self, host: Host, world: World, program: Program, params: list, rank: int):
        self.host, self.world, self.rank = host, world, rank
        self.config = program.exchange
        self.buckets = buckets_of(params, self.config.bucket)
        self._bucket = {param: index for index, bucket in enumerate(self.buckets) for param in bucket}
        self._into = {param: self._copy_op("aten::mul", param) for param in params}
        self._back = {param: self._copy_op("aten::copy_", param) for param in params}
        self._divide = {param: self._copy_op("aten::div_", param) for param in params}
        self._left, self._events, self._count = [], [], 0
        self._next = 0

    @staticmethod
    def _copy_op(name: str, param: Param) -> Op:
        size = param.count * 4.0
        functor = "AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >"
        return simple(name, (pointwise(functor, size, size),), (param.shape, param.shape), 600.0)

    def begin(self):
        """Before a backward pass."""
        self._left = [len(bucket) for bucket in self.buckets]
        self._events, self._next = [], 0

    def ready(self, param: Param):
        """DDP's hook on a weight: its gradient goes into a bucket; full buckets go out in their order."""
        yield from self.host.run(self._into[param])
        self._left[self._bucket[param]] -= 1
        while self._next < len(self.buckets) and not self._left[self._next]:
            bucket = self.buckets[self._next]
            self._next += 1
            yield from self._send(bucket)

    def _send(self, bucket: list):
        count = sum(param.count for param in bucket)
        if self.config.half:  # fp16_compress_hook: cast and divide before
            yield from self._cast("aten::to", count, 4, 2)
            yield from self._cast("aten::div_", count, 2, 2)
        event = yield from self.collective("allreduce", count * (2 if self.config.half else 4), count)
        self._events.append((event, count, bucket))

    def _cast(self, name: str, count: int, before: int, after: int):
        kernel = pointwise("direct_copy_kernel_cuda", count * before, count * after, "c10::Half")
        yield from self.host.run(simple(name, (kernel,), ((count,),), 800.0))

    def finish(self):
        """DDP's end of the backward pass: the main stream waits for all, gradients come back out of the buckets."""
        for event, count, bucket in self._events:
            yield from self.host.follow(self.host.main, event)
            if self.config.half:
                yield from self._cast("aten::copy_", count, 2, 4)
            for param in bucket:
                yield from self.host.run(self._back[param])

    def after(self, params: list):
        """An exchange written by hand after the backward pass, one weight (or one flat bucket) at a time."""
        for bucket in self.buckets if self.config.style == "flat" else [[param] for param in params]:
            yield from self._exchange_now(bucket)

    def _exchange_now(self, bucket: list):
        count, flat = sum(param.count for param in bucket), len(bucket) > 1
        if flat:
            yield from self._cast("aten::cat", count, 4, 4)
        event = yield from self.collective("allreduce", count * 4, count)
        yield from self.host.follow(self.host.main, event)
        for param in bucket:
            yield from self.host.run(self._back[param] if flat else self._divide[param])

    def broadcast(self, buffers: list):
        """DDP's broadcast_buffers: flat to all ranks, then copied back one by one."""
        count = sum(buffer.count for buffer in buffers)
        yield from self._cast("aten::cat", count, 4, 4)
        event = yield from self.collective("broadcast", count * 4, count)
        yield from self.host.follow(self.host.main, event)
        for buffer in buffers:
            yield from self.host.run(self._back_buffer(buffer))

    def _back_buffer(self, buffer: Param) -> Op:
        if buffer not in self._back:
            self._back[buffer] = self._copy_op("aten::copy_", buffer)
        return self._back[buffer]

    def collective(self, kind: str, size: float, count: int):
        """One collective on NCCL's stream, after what the main stream holds now; returns the event of its end."""
        host = self.host
        factor, start = host.factor(), host.engine.now
        yield COLLECTIVE_NS * 0.6 * factor + 2 * host.watch_op
        event = yield from host.mark(host.main)
        yield from host.follow(host.comm, event)
        task = Task("collective", self._kernel_name(kind, size), 0.0)
        task.share, task.band = min(0.5, self.config.sms / host.gpu.hardware.spec.sms), WAIT_BAND
        task.collective = self.world.collective(self._count, kind, size)
        task.bytes = int(size)
        self._count += 1
        external = host.recorder.new_external() if host.recording else 0
        yield from host.submit(host.comm, task, host.runtime("cudaLaunchKernelExC"), 6000.0 * factor, external)
        end = yield from host.mark(host.comm)
        yield COLLECTIVE_NS * 0.4 * factor
        if host.recording:
            self._record(kind, start, count, external)
        return end

    def _kernel_name(self, kind: str, size: float) -> str:
        if self.host.amd:
            return "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)"
        if kind == "broadcast":
            return "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        dtype = "f16" if self.config.half else "f32"
        protocol = "RING_LL" if size < 4 << 20 else "TREE_LL"  # the name says little: one for all protocols
        return f"ncclDevKernel_AllReduce_Sum_{dtype}_{protocol}(ncclDevKernelArgsStorage<4096ul>)"

    def _record(self, kind: str, start: float, count: int, external: int):
        host, end = self.host, self.host.engine.now
        recorder, dtype = host.recorder, "c10::Half" if self.config.half and kind == "allreduce" else "float"
        shapes = ((count,),)
        recorder.operator(f"c10d::{kind}_", host.thread, start, end, shapes, dtype)
        recorder.operator(
            f"record_param_comms:{kind}", host.thread, start + 900, end - 600, shapes, dtype, None, external
        )
        name = {"allreduce": "all_reduce"}.get(kind, kind)
        recorder.annotation(f"nccl:{name}", host.thread, start + 1500, end - 1200)


def accumulate_node(param: Param, add: bool) -> Op:
    """AccumulateGrad: takes the gradient over, or adds it to the one that is there."""
    call = Call("aten::detach", (), (param.shape,), (), 500.0)
    if add:
        size = param.count * 4.0
        call = Call(
            "aten::add_", (pointwise("CUDAFunctor_add<float>", 2 * size, size, "float", 3),), (param.shape,) * 2
        )
    return node("torch::autograd::AccumulateGrad", (call,))
