"""The training loop: what the host of one rank does, step after step, with its operators laid out beforehand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from . import names, optimizer
from .compiler import compiled
from .engine import Steps
from .host import COMPUTE, COPIES, Host
from .layers import Layers
from .loaders import loader_of
from .models import write
from .ops import Kernel, Op, OpCall
from .program import LABEL_BYTES, Program
from .silicon import SIZE, Silicon

# Costs of the loop around the operators, from profiles of such loops.
PROFILER_NS, LOOP_NS, ZERO_GRAD_NS = 25_000, 30_000, 40_000
TO_AUTOGRAD_NS, FROM_AUTOGRAD_NS = 45_000, 20_000
COLLECTIVE_LATENCY_NS = 14_000  # of an all-reduce of nothing, and as much for every further pair of ranks
NETWORK_LATENCY_NS = 80_000  # in addition where the ranks are not in one machine
VALIDATION_PART = 3  # validation batches are that much smaller


@dataclass(frozen=True)
class Layout:
    """What a step runs, before anything is simulated."""

    forward: list[Op]
    backward: list[Op]
    optimizer: list[Op]
    validation: list[Op]
    buckets: list[tuple[int, int]]  # after which of the backward operators, and how many elements, in order
    parameters: list[int]
    gradient_size: int  # bytes of an element

    @property
    def kernels(self) -> list[Kernel]:
        return [kernel for op in self.forward + self.backward + self.optimizer for kernel in op.kernels]


@lru_cache(maxsize=64)
def layout_of(program: Program) -> Layout:
    silicon = Silicon(program.device, program.key)
    layers = Layers(silicon, program.precision, program.fp8)
    write(program.shape, program.batch, layers)
    forward, backward = layers.forward, layers.recomputing() if program.recompute else layers.backward
    validation = _validation(program, silicon) if program.validation_every else []
    if program.compiled:
        forward, backward = compiled(forward, silicon), compiled(backward, silicon)
    size = SIZE[layers.rest]
    update = optimizer.step(program.optimizer, program.optimizer_impl, layers.parameters, silicon, program.scaler)
    buckets = _buckets(backward, program.bucket_bytes // size) if program.ranks > 1 else []
    return Layout(forward, backward, update, validation, buckets, layers.parameters, size)


def _validation(program: Program, silicon: Silicon) -> list[Op]:
    layers = Layers(silicon, program.precision, program.fp8)
    write(program.shape, max(1, program.batch // VALIDATION_PART), layers)
    return layers.forward


def _buckets(backward: list[Op], most: int) -> list[tuple[int, int]]:
    """DDP's: gradients in the order in which they become ready, reduced together when a bucket is full."""
    buckets, filled = [], 0
    for index, op in enumerate(backward):
        filled += sum(op.grads)
        if filled >= most:
            buckets.append((index, filled))
            filled = 0
    if filled:
        buckets.append((len(backward) - 1, filled))
    return buckets


def all_reduce(program: Program, elements: int, size: int) -> Kernel:
    """By nccl-tests' arithmetic: bus bandwidth, and a latency that grows with the ring."""
    n, moved = program.ranks, float(elements * size)
    rate = program.device.fabric_bytes_per_s * program.fabric_scale
    latency = COLLECTIVE_LATENCY_NS * n + (NETWORK_LATENCY_NS if program.fabric_scale < 0.2 else 0)
    ns = latency + 1e9 * 2 * (n - 1) / n * moved / rate
    dtype = "fp32" if size == 4 else program.precision.split("-")[-1]
    kind = {"fp32": "Float", "fp16": "Half", "bf16": "BFloat16"}[dtype]
    args = (
        f'"Collective name": "allreduce", "In msg nelems": {elements}, "Out msg nelems": {elements}, '
        f'"Group size": {n}, "dtype": "{kind}", "In split size": "[]", "Out split size": "[]", '
        f'"Process Group Name": "0", "Process Group Description": "default_pg"'
    )
    return Kernel("collective", names.all_reduce(program.device, dtype), ns, 0.0, moved, 0.0, False, args)


