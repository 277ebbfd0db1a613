#!/usr/bin/env python3
"""Checks the simulation against paper: each check computes what a run has to give. Exit status 1 if one fails."""

import hashlib
import json
import math
import random
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from second.base import device_ns
from second.devices import Hardware
from second.engine import Engine
from second.exchange import accumulate_node, buckets_of
from second.families import DRAW, build
from second.fusion import compiled
from second.gpu import LEAST, Gpu, Stream, Task
from second.layers import Numerics
from second.loader import PIN_RATE
from second.noise import Noise
from second.ops import Op, Param, host_ns, kernels_of
from second.optimizers import STEPS
from second.pair import make_pair
from second.program import Exchange, Feed, Lag, Loader, Program
from second.recording import Profile
from second.simulate import model_of, simulate
from second.training import GROUP_NS, HANDOFF_NS, ZERO_NS

FIRST, LAST = 8, 32  # steps that are measured
DEEP = {"features": 2048, "layers": 12, "width": 1024, "classes": 100, "dropout": True, "norm": True}
QUIET = {"stall_chance": 0.0, "step_style": "fused", "optimizer": "Adam", "cpu": 1.0}
RESNET50 = {"width": 64, "blocks": [3, 4, 6, 3], "bottleneck": True, "side": 224, "classes": 1000}


class Checks:
    """What was checked, and what failed."""

    def __init__(self):
        self.failed = 0

    def near(self, what: str, got: float, expected: float, within: float):
        """A number within a share of what paper says."""
        good = abs(got - expected) <= within * abs(expected)
        self.say(good, f"{what}: {got:.4g}, on paper {expected:.4g} (within {within:.0%})")

    def true(self, what: str, good: bool):
        """A statement."""
        self.say(good, what)

    def say(self, good: bool, text: str):
        """One line for each check."""
        self.failed += not good
        print("ok  " if good else "FAIL", text)


def program_of(batch: int, **fields) -> Program:
    """A perceptron whose loader and feed cost little."""
    loader = Loader(workers=4, batch_ns=1e5, get_ns=5e4)
    feed = Feed(batch_bytes=batch * DEEP["features"] * 4, pinned=True, blocking=False)
    base = {"family": "mlp", "shape": DEEP, "batch": batch, "device": "A100", "loader": loader, "feed": feed, **QUIET}
    return Program(**{**base, **fields})


def step_of(program: Program, hardware: Hardware) -> float:
    """Mean true step time."""
    return simulate(program, hardware, "check", LAST).step_ns(FIRST, LAST)


def host_paper(program: Program, hardware: Hardware) -> float:
    """What the host does in a step, added up."""
    model = model_of(program, hardware)
    ops = [op if isinstance(op, Op) else accumulate_node(op, False) for op in [*model.forward, *model.backward]]
    ops += STEPS[program.step_style](program.optimizer, model.params)
    fixed = program.loop_ns + 2 * HANDOFF_NS + program.loader.get_ns + 6e3 + 15e3 + 2 * 15e3  # two copies to the device
    fixed += (GROUP_NS + ZERO_NS) * len(model.params)
    return sum(map(host_ns, ops)) + fixed


def device_paper(program: Program, hardware: Hardware) -> float:
    """What the device does in a step, added up."""
    model = model_of(program, hardware)
    ops = [*model.operators(), *STEPS[program.step_style](program.optimizer, model.params)]
    copies = 2 * (hardware.copy_latency + hardware.gap) + program.feed.batch_bytes / hardware.pinned
    return device_ns(hardware, ops) + copies


def check_bounds(checks: Checks):
    """Who is slower sets the pace: host, device, or loader."""
    hardware = Hardware("A100", "check")
    small, large = program_of(16), program_of(8192)
    checks.near(
        "launch-bound step is the host's time, us",
        step_of(small, hardware) / 1e3,
        host_paper(small, hardware) / 1e3,
        0.06,
    )
    checks.near(
        "compute-bound step is the kernels' time, us",
        step_of(large, hardware) / 1e3,
        device_paper(large, hardware) / 1e3,
        0.02,
    )
    slow = replace(small, loader=replace(small.loader, workers=2, batch_ns=40e6))
    checks.near("loader-bound step is batch / workers, ms", step_of(slow, hardware) / 1e6, 20.0, 0.1)
    alone = replace(small, loader=replace(small.loader, workers=0, batch_ns=20e6))
    paper = 20e6 + small.feed.batch_bytes / PIN_RATE + host_paper(small, hardware) - small.loader.get_ns
    checks.near("without workers the step is loading and work, ms", step_of(alone, hardware) / 1e6, paper / 1e6, 0.05)


