"""The plants: each takes a healthy program and spoils it in one way. What it returns has no name and no cause yet."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from .draw import Base, draw_base, host_ns_of, kernels_ns_of
from .pair import Pair, Unsuitable, losses, tried
from .program import Program
from .training import all_reduce, layout_of

LOADER_STEPS = 8  # at least, where batches take different times: a few would say little about the mean


def pair_of(before: Program, after: Program | None, about: str, detail: str = "") -> Pair:
    return Pair("", "", about, before, after, detail)


def plant_healthy(rng: random.Random, key: str) -> Pair:
    base = draw_base(rng, key, Base(margin=(1.8, 3.5)))
    return pair_of(base, None, "keeps the device at work")


def plant_item(rng: random.Random, key: str) -> Pair:
    base = draw_base(rng, key, Base(margin=(0.9, 1.5)))
    count = rng.choice((6, 10, 16, 24, 40))
    return pair_of(replace(base, items_per_step=count), base, f"reads {count} values from the device in each step")


def plant_synchronize(rng: random.Random, key: str) -> Pair:
    base = draw_base(rng, key, Base(margin=(0.9, 1.3)))
    spoilt = replace(base, device_sync=True) if rng.random() < 0.5 else replace(base, item_of_loss=1)
    return pair_of(spoilt, base, "waits for the device at the end of each step")


def _copied(rng: random.Random, base: Program, seconds_per_byte: float, share: float) -> Program:
    """Batches that are so large that copying them takes that share of the step."""
    wanted = share / (1 - share) * kernels_ns_of(base) / 1e9
    plain = replace(base, input_scale=1.0, side_stream=False, pin_rate=4 * base.device.link_bytes_per_s)
    return replace(plain, input_scale=max(0.01, wanted / seconds_per_byte / plain.batch_bytes))


def plant_pageable(rng: random.Random, key: str) -> Pair:
    base = draw_base(rng, key, Base(margin=(1.3, 3.0)))
    rate = base.device.link_bytes_per_s * rng.uniform(0.12, 0.45)
    base = _copied(rng, replace(base, pageable_rate=rate), 1 / rate, rng.uniform(0.15, 0.6))
    spoilt = replace(base, pinned=False, non_blocking=rng.random() < 0.4)
    return pair_of(spoilt, base, f"copies {base.batch_bytes / 1e6:.0f} MB a step from pageable memory")


def plant_same_stream(rng: random.Random, key: str) -> Pair:
    base = draw_base(rng, key, Base(margin=(1.8, 3.0)))
    base = _copied(rng, base, 1 / base.device.link_bytes_per_s, rng.uniform(0.12, 0.4))
    spoilt = replace(base, pinned=True, non_blocking=rng.random() < 0.7)
    return pair_of(
        spoilt, replace(spoilt, non_blocking=True, side_stream=True), "copies from pinned memory between two steps"
    )


def plant_link_bound(rng: random.Random, key: str) -> Pair:
    base = draw_base(rng, key, Base(margin=(1.2, 3.0), families=("convnet",)))
    base = _copied(rng, base, 1 / base.device.link_bytes_per_s, rng.uniform(0.55, 0.95))
    spoilt = replace(base, pinned=True, non_blocking=True, side_stream=rng.random() < 0.5)
    spoilt = replace(spoilt, fetch_ms=0.4 * spoilt.fetch_ms)
    return pair_of(spoilt, replace(spoilt, as_bytes=True), "copies more than the link can carry, from pinned memory")


def plant_small_kernels(rng: random.Random, key: str) -> Pair:
    base = draw_base(rng, key, Base(margin=(0.1, 0.75), size=("small", "medium"), compiled=0.0, ranks=(1,)))
    base = replace(base, optimizer_impl="fused", precision="bf16" if "bf16" in base.device.peak else "fp32")
    return pair_of(base, replace(base, graphs=True), "launches kernels that are shorter than their launches")


def plant_by_hand(rng: random.Random, key: str) -> Pair:
    margin = rng.choice(((0.5, 1.0), (1.5, 3.0)))
    base = draw_base(rng, key, Base(margin=margin, families=("transformer",), compiled=0.0, by_hand=True))
    return pair_of(base, replace(base, compiled=True), "computes activations and scales one elementary step at a time")


def plant_loop_optimizer(rng: random.Random, key: str) -> Pair:
    base = draw_base(rng, key, Base(margin=(0.8, 2.0), families=("transformer", "convnet", "diffusion")))
    kind = rng.choice(("Adam", "AdamW"))
    spoilt = replace(base, optimizer=kind, optimizer_impl="loop")
    return pair_of(spoilt, replace(spoilt, optimizer_impl="fused"), "updates one parameter after another")


def plant_fp32(rng: random.Random, key: str) -> Pair:
    device = rng.choice(("v100", "v100", "a100", "h100"))
    families = ("transformer", "mlp", "convnet") if device == "v100" else ("transformer", "mlp")
    wanted = Base(margin=(2.5, 5.0), families=families, devices=(device,), precision="fp32", compiled=0.1)
    base = draw_base(rng, key, replace(wanted, size=("medium", "large")))
    low = "amp-fp16" if device == "v100" else rng.choice(("amp-bf16", "amp-bf16", "bf16"))
    return pair_of(base, replace(base, precision=low), f"multiplies in float32 on {base.device.name}", low)


def plant_no_workers(rng: random.Random, key: str) -> Pair:
    base = draw_base(rng, key, Base(margin=(1.2, 3.0)))
    share = rng.uniform(0.12, 0.7)
    step_ms = tried(base).step_ns / 1e6
    fetch_ms = max(0.5, step_ms / (1 - share) - host_ns_of(base) / 1e6)
    base = replace(base, steps=max(LOADER_STEPS, base.steps))
    spoilt = replace(base, workers=0, fetch_ms=fetch_ms, fetch_spread=rng.uniform(0.03, 0.15))
    return with_workers(spoilt, step_ms, "fetches each batch in the training thread")


def plant_few_workers(rng: random.Random, key: str) -> Pair:
    base = draw_base(rng, key, Base(margin=(1.2, 3.0)))
    share, workers = rng.uniform(0.12, 0.65), rng.choice((1, 2, 2, 4))
    step_ms = tried(base).step_ns / 1e6
    fetch_ms = workers * step_ms / (1 - share)
    steps = -(-max(LOADER_STEPS, base.steps) // workers) * workers  # as workers often finish together
    base = replace(base, steps=steps)
    spoilt = replace(base, workers=workers, fetch_ms=fetch_ms, fetch_spread=rng.uniform(0.03, 0.15))
    return with_workers(spoilt, step_ms, f"is fed by {workers} workers, which are too few")


def with_workers(spoilt: Program, step_ms: float, about: str) -> Pair:
    enough = int(spoilt.fetch_ms / step_ms) + 2
    return pair_of(spoilt, replace(spoilt, workers=enough), about, f"workers={enough}")


def plant_slow_device(rng: random.Random, key: str) -> Pair:
    base = draw_base(rng, key, Base(margin=(1.8, 3.5), ranks=(2, 4)))
    spoilt = replace(base, slow_rank=rng.randrange(base.ranks), slow_device=rng.uniform(1.12, 1.7))
    return pair_of(spoilt, replace(spoilt, slow_device=1.0, slow_rank=-1), "waits for one slow device")


def plant_slow_data(rng: random.Random, key: str) -> Pair:
    base = draw_base(rng, key, Base(margin=(1.5, 3.0), ranks=(2, 4)))
    step_ms = tried(base).step_ns / 1e6
    fetch_ms = max(0.3, 0.25 * step_ms)
    slow = (step_ms * rng.uniform(1.2, 1.8)) / fetch_ms
    base = replace(base, steps=max(LOADER_STEPS, base.steps))
    spoilt = replace(base, workers=1, fetch_ms=fetch_ms, slow_rank=rng.randrange(base.ranks), slow_fetch=slow)
    return pair_of(spoilt, replace(spoilt, slow_fetch=1.0, slow_rank=-1), "waits for the rank whose data come late")


def _distributed(rng: random.Random, key: str) -> Program:
    base = draw_base(rng, key, Base(margin=(1.4, 3.0), ranks=(2, 4), size=("medium", "large")))
    layout = layout_of(base)
    whole = all_reduce(replace(base, fabric_scale=1.0), sum(layout.parameters), layout.gradient_size)
    wanted_ns = rng.uniform(0.35, 2.0) * kernels_ns_of(base)
    return replace(base, fabric_scale=max(0.002, min(1.0, whole.ns / wanted_ns)))


def plant_slow_links(rng: random.Random, key: str) -> Pair:
    spoilt, factor = _distributed(rng, key), rng.choice((2, 4, 8))
    faster = replace(spoilt, fabric_scale=min(1.0, factor * spoilt.fabric_scale))
    return pair_of(spoilt, faster, "exchanges gradients over slow links", f"links={factor}")


def plant_no_overlap(rng: random.Random, key: str) -> Pair:
    spoilt = replace(_distributed(rng, key), overlap=False)
    spoilt = replace(spoilt, fabric_scale=min(1.0, spoilt.fabric_scale * rng.choice((1, 2, 5))))
    return pair_of(spoilt, replace(spoilt, overlap=True), "exchanges gradients after the backward pass", "overlap")


def plant_small_buckets(rng: random.Random, key: str) -> Pair:
    spoilt = replace(_distributed(rng, key), bucket_bytes=rng.choice((1 << 16, 1 << 18)))
    spoilt = replace(spoilt, fabric_scale=min(0.15, spoilt.fabric_scale))
    after = replace(spoilt, bucket_bytes=25 << 20)
    return pair_of(spoilt, after, "exchanges gradients in many small collectives", "bucket=25")


def plant_each_step(rng: random.Random, key: str) -> Pair:
    spoilt, factor = _distributed(rng, key), rng.choice((2, 4, 8))
    return pair_of(
        spoilt, replace(spoilt, accumulate=factor), "exchanges gradients over slow links", f"accumulate={factor}"
    )


def _paused(rng: random.Random, key: str, most_ranks: int = 1) -> tuple[Program, int, float]:
    """The base, how often, and for how many milliseconds it pauses."""
    base = draw_base(rng, key, Base(margin=(1.4, 3.0), ranks=(1,)))
    every, share = rng.choice((2, 3, 4)), rng.uniform(0.12, 0.5)
    step_ms = tried(base).step_ns / 1e6
    steps = every * rng.choice((2, 3))
    return replace(base, steps=steps), every, every * step_ms * share / (1 - share)


def plant_checkpoint(rng: random.Random, key: str) -> Pair:
    base, every, pause_ms = _paused(rng, key)
    spoilt = replace(base, checkpoint_every=every, checkpoint_ms=pause_ms, pageable_rate=10e9)
    if 4e3 * sum(layout_of(base).parameters) / spoilt.pageable_rate > 0.4 * pause_ms:
        raise Unsuitable  # then copying the parameters is what takes long
    return pair_of(spoilt, replace(spoilt, checkpoint_ms=0.0), f"writes a checkpoint every {every} steps")


def plant_validation(rng: random.Random, key: str) -> Pair:
    base, every, pause_ms = _paused(rng, key)
    batches = rng.choice((1, 2, 3))
    spoilt = replace(base, validation_every=every, validation_batches=batches, validation_fetch_ms=pause_ms / batches)
    if losses(tried(spoilt))["validation"] < 0.08:
        raise Unsuitable  # it is mostly computation, and none of that is idle
    return pair_of(spoilt, replace(spoilt, validation_every=0), f"validates every {every} steps")


def plant_garbage_collection(rng: random.Random, key: str) -> Pair:
    base, every, pause_ms = _paused(rng, key)
    ahead_ms = max(0.0, kernels_ns_of(base) - host_ns_of(base)) / 1e6
    spoilt = replace(base, gc_every=every, gc_ms=pause_ms + ahead_ms, with_stack=rng.random() < 0.8)
    return pair_of(spoilt, replace(spoilt, gc_every=0), f"collects garbage every {every} steps")


def plant_unexplained(rng: random.Random, key: str) -> Pair:
    base = draw_base(rng, key, Base(margin=(1.3, 3.0), ranks=(1,)))
    share = rng.uniform(0.52, 0.75)
    silent_ms = tried(base).step_ns / 1e6 / (1 - share)
    return pair_of(
        replace(base, silent_ms=silent_ms, host_events=rng.random() < 0.6), None, "mostly does what no profiler sees"
    )


def plant_single_step(rng: random.Random, key: str) -> Pair:
    base = draw_base(rng, key, Base(margin=(0.8, 3.0), ranks=(1,)))
    return pair_of(replace(base, steps=1), None, "was recorded for a single step")


def plant_recomputation(rng: random.Random, key: str) -> Pair:
    wanted = Base(margin=(1.1, 4.0), families=("transformer", "convnet"), compiled=0.0)
    base = draw_base(rng, key, wanted)
    return pair_of(replace(base, recompute=True), base, "computes each block again in the backward pass")


def plant_fp8(rng: random.Random, key: str) -> Pair:
    wanted = Base(margin=(2.0, 4.0), families=("transformer",), devices=("h100",), precision="bf16", compiled=0.0)
    base = draw_base(rng, key, replace(wanted, size=("small", "medium", "medium")))
    base = replace(base, shapes=True)
    return pair_of(replace(base, fp8=True), base, "multiplies small matrices in FP8")


PLANTS: dict[str, Callable[[random.Random, str], Pair]] = {
    "healthy": plant_healthy,
    "item": plant_item,
    "synchronize": plant_synchronize,
    "pageable": plant_pageable,
    "same-stream": plant_same_stream,
    "link-bound": plant_link_bound,
    "small-kernels": plant_small_kernels,
    "by-hand": plant_by_hand,
    "loop-optimizer": plant_loop_optimizer,
    "fp32": plant_fp32,
    "no-workers": plant_no_workers,
    "few-workers": plant_few_workers,
    "slow-device": plant_slow_device,
    "slow-data": plant_slow_data,
    "slow-links": plant_slow_links,
    "no-overlap": plant_no_overlap,
    "small-buckets": plant_small_buckets,
    "each-step": plant_each_step,
    "checkpoint": plant_checkpoint,
    "validation": plant_validation,
    "garbage-collection": plant_garbage_collection,
    "unexplained": plant_unexplained,
    "single-step": plant_single_step,
    "recomputation": plant_recomputation,
    "fp8-overhead": plant_fp8,
}
