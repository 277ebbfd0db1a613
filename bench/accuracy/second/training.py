"""The training loop of one rank, step by step."""

from second.exchange import Exchanger, accumulate_node
from second.fusion import compiled
from second.gpu import Event, Task
from second.host import AUTOGRAD, MAIN, Host
from second.kernels import pointwise
from second.loader import Batches
from second.ops import DISPATCH_NS, Model, Op, kernels_of, simple
from second.optimizers import STEPS, clip_ops, unscale_ops, update_scale_ops
from second.program import Program

GROUP_NS = 1500.0  # drawn by hand: torch.optim's _init_group looks up the states of each weight in Python
ZERO_NS = 300.0  # drawn by hand: zero_grad's loop, for each weight
HANDOFF_NS = 20e3  # drawn by hand: backward() wakes autograd's thread, and is woken by it
GUARDS_NS = 40e3  # drawn by hand: guards and prologue of a compiled region


class Training:
    """One rank's program, as a process of the engine."""

    def __init__(self, host: Host, program: Program, model: Model, batches: Batches, exchanger: Exchanger, steps: int):
        self.host, self.program, self.batches, self.exchanger = host, program, batches, exchanger
        self.source = model
        self.model = compiled(model) if program.compiled else model
        self.steps = steps
        self.marks = []  # (start, end) of each step on the host
        self.noise = host.noise
        self.optimizer = STEPS[program.step_style](program.optimizer, model.params)
        self.keep = {param: accumulate_node(param, False) for param in model.params}
        self.add = {param: accumulate_node(param, True) for param in model.params}
        self.graph = [kernel for op in self.model.operators() for kernel in kernels_of(op)] if program.graphs else []
        count = program.feed.batch_bytes / 4
        self.unpack = self._unpack_ops(count) if program.feed.as_bytes else []
        self.static = (simple("aten::copy_", (pointwise("direct_copy_kernel_cuda", count * 4, count * 4),)),)
        self.prefetched = None
        self.reads = {int(place * len(self.model.forward)) for place in program.reads if not isinstance(place, str)}

    @staticmethod
    def _unpack_ops(count: float) -> list:
        """uint8 to float, and the normalization that the loader's workers did before."""
        cast = pointwise("direct_copy_kernel_cuda", count, count * 4)
        scale = pointwise("BinaryFunctor<float, float, float>", count * 4, count * 4)
        return [simple("aten::to", (cast,)), simple("aten::sub_", (scale,)), simple("aten::div_", (scale,))]

    def run(self):
        """All steps, then a wait for the device."""
        if self.program.feed.ahead:
            yield from self.prefetch()
        recorder = self.host.recorder
        for step in range(self.steps):
            self.host.step = step
            if recorder and step == recorder.profile.first:
                recorder.on = True
            start = self.host.engine.now
            yield from self.one(step)
            self.marks.append((start, self.host.engine.now))
            if self.host.recording:
                recorder.annotation(f"ProfilerStep#{step}", MAIN, start, self.host.engine.now)
        yield from self.host.synchronize()

    def one(self, step: int):
        """One step of the loop, micro-batch and all that comes with it."""
        program, host = self.program, self.host
        if program.lag.kind == "work":
            host.work = self.noise.factor(program.lag.factor)
        last = (step + 1) % program.accumulate == 0
        yield from self.feed()
        yield from self.pauses(step)
        if step % program.accumulate == 0:
            yield from self.zero_grad()
        if program.graphs:
            yield from self.replay()
        else:
            yield from self.forward(step)
            yield from self.backward(step % program.accumulate > 0 or not program.set_to_none, last)
        if last:
            yield from self.optimize()
        if "loss" in program.reads:
            yield from host.item()
        yield from self.extras(step)
        yield program.loop_ns * host.factor()

    # Batches

    def fetch(self):
        """next(loader)."""
        host, start = self.host, self.host.engine.now
        yield self.batches.take(start)
        if host.recording:
            workers = self.program.loader.workers
            kind = "_MultiProcessingDataLoaderIter" if workers else "_SingleProcessDataLoaderIter"
            if not workers:
                host.recorder.operator("aten::stack", host.thread, host.engine.now - 30e3, host.engine.now - 5e3)
            host.recorder.annotation(f"enumerate(DataLoader)#{kind}.__next__", MAIN, start, host.engine.now)
            name = "torch/utils/data/dataloader.py(628): __next__"
            host.recorder.function(name, MAIN, start + 500, host.engine.now - 500)

    def send(self, stream=None):
        """The batch and its targets to the device."""
        feed, host = self.program.feed, self.host
        size = feed.batch_bytes / (4 if feed.as_bytes else 1)
        yield from host.copy(size, "HtoD", feed.pinned, feed.blocking, stream)
        yield from host.copy(self.program.batch * 8, "HtoD", feed.pinned, feed.blocking, stream)
        if not feed.ahead:
            for op in self.unpack:
                yield from host.run(op)

    def prefetch(self):
        """The next batch on the side stream."""
        yield from self.fetch()
        yield from self.send(self.host.side)
        self.prefetched = yield from self.host.mark(self.host.side)

    def feed(self):
        """A batch on the device: fetched and sent now, or the one that was sent a step before."""
        if not self.program.feed.ahead:
            yield from self.fetch()
            yield from self.send()
            return
        yield from self.host.follow(self.host.main, self.prefetched)
        for op in self.unpack:
            yield from self.host.run(op)
        yield from self.prefetch()

    # Passes

    def zero_grad(self):
        """Drops the gradients, or writes zeros into them."""
        start, host = self.host.engine.now, self.host
        yield (6e3 + ZERO_NS * len(self.model.params)) * host.factor()
        if not self.program.set_to_none and not self.program.graphs:
            for param in self.model.params:
                size = param.count * 4.0
                yield from host.run(simple("aten::zero_", (pointwise("FillFunctor<float>", 0, size),), (param.shape,)))
        if host.recording:
            name = f"Optimizer.zero_grad#{self.program.optimizer}.zero_grad"
            host.recorder.annotation(name, MAIN, start, host.engine.now)

    def forward(self, step: int):
        """The forward pass, with what the host reads back within it."""
        host, start = self.host, self.host.engine.now
        ddp = self.exchanger is not None and self.program.exchange.style == "ddp"
        synced = step % self.program.accumulate == 0  # DDP: only after a backward pass that was exchanged
        if ddp and synced and self.program.exchange.buffers and self.model.buffers:
            yield from self.exchanger.broadcast(self.model.buffers)
        if self.program.compiled:
            yield GUARDS_NS * host.factor()
        pause = self.noise.random.randrange(len(self.model.forward)) if self._pausing(step) else -1
        base = step * 10000
        for index, op in enumerate(self.model.forward):
            number = self.model.sequence.get(op)
            yield from host.run(op, None if number is None else base + number)
            if index in self.reads:
                yield from host.item()
            if index == pause:
                yield self.program.collection.pause * self.noise.factor(0.15)
        if host.recording and ddp:
            host.recorder.annotation("DistributedDataParallel.forward", MAIN, start, host.engine.now)

    def backward(self, add: bool, exchange: bool):
        """The backward pass, on autograd's own thread."""
        host, start = self.host, self.host.engine.now
        yield HANDOFF_NS * host.factor()
        if self.program.scaler:
            yield from host.run(simple("aten::mul", (pointwise("CUDAFunctor_mul<float>", 8, 4),)))
        host.thread = AUTOGRAD
        together = self.exchanger is not None and exchange
        if together:
            self.exchanger.begin()
        hooks = together and self.program.exchange.style == "ddp"
        for op in self.model.backward:
            yield from self._backward_op(op, add, hooks)
        if hooks:
            yield from self.exchanger.finish()
        host.thread = MAIN
        yield HANDOFF_NS * host.factor()
        if host.recording:
            host.recorder.function("torch/_tensor.py(428): backward", MAIN, start, host.engine.now)
        if together and not hooks:
            yield from self.exchanger.after(self.model.params)

    def _backward_op(self, op, add: bool, hooks: bool):
        host = self.host
        if isinstance(op, Op):
            number = self.model.sequence.get(op)
            yield from host.run(op, None if number is None else host.step * 10000 + number)
            return
        yield from host.run((self.add if add else self.keep)[op])
        if hooks:
            yield from self.exchanger.ready(op)

    def replay(self):
        """The batch into the graph's own tensors, then the graph."""
        for op in self.static:
            yield from self.host.run(op)
        yield from self.host.graph(self.graph)

    def optimize(self):
        """Unscaling, clipping, and the optimizer's step."""
        program, host, params = self.program, self.host, self.model.params
        fused = program.step_style == "fused"  # unscales and looks for infinities itself
        if program.scaler and (program.clip or not fused):
            yield from self._all(unscale_ops(params))
        if program.scaler and not fused:
            yield from host.item()  # found_inf
        if program.clip:
            yield from self._all(clip_ops(params))
        if "norm" in program.reads:
            yield from host.item()
        start = host.engine.now
        yield (15e3 + GROUP_NS * len(params)) * host.factor()
        yield from self._all(self.optimizer)
        if host.recording:
            host.recorder.annotation(f"Optimizer.step#{program.optimizer}.step", MAIN, start, host.engine.now)
            host.recorder.function("torch/optim/optimizer.py(484): wrapper", MAIN, start - 400, host.engine.now + 300)
        if program.scaler:
            yield from self._all(update_scale_ops())

    def _all(self, ops: list):
        for op in ops:
            yield from self.host.run(op)

    # What comes now and then

    def _pausing(self, step: int) -> bool:
        collection = self.program.collection
        return bool(collection.every) and not collection.explicit and step % collection.every == collection.every - 1

    def pauses(self, step: int):
        """Rare long stalls: the system takes the core away, or the allocator asks the driver for memory."""
        program, host = self.program, self.host
        if not self.noise.chance(program.stall_chance):
            return
        start = host.engine.now
        yield self.noise.stall(program.stall_ns)
        if host.recording and step % 2:
            host.recorder.call(host.runtime("cudaMalloc"), MAIN, start, host.engine.now, 0)

    def extras(self, step: int):
        """Garbage collection in the loop, validation, a checkpoint."""
        program = self.program
        if due(program.collection, step) and program.collection.explicit:
            start = self.host.engine.now
            yield program.collection.pause * self.noise.factor(0.1)
            if self.host.recording:
                self.host.recorder.function("<built-in function collect>", MAIN, start, self.host.engine.now)
        if due(program.validation, step):
            yield from self._watched("validation", self.validate())
        if due(program.checkpoint, step) and not (self.exchanger and self.exchanger.rank):
            yield from self._watched("checkpoint", self.save())

    def _watched(self, name: str, process):
        start, host = self.host.engine.now, self.host
        yield from process
        if host.recording and host.recorder.profile.annotate:
            host.recorder.annotation(name, MAIN, start, host.engine.now)

    def validate(self):
        """Forward passes over some batches, a value read back from each; or just a snapshot for another process."""
        if self.program.validation.beside:
            yield from self.snapshot()
            return
        feed = self.program.feed
        for _ in range(self.program.validation.batches):
            yield self.program.loader.get_ns * self.host.factor()
            yield from self.host.copy(feed.batch_bytes, "HtoD", feed.pinned, feed.blocking)
            for op in self.model.forward:
                yield from self.host.run(op)
            yield from self.host.item()

    def save(self):
        """torch.save: each tensor to the host, then the file; or a snapshot, and a thread writes it."""
        host, start = self.host, self.host.engine.now
        if self.program.checkpoint.beside:
            yield from self.snapshot()
            host.busy_until = host.engine.now + 4.0 * self.source.weights / self.program.checkpoint.disk
            return
        copies = 1 + (self.program.optimizer != "SGD") * 2
        for param in self.source.params:
            for _ in range(copies):
                yield from host.copy(param.count * 4, "DtoH", False, True)
        yield 4.0 * self.source.weights * copies / self.program.checkpoint.disk * self.noise.factor(0.08)
        if host.recording:
            host.recorder.function("torch/serialization.py(600): save", MAIN, start, host.engine.now)

    def snapshot(self):
        """All weights into pinned memory, one wait at the end."""
        host, event = self.host, Event()
        for param in self.source.params:
            yield from host.copy(param.count * 4, "DtoH", True, False)
        task = Task("record", "")
        task.event = event
        host.gpu.submit(host.main, task)
        yield from host.wait(event)
        yield DISPATCH_NS * len(self.source.params) * host.factor()


def due(periodic, step: int) -> bool:
    """Whether it comes at the end of this step."""
    return bool(periodic.every) and step % periodic.every == periodic.every - 1