def check_copies(checks: Checks):
    """Pageable, pinned and overlapped copies."""
    hardware = Hardware("A100", "check")
    size = 100 << 20
    pinned = program_of(8192, feed=Feed(size, True, False))
    pageable = replace(pinned, feed=Feed(size, False, True))
    ahead = replace(pinned, feed=Feed(size, True, False, ahead=True))
    device = device_paper(program_of(8192, feed=Feed(0)), hardware)
    checks.near(
        "pinned, in line: kernels + copy, ms",
        step_of(pinned, hardware) / 1e6,
        (device + size / hardware.pinned) / 1e6,
        0.03,
    )
    got, least = step_of(pageable, hardware), device + size / hardware.pageable
    host = host_paper(pageable, hardware)
    checks.true(
        f"pageable, ms: kernels and copy ({least / 1e6:.2f}), at most the host's time more: {got / 1e6:.2f}",
        least * 0.99 <= got <= (least + host) * 1.02,
    )
    paper = max(device, size / hardware.pinned)
    checks.near(
        "on a side stream: the slower of kernels and copy, ms", step_of(ahead, hardware) / 1e6, paper / 1e6, 0.04
    )


def check_cures(checks: Checks):
    """Graphs, fused optimizers, compilation, tensor cores."""
    hardware = Hardware("A100", "check")
    small = program_of(16, graphs=True)
    model = model_of(small, hardware)
    nodes = sum(
        hardware.usage(kernel).time + hardware.node_gap for op in model.operators() for kernel in kernels_of(op)
    )
    rest = device_paper(small, hardware) - device_ns(hardware, model.operators())
    got = step_of(small, hardware)
    checks.true(
        f"graph, us: its nodes ({nodes / 1e3:.0f}), at most all around it more: {got / 1e3:.0f}",
        nodes <= got <= (nodes + rest) * 1.05 + 0.5e6,
    )
    params = model.params
    steps = {
        style: [kernel for op in make("Adam", params) for kernel in kernels_of(op)] for style, make in STEPS.items()
    }
    moved = {style: sum(kernel.reads + kernel.writes for kernel in kernels) for style, kernels in steps.items()}
    checks.near("fused Adam moves 28 bytes a weight", moved["fused"] / model.weights, 28, 0.01)
    checks.near("foreach moves what the loop does", moved["foreach"], moved["loop"], 0.001)
    checks.true("loop: 7 kernels a weight; foreach and fused: far fewer", len(steps["loop"]) == 7 * len(params))
    wide = {**DEEP, "width": 8192, "layers": 4, "norm": False, "dropout": False}
    plain = program_of(8192, shape=wide)
    ratio = step_of(plain, hardware) / step_of(replace(plain, numerics=Numerics("c10::BFloat16")), hardware)
    peaks = hardware.reach["gemm", "tensor"] * 312 / (hardware.reach["gemm", "fp32"] * 19.5)
    checks.true(f"tensor cores: {ratio:.1f} times faster, peaks say {peaks:.1f}", 0.5 * peaks < ratio < peaks)
    chain = program_of(8192, compiled=True)
    traffic = [
        sum(kernel.reads + kernel.writes for op in model_.operators() for kernel in kernels_of(op))
        for model_ in (model_of(chain, hardware), compiled_of(chain, hardware))
    ]
    checks.true("compiling moves fewer bytes, in fewer kernels", traffic[1] < traffic[0])


def check_shapes(checks: Checks):
    """The shapes that are recorded say what the kernels do."""
    hardware, wrong = Hardware("A100", "check"), []
    for family, draw in DRAW.items():
        model = build(family, draw(random.Random("check")), 8, hardware, Numerics())
        for op in model.operators():
            for call in op.calls:
                if call.name in ("aten::mm", "aten::addmm", "aten::bmm"):
                    left, right = call.shapes[-2:] if call.name != "aten::addmm" else call.shapes[1:3]
                    wrong += [call] * (2.0 * math.prod(left) * right[-1] != call.kernels[0].flops)
    checks.true("shapes of matrix products give their FLOPs", not wrong)


def compiled_of(program: Program, hardware: Hardware):
    """The model after torch.compile, with all of its weights still in the backward list."""
    model = model_of(program, hardware)
    result = compiled(model)
    assert [op for op in result.backward if isinstance(op, Param)] == [
        op for op in model.backward if isinstance(op, Param)
    ]
    return result


def check_ranks(checks: Checks):
    """Buckets, all-reduces, stragglers."""
    hardware = Hardware("A100", "check")
    exchange = Exchange(link=1.0, latency=20e3, contention=1.0)
    program = program_of(512, ranks=2, exchange=exchange)
    model = model_of(program, hardware)
    buckets = buckets_of(model.params, 25.0)
    checks.true("every weight is in one bucket", sum(map(len, buckets)) == len(model.params))
    size = 4.0 * model.weights
    got = step_of(program, hardware)
    checks.true(
        f"slow links, ms: the exchange ({size / 1e6:.1f}), at most the passes more: {got / 1e6:.1f}",
        size * 0.98 <= got <= size + device_paper(program, hardware) + host_paper(program, hardware) * 2,
    )
    quarter, halved = replace(program, accumulate=4), replace(program, exchange=replace(exchange, half=True))
    fourth, half = step_of(quarter, hardware), step_of(halved, hardware)
    checks.true(f"exchanged in every 4th step: {got / fourth:.2f} times faster", 2.5 < got / fourth < 4)
    checks.true(f"exchanged in 16 bit: {got / half:.2f} times faster", 1.7 < got / half < 2)
    fast = replace(program, exchange=replace(exchange, link=200.0))
    late = replace(fast, lag=Lag("device", 1, 1.5), batch=8192)
    alone = replace(late, ranks=1, lag=Lag())
    ratio = step_of(late, hardware) / step_of(alone, hardware)
    checks.true(f"a slow device holds all ranks: {ratio:.2f} of the step of one alone, 1.5 as slow", 1.45 < ratio < 1.8)


