"""Programs and their kernels: physics, changes, and what repeats."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from device.compiler import chains, compiled
from device.hardware import DEVICES
from device.models import FAMILIES, draw_shape
from device.noise import Noise
from device.optimizer import step
from device.silicon import Silicon
from device.simulate import simulate
from device.trace import write_traces
from device.training import layout_of
from simulated import MIDDLE, SMALL, overlaps, program

PRECISIONS = {
    "v100": ("fp32", "amp-fp16"),
    "a100": ("fp32", "tf32", "amp-bf16"),
    "h100": ("bf16",),
    "mi300x": ("bf16",),
}


def programs():
    for device, precisions in PRECISIONS.items():
        for precision in precisions:
            for family in FAMILIES:
                shape = draw_shape(family, random.Random(3), "medium")
                yield program(device_key=device, precision=precision, shape=shape, batch=16)


def test_no_kernel_is_faster_than_its_device():
    for each in programs():
        for kernel in layout_of(each).kernels:
            peak = max(each.device.peak.values())
            physics = max(kernel.flops / peak, kernel.bytes / each.device.bytes_per_s)
            assert kernel.ns >= 1e9 * physics, (each.device_key, kernel)


def test_a_large_product_reaches_what_was_drawn_and_a_narrow_one_does_not():
    silicon = Silicon(DEVICES["a100"], "test")
    large, narrow = silicon.gemm(8192, 8192, 8192, "bf16"), silicon.gemm(16, 8192, 8192, "bf16")
    reached = [kernel.flops / kernel.ns * 1e9 / 312e12 for kernel in (large, narrow)]
    assert reached[0] == pytest.approx(silicon.reach["gemm 16"], rel=0.1)
    assert reached[1] < 0.2 * reached[0]


def test_a_number_format_that_the_device_lacks_is_an_error():
    with pytest.raises(KeyError):
        Silicon(DEVICES["v100"], "test").gemm(64, 64, 64, "bf16")


def test_a_transformer_computes_six_operations_for_each_weight_and_token():
    """Of its matrix products, as everybody counts them; attention and the rest come on top."""
    layout = layout_of(program(shape=MIDDLE, batch=4))
    products = sum(kernel.flops for kernel in layout.kernels if kernel.kind == "gemm")
    weights = sum(numel for numel in layout.parameters) - (2048 + 128) * 256  # without embeddings
    assert products == pytest.approx(6 * weights * 4 * 128, rel=0.01)


def test_the_backward_pass_hands_out_a_gradient_for_every_parameter():
    for each in programs():
        layout = layout_of(each)
        handed = sorted(numel for op in layout.backward for numel in op.grads)
        assert handed == sorted(layout.parameters)


def test_buckets_hold_all_gradients_and_no_more():
    layout = layout_of(program(ranks=2, bucket_bytes=1 << 20))
    assert sum(elements for _, elements in layout.buckets) == sum(layout.parameters)
    assert len(layout.buckets) > 2
    assert [index for index, _ in layout.buckets] == sorted(index for index, _ in layout.buckets)


def test_compiling_fuses_chains_and_saves_bytes_but_no_matrix_work():
    by_hand = program(shape=replace(MIDDLE, by_hand=True))
    eager, fused = layout_of(by_hand), layout_of(replace(by_hand, compiled=True))
    assert len(fused.kernels) < 0.7 * len(eager.kernels)
    assert sum(kernel.bytes for kernel in fused.kernels) < 0.8 * sum(kernel.bytes for kernel in eager.kernels)
    matrix = [sum(k.flops for k in layout.kernels if k.kind == "gemm") for layout in (eager, fused)]
    assert matrix[0] == matrix[1]
    assert sum(len(op.grads) for op in fused.backward) == sum(len(op.grads) for op in eager.backward)


def test_a_chain_has_one_size_and_at_most_one_normalisation():
    forward = layout_of(program(shape=replace(MIDDLE, by_hand=True))).forward
    groups = [group for group in chains(forward) if len(group) > 1]
    assert groups
    for group in groups:
        assert len({op.chain.numel for op in group}) == 1
        assert sum(op.chain.ends for op in group) <= 1


def test_compiling_nothing_gives_nothing():
    assert compiled([], Silicon(DEVICES["a100"], "test")) == []


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW"])
def test_a_fused_optimizer_launches_less_and_moves_less(kind):
    silicon, parameters = Silicon(DEVICES["a100"], "test"), [10_000] * 50
    moved, launched = {}, {}
    for impl in ("loop", "foreach", "fused"):
        kernels = [kernel for op in step(kind, impl, parameters, silicon, False) for kernel in op.kernels]
        moved[impl], launched[impl] = sum(kernel.bytes for kernel in kernels), len(kernels)
    assert launched["loop"] > 10 * launched["foreach"] > 10 * launched["fused"]
    assert moved["loop"] == pytest.approx(moved["foreach"]) and moved["fused"] < moved["foreach"]


VARIANTS = {
    "plain": {},
    "pageable": {"pinned": False, "non_blocking": False},
    "side stream": {"side_stream": True, "input_scale": 50.0},
    "bytes": {"as_bytes": True},
    "graphs": {"graphs": True},
    "compiled": {"compiled": True},
    "inline": {"workers": 0},
    "four ranks": {"ranks": 4, "slow_rank": 2, "slow_device": 1.3},
    "no overlap": {"ranks": 2, "overlap": False},
    "accumulated": {"ranks": 2, "accumulate": 2},
    "scaled": {"device_key": "v100", "precision": "amp-fp16", "optimizer_impl": "foreach"},
    "amd": {"device_key": "mi300x", "pinned": False, "items_per_step": 2},
    "checkpoint": {"checkpoint_every": 2, "checkpoint_ms": 2.0, "gc_every": 2},
    "validation": {"validation_every": 2, "validation_batches": 1},
    "synchronised": {"device_sync": True, "item_of_loss": 1, "items_per_step": 3},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_works_of_a_stream_follow_each_other_in_the_order_of_their_calls(name):
    for host in simulate(program(**VARIANTS[name]), "laws").hosts:
        by_stream: dict[int, list] = {}
        for work in host.gpu.history:
            by_stream.setdefault(work.stream, []).append(work)
        for works in by_stream.values():
            for earlier, later in zip(works, works[1:]):
                assert later.begin >= earlier.end and later.correlation >= earlier.correlation


@pytest.mark.parametrize("name", VARIANTS)
def test_nothing_begins_before_its_call_and_everything_ends(name):
    for host in simulate(program(**VARIANTS[name]), "laws").hosts:
        calls = {call.correlation: call for call in host.calls}
        for work in host.gpu.history:
            assert calls[work.correlation].begin + host.device.delay_ns <= work.begin < work.end
        assert all(not stream.queue and stream.unfinished == 0 for stream in host.gpu.streams.values())


@pytest.mark.parametrize("name", VARIANTS)
def test_a_thread_does_one_thing_at_a_time_and_the_two_threads_never_work_together(name):
    for host in simulate(program(**VARIANTS[name]), "laws").hosts:
        calls = sorted(host.calls, key=lambda call: call.begin)
        for earlier, later in zip(calls, calls[1:]):
            assert not overlaps(earlier.begin, earlier.end, later.begin, later.end)


@pytest.mark.parametrize("name", VARIANTS)
def test_one_copy_at_a_time_is_on_its_way_in_a_direction(name):
    for host in simulate(program(**VARIANTS[name]), "laws").hosts:
        for direction in ("HtoD", "DtoH"):
            copies = sorted((w for w in host.gpu.history if w.detail == direction), key=lambda work: work.begin)
            assert all(later.begin >= earlier.end for earlier, later in zip(copies, copies[1:]))


@pytest.mark.parametrize("name", VARIANTS)
def test_without_noise_and_change_the_step_takes_the_same_time_whatever_the_seed(name):
    made = program(**VARIANTS[name])
    first, second = (simulate(replace(made), seed, noise=False) for seed in ("before", "after"))
    assert first.completions == second.completions


def test_noise_changes_a_run_a_little():
    quiet, noisy, other = (
        simulate(program(), seed, 12, noise=on).step_ns for seed, on in (("a", False), ("a", True), ("b", True))
    )
    assert noisy != other
    assert noisy == pytest.approx(quiet, rel=0.06) and other == pytest.approx(quiet, rel=0.06)


def test_noise_is_around_one():
    noise = Noise("around")
    drawn = [noise.kernel_ns(100_000) for _ in range(4000)]
    assert sum(drawn) / len(drawn) == pytest.approx(100_000 * noise.device, rel=0.002)


@pytest.mark.parametrize("name", ["plain", "four ranks", "validation", "inline"])
def test_a_seed_always_gives_the_same_trace(name, tmp_path):
    texts = []
    for number, seed in enumerate(("x", "x", "y")):
        folder = tmp_path / str(number)
        folder.mkdir()
        texts.append([path.read_text() for path in write_traces(simulate(program(**VARIANTS[name]), seed), folder)])
    assert texts[0] == texts[1] != texts[2]


def long_step(**more) -> float:
    return simulate(program(**more), 0, 12, noise=False).step_ns


def test_pinned_memory_is_faster_than_pageable_and_a_copy_ahead_is_hidden():
    heavy = {"shape": SMALL, "batch": 16_384, "input_scale": 10.0, "pin_rate": 1e12}
    pageable = long_step(**heavy, pinned=False, non_blocking=False)
    pinned, ahead = long_step(**heavy), long_step(**heavy, side_stream=True)
    assert pageable > pinned > ahead
    assert long_step(**heavy, as_bytes=True) < pinned


def test_reading_values_in_the_forward_pass_costs_time():
    assert long_step(items_per_step=10) > long_step()


def test_optimizers_are_the_faster_the_more_parameters_they_take_at_once():
    loop, foreach, fused = (long_step(optimizer_impl=impl) for impl in ("loop", "foreach", "fused"))
    assert loop > foreach > fused


def test_workers_are_better_than_none_and_enough_of_them_hide_all_loading():
    inline, one, enough = (long_step(workers=workers, fetch_ms=8.0) for workers in (0, 1, 4))
    assert inline > one > enough
    assert enough == pytest.approx(long_step(workers=4, fetch_ms=0.1), rel=0.01)


def test_a_graph_helps_where_launches_are_longer_than_kernels():
    assert long_step(batch=1) > 1.5 * long_step(batch=1, graphs=True)


def test_gradients_cost_less_over_faster_links_beside_the_backward_pass_and_less_often():
    slow = {"ranks": 2, "fabric_scale": 0.01, "batch": 128, "bucket_bytes": 1 << 20}
    overlapped = long_step(**slow)
    assert long_step(**slow, overlap=False) > overlapped > long_step(**slow, accumulate=4)
    assert overlapped > long_step(**{**slow, "fabric_scale": 0.1})


def test_a_single_worker_that_is_too_slow_sets_the_pace():
    assert long_step(workers=1, fetch_ms=20.0) == pytest.approx(20e6, rel=0.01)
    assert long_step(workers=2, fetch_ms=20.0) == pytest.approx(10e6, rel=0.01)


def test_the_slowest_rank_sets_the_pace_of_all():
    alone = long_step(batch=128, device_sync=True)
    slow = {"batch": 128, "device_sync": True, "ranks": 2, "slow_rank": 1, "slow_device": 1.5}
    run = simulate(program(**slow), 0, noise=False)
    assert run.step_ns > 1.3 * alone
    assert all(abs(a - b) < 0.1 * run.step_ns for a, b in zip(*(host.step_ends for host in run.hosts)))