class Training:
    """The process of one rank. `profiled` of its steps, after the warm-up, are what a profiler would record."""

    def __init__(self, program: Program, host: Host) -> None:
        self.program, self.host, self.layout = program, host, layout_of(program)
        host.scale *= program.host_scale
        if host.rank == program.slow_rank:
            host.slow_device = program.slow_device
        host.loader = loader_of(program, host)
        self.syncs = _spread(program.items_per_step, len(self.layout.forward))
        self.graph = [kernel for op in self.layout.forward + self.layout.backward for kernel in op.kernels]

    def run(self, steps: int) -> Steps:
        program, host = self.program, self.host
        if program.side_stream:
            yield from self._fetch_ahead()
        for step in range(program.warmup + steps):
            if step == program.warmup and program.cold:
                yield from host.device_sync()
            host.noise.new_step()
            host.step = step
            host.step_begins.append(host.engine.now)
            host.open("user_annotation", f"ProfilerStep#{step}")
            yield from self._step(step)
            host.close()
            host.step_ends.append(host.engine.now)
            yield host.spend(PROFILER_NS)
        yield from host.device_sync()  # the profiler stops

    def _step(self, step: int) -> Steps:
        program, host = self.program, self.host
        if program.side_stream:
            yield from host.wait_event("batch", COMPUTE)
            yield from self._fetch_ahead()
        else:
            yield from host.loader.next()
            yield from self._copy_batch(COMPUTE)
        yield host.spend(LOOP_NS)
        if program.silent_ms:
            yield from host.busy("silent", program.silent_ms * 1e6)
        if program.as_bytes:
            yield from host.operator(self._to_floats())
        updates = (step + 1) % program.accumulate == 0
        if updates:
            yield from self._zero_grad()
        if program.graphs:
            yield from host.operator(self._to_static())
            yield from host.graph(self.graph)
        else:
            yield from self._forward()
            yield from self._backward(updates)
        if updates:
            yield from self._optimizer_step()
        if program.item_of_loss and (step + 1) % program.item_of_loss == 0:
            yield from host.item()
        if program.device_sync:
            yield from host.device_sync()
        yield from self._pauses(step)

    # The batch

    def _copy_batch(self, stream: int) -> Steps:
        program = self.program
        for size in (program.batch_bytes, program.batch * LABEL_BYTES):
            blocking = not program.non_blocking
            yield from self.host.copy("HtoD", size, program.pinned, blocking, stream, program.pageable_rate)

    def _fetch_ahead(self) -> Steps:
        yield from self.host.loader.next()
        yield from self._copy_batch(COPIES)
        yield from self.host.record_event("batch", COPIES)

    def _to_floats(self) -> Op:
        numel = self.program.batch_bytes
        kernel = Silicon(self.program.device, self.program.key).pointwise("copy_kernel", numel, 5.0 * numel, "uint8")
        return Op(("aten::to", "aten::_to_copy"), (OpCall("aten::copy_", (kernel,)),))

    def _to_static(self) -> Op:
        """A graph reads its input where it did when it was captured."""
        silicon = Silicon(self.program.device, self.program.key)
        size = 2.0 * self.program.batch_bytes * (4 if self.program.as_bytes else 1)
        kernel = silicon.memory_bound("pointwise", names.pointwise("direct_copy_kernel_cuda", "fp32"), size)
        return Op((), (OpCall("aten::copy_", (kernel,)),), before_ns=2_000)

    # The model

    def _zero_grad(self) -> Steps:
        host = self.host
        host.open("user_annotation", f"Optimizer.zero_grad#{self.program.optimizer}.zero_grad")
        yield host.spend(ZERO_GRAD_NS + 150 * len(self.layout.parameters))
        host.close()

    def _forward(self) -> Steps:
        host = self.host
        for index, op in enumerate(self.layout.forward):
            yield from host.operator(replace(op, differentiated=True))
            if index in self.syncs:
                yield from host.item()

    def _backward(self, reduces: bool) -> Steps:
        """On autograd's thread; DDP's all-reduces begin there, as buckets become full."""
        program, host, layout = self.program, self.host, self.layout
        reduces = reduces and program.ranks > 1
        reduced = [all_reduce(program, elements, layout.gradient_size) for _, elements in layout.buckets]
        due = {index: number for number, (index, _) in enumerate(layout.buckets)} if program.overlap else {}
        yield host.spend(TO_AUTOGRAD_NS)
        host.thread = host.autograd
        for index, op in enumerate(layout.backward):
            yield from host.operator(op)
            if reduces and index in due:
                yield from host.collective(f"bucket {due[index]}", reduced[due[index]])
        host.thread = host.main
        yield host.spend(FROM_AUTOGRAD_NS)
        if reduces:
            if not program.overlap:
                for number, kernel in enumerate(reduced):
                    yield from host.collective(f"bucket {number}", kernel)
            yield from host.wait_event(f"after bucket {len(reduced) - 1}", COMPUTE)

    def _optimizer_step(self) -> Steps:
        host, name = self.host, self.program.optimizer
        host.open("user_annotation", f"Optimizer.step#{name}.step")
        looked = not self.program.scaler or self.program.optimizer_impl == "fused"
        for op in self.layout.optimizer:
            yield from host.operator(op)
            if not looked:
                looked = True
                yield from host.item()  # did gradients overflow?
        host.close()

    # What interrupts the training

    def _pauses(self, step: int) -> Steps:
        program, host = self.program, self.host
        if program.checkpoint_every and (step + 1) % program.checkpoint_every == 0:
            yield from self._checkpoint()
        if program.validation_every and (step + 1) % program.validation_every == 0:
            yield from self._validation()
        if program.gc_every and (step + 1) % program.gc_every == 0:
            begin = host.engine.now
            yield from host.busy("garbage-collection", program.gc_ms * 1e6, 0.05)
            if program.with_stack:
                host.span("python_function", "<built-in function collect>", begin)

    def _checkpoint(self) -> Steps:
        program, host = self.program, self.host
        begin = host.engine.now
        frame = ("python_function", "torch/serialization.py(849): save") if program.with_stack else None
        host.open(*(frame or ("user_annotation", "save_checkpoint")))
        total = 4 * sum(self.layout.parameters)
        for _ in range(4):
            yield from host.copy("DtoH", total // 4, False, True, COMPUTE, program.pageable_rate)
        yield from host.busy("checkpoint", program.checkpoint_ms * 1e6, 0.1)
        host.close()
        host.did("checkpoint", begin)

    def _validation(self) -> Steps:
        program, host = self.program, self.host
        begin = host.engine.now
        host.open("user_annotation", "run_validation")
        for _ in range(program.validation_batches):
            yield from host.busy("validation", program.validation_fetch_ms * 1e6, 0.1)
            size = max(1, program.batch_bytes // VALIDATION_PART)
            yield from host.copy("HtoD", size, False, True, COMPUTE, program.pageable_rate)
            for op in self.layout.validation:
                yield from host.operator(op)
            yield from host.item()
        host.close()
        host.did("validation", begin)


def _spread(count: int, places: int) -> set[int]:
    return {round((number + 1) * places / (count + 1)) for number in range(count)}