def shared(share: float) -> tuple:
    """(time, share of the SMs in use) of two kernels on two streams, each 1 ms alone."""
    engine = Engine()
    gpu = Gpu(engine, Hardware("A100", "check"), Noise("check"))
    tasks, sums = [Task("kernel", "k", 1e6) for _ in range(2)], []
    for number, task in enumerate(tasks):
        task.share = task.need = share
        gpu.submit(Stream(number), task)
    engine.at(2e5, lambda: sums.append(sum(task.share * task.rate for task in gpu.running)))
    engine.run()
    return max(task.end for task in tasks), sums[0]


def check_sharing(checks: Checks):
    """Kernels on two streams."""
    for share, expected in ((0.5, 1e6), (1.0, 2e6)):
        time, used = shared(share)
        checks.near(f"two kernels that take {share:.0%} of the SMs each, ms", time / 1e6, expected / 1e6, 0.06)
        checks.true(f"together they take {used:.2f} of the SMs", used <= 1.0 + LEAST)


def check_devices(checks: Checks):
    """ResNet-50 as published: NVIDIA's DeepLearningExamples and shared/traces (V100 in fp32, batch 32: 98 ms)."""
    for device, batch, numerics, expected in (
        ("V100", 32, Numerics(), 325),
        ("V100", 256, Numerics("c10::Half", channels_last=True), 900),
        ("A100", 256, Numerics(tf32_matmul=True), 850),
        ("A100", 256, Numerics("c10::Half", channels_last=True), 2300),
    ):
        rates = []
        for seed in range(8):
            hardware = Hardware(device, f"check {seed}")
            program = Program("cnn", RESNET50, batch, device, numerics=numerics)
            rates.append(batch / device_ns(hardware, model_of(program, hardware).operators()) * 1e9)
        middle = math.exp(sum(map(math.log, rates)) / len(rates))
        checks.near(f"ResNet-50 on {device} {numerics.autocast or 'fp32'}, images / s", middle, expected, 0.35)


def check_recording(checks: Checks):
    """The recorder's events make sense."""
    hardware = Hardware("A100", "check")
    program = program_of(2048, ranks=2)
    profile = Profile()
    run = simulate(program, hardware, "check", profile.steps, profile)
    for recorder in run.recorders:
        streams = {}
        for task in sorted(recorder.tasks, key=lambda task: task.start):
            streams.setdefault(task.stream.number, []).append(task)
        apart = all(a.end <= b.start for tasks in streams.values() for a, b in zip(tasks, tasks[1:]))
        caused = all(task.launch is None or task.launch.start < task.start for task in recorder.tasks)
        checks.true("a stream runs one task at a time, each after its launch", apart and caused)
        busy = sum(task.end - task.start for task in streams[7] if task.step >= profile.first)
        checks.true(
            "the main stream is not busier than the clock", busy <= run.completed[-1] - run.completed[profile.first - 1]
        )
    truth = step_of(program, hardware)
    recorded = sum(run.steps_ns(profile.first, profile.steps)) / profile.active
    checks.true(f"the recording is a little slower: {recorded / truth:.3f}", 0.98 < recorded / truth < 1.3)


def check_pairs(checks: Checks):
    """The same seed gives the same files; a file is whole."""
    digests = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            truth = make_pair(3, Path(folder))
            files = sorted(Path(folder).iterdir())
            digests.append([hashlib.sha256(file.read_bytes()).hexdigest() for file in files])
            trace = json.loads(files[0].read_text())
    checks.true("the same seed gives the same files, byte for byte", digests[0] == digests[1])
    marks = {event["name"] for event in trace["traceEvents"] if "ProfilerStep#" in event["name"]}
    checks.true("as many steps are marked as were recorded", len(marks) == len(truth["recorded_step_ns"]))
    gain = truth["before_ns"] / truth.get("after_ns", truth["before_ns"])
    checks.true(f"the gain is in the range: {gain:.3f}", truth["cure"] == "" or 1.03 <= gain <= 4)


def main() -> int:
    """All checks."""
    checks = Checks()
    for check in (
        check_bounds,
        check_copies,
        check_cures,
        check_shapes,
        check_ranks,
        check_sharing,
        check_devices,
        check_recording,
        check_pairs,
    ):
        check(checks)
    print(f"{checks.failed} failed")
    return int(checks.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
