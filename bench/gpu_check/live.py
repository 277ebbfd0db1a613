"""Runs under `fullbore run`, each looked at from several sides: the device's figures, the clock, the verdict."""

from __future__ import annotations

import csv
import io
import statistics
import subprocess
import threading
from typing import Any

from evidence import Failed, Missing, Place, Row, resource, step_ns

SMI = "utilization.gpu,memory.used,power.draw,temperature.gpu,clocks.sm,pcie.link.gen.current"
# An SM of Hopper multiplies and adds 2,048 pairs of 16 bit a cycle: NVIDIA's H100 white paper, 989 TFLOP/s dense at
# 1.83 GHz on 132 SMs.
OPERATIONS_A_CYCLE = {"H100": 132 * 4096, "H200": 132 * 4096}
PRODUCT_BATCH = 8192
PRODUCT_OPERATIONS = 2 * PRODUCT_BATCH * 8192 * 8192 * 2  # a step: forward, and the gradient of the weight


class NvidiaSmi:
    """nvidia-smi beside a run, twice a second."""

    def __enter__(self) -> NvidiaSmi:
        words = ["nvidia-smi", f"--query-gpu={SMI}", "--format=csv,noheader,nounits", "-lms", "500", "-i", "0"]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.lines: list[str] = []
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stdout), daemon=True)
        self.reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()
        self.reader.join(5)

    def medians(self) -> dict[str, float]:
        """Of the later half: the training runs."""
        rows = [row for row in csv.reader(io.StringIO("".join(self.lines))) if len(row) == SMI.count(",") + 1]
        rows = rows[len(rows) // 2 : -2]
        if len(rows) < 4:
            raise Failed("nvidia-smi said too little")
        return {name: statistics.median(float(row[at]) for row in rows) for at, name in enumerate(SMI.split(",")[:5])}


def near(what: str, ours: float | None, theirs: float, within: float, unit: str) -> Row:
    """Within: a difference, in the unit."""
    if ours is None:
        return Row(what, "not recorded", f"{theirs:.4g} {unit}", False)
    wanted = f"{theirs:.4g} {unit}, give or take {within:.3g}"
    return Row(what, f"{ours:.4g} {unit}", wanted, abs(ours - theirs) <= within)


def known_product(place: Place) -> list[Row]:
    """NVML and GPM against nvidia-smi and against arithmetic."""
    words = ["product", f"batch={PRODUCT_BATCH}", "precision=bf16", "--seconds", place.seconds]
    with NvidiaSmi() as smi:
        report, own = place.run("product", *words, limit_s=90)
    theirs, rows = smi.medians(), []
    used, mib, mhz = (
        None if value is None else value / unit
        for value, unit in (
            (resource(report, "gpu_utilization", "p50"), 0.01),
            (resource(report, "gpu_memory_used", "p50"), 2**20),
            (resource(report, "gpu_sm_clock", "p50"), 1e6),
        )
    )
    rows.append(near("utilisation", used, theirs["utilization.gpu"], 5, "%"))
    rows.append(near("memory used", mib, theirs["memory.used"], 64, "MiB"))
    rows.append(near("SM clock", mhz, theirs["clocks.sm"], 60, "MHz"))
    rows.append(near("power", resource(report, "gpu_power", "p50"), theirs["power.draw"], 25, "W"))
    rows.append(near("temperature", resource(report, "gpu_temperature", "p50"), theirs["temperature.gpu"], 3, "C"))
    device = report["machine"].get("gpu0", "")
    cycle = next((value for name, value in OPERATIONS_A_CYCLE.items() if name in device), None)
    if cycle and mhz:
        rate = PRODUCT_OPERATIONS / step_ns(own) * 1e9
        wanted = rate / (cycle * 1e6 * mhz)
        active = resource(report, "gpu_tensor_active")
        rows.append(near(f"tensor cores active at {rate / 1e12:.0f} TFLOP/s", active, wanted, 0.1, "of 1"))
    for name in ("gpu_sm_active", "gpu_sm_occupancy", "gpu_dram_active", "gpu_pcie_receive", "gpu_energy"):
        value = resource(report, name)
        rows.append(Row(name, "not recorded" if value is None else f"{value:.4g}", "recorded", value is not None))
    return [*rows, *own_clock("product", report, own)]


def own_clock(name: str, report: dict[str, Any], own: dict[str, Any]) -> list[Row]:
    ours = report.get("step_time", {}).get("mean_ns")
    theirs = step_ns(own, report)
    rows = [near(f"{name}: step", None if ours is None else ours / 1e6, theirs / 1e6, 0.03 * theirs / 1e6, "ms")]
    rows += [Row(f"{name}: message", text[:160], "none", False) for text in report["messages"]]
    return rows


def verdict(place: Place, name: str, report: dict[str, Any], expected: tuple[str, ...]) -> Row:
    first = report["findings"][0] if report["findings"] else {"id": "nothing"}
    said = f"{first['id']} {first.get('cause', '')}".strip()
    held = first["id"] in expected or said in expected
    return Row(f"{name}: first finding", said, " or ".join(expected), held if place.has_device else None)


# Words for programs.py, and the first findings that name the fault, with their cause where that is the fault.
Planted = tuple[tuple[str, ...], tuple[str, ...]]
FAULTS: dict[str, Planted] = {
    "starved": (("resnet", "batch=64", "data=loader"), ("input-bound",)),
    "launches": (("mlp", "batch=64", "optimizer=loop"), ("launch-bound",)),
    "no-tensor-cores": (("gpt", "batch=8"), ("no-tensor-cores",)),
    "copies": (("thin", "batch=128", "data=host", "read_loss=1"), ("copy-bound",)),
}
HEALTHY = ("healthy", "nothing")
STRANGERS: dict[str, Planted] = {
    "bert-fp32": (("bert-finetune", "precision=fp32"), ("no-tensor-cores",)),
    "video-pageable": (("video",), ("copy-bound",)),
    "detection-collects": (("detection", "empty_cache=0"), ("host-other garbage-collection",)),
    "lstm-norms": (("lstm-lm",), ("sync-bound", "launch-bound")),
    "gnn-validates": (("gnn", "workers=4"), ("host-other validation",)),
    "diffusion-loops": (("diffusion", "batch=16", "optimizer=loop"), ("launch-bound",)),
    "simclr-starved": (("simclr",), ("input-bound",)),
    "gan-reads": (("gan", "batch=32"), ("sync-bound", "launch-bound")),
    "bert-healthy": (
        tuple("bert-finetune batch=128 precision=bf16 optimizer=fused padded=0 read_loss=0 workers=4 pinned=1".split()),
        HEALTHY,
    ),
    "video-healthy": (("video", "batch=32", "side_stream=1", "as_bytes=1", "optimizer=fused", "read_norm=0"), HEALTHY),
    "diffusion-healthy": (("diffusion", "batch=256", "precision=bf16", "optimizer=fused", "read_loss=0"), HEALTHY),
}


def faults(place: Place) -> list[Row]:
    """One fault each: the first finding should name it."""
    return first_findings(place, FAULTS if place.has_device else {"launches": FAULTS["launches"]}, "4@60")


def strangers(place: Place) -> list[Row]:
    """The same of the strangers' programs, which take longer steps; some have no fault."""
    return first_findings(place, STRANGERS, "4@25")


def first_findings(place: Place, programs: dict[str, Planted], window: str) -> list[Row]:
    rows = []
    for name, (words, expected) in programs.items():
        if place.time_is_up():
            rows.append(Row(name, "the time was up"))
            continue
        try:
            report, own = place.run(name, *words, "--seconds", place.seconds, limit_s=90, more=("--windows", window))
            rows += [verdict(place, name, report, expected), *own_clock(name, report, own)]
            if place.has_device:
                of = report.get("device_window", {}).get("of", "none")
                rows.append(Row(f"{name}: device window", str(of), "device", of == "device"))
        except Missing as why:
            rows.append(Row(name, str(why)))
        except Failed as why:
            rows.append(Row(name, str(why), "a report", False))
    return rows


def undisturbed(place: Place) -> list[Row]:
    """Without us, with us, without us: the same losses at the same pace. Where two runs without us differ already (sums
    whose order is left to the device), with us they may differ as much."""
    rows = []
    programs = {"mlp": ("mlp", "batch=64"), "gpt": ("gpt", "batch=8", "precision=tf32")}
    for name, words in programs.items() if place.has_device else [("mlp", programs["mlp"])]:
        before = place.program(f"{name}-before", *words, "--seconds", place.seconds, limit_s=60)
        _, ours = place.run(f"{name}-watched", *words, "--seconds", place.seconds, limit_s=60)
        after = place.program(f"{name}-after", *words, "--seconds", place.seconds, limit_s=60)
        by_itself, with_us = apart(before, after), apart(before, ours)
        text = f"{with_us:.1e} apart; without us {by_itself:.1e}"
        rows.append(Row(f"{name}: first losses", text, "as without us", with_us <= 3 * by_itself))
        alone = [step_ns(own) for own in (before, after)]
        ratio = step_ns(ours) / (sum(alone) / 2)
        spread = max(alone) / min(alone)
        text = f"{ratio:.3f}; without us {spread:.3f} apart"
        rows.append(
            Row(f"{name}: step time with us over without", text, "1.02, or as far apart", ratio <= max(1.02, spread))
        )
    return rows


def apart(one: dict[str, Any], other: dict[str, Any]) -> float:
    """How far the losses are apart at most, as a ratio."""
    return max(abs(a / b - 1) for a, b in zip(one["losses"], other["losses"]))
