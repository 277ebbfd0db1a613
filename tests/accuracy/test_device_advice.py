"""What a person would change after reading a finding."""

from __future__ import annotations

import pytest
from device.advice import advised
from finished_pair import said
from simulated import program


@pytest.mark.parametrize(
    ("words", "fix", "before", "changed"),
    [
        ("sync-bound", "no .item() in the loop", {"items_per_step": 3}, {"items_per_step": 0}),
        ("copy-bound", "DataLoader(pin_memory=True)", {"pinned": False}, {"pinned": True, "non_blocking": True}),
        ("copy-bound", "send uint8", {}, {"as_bytes": True}),
        ("copy-bound", "copy the next batch on a side stream", {}, {"side_stream": True}),
        ("launch-bound", "torch.compile(model), or CUDA graphs", {}, {"compiled": True, "graphs": True}),
        ("launch-bound", "torch.compile(model), or CUDA graphs", {"ranks": 2}, {"compiled": True, "graphs": False}),
        ("launch-bound", "AdamW(fused=True)", {}, {"optimizer_impl": "fused"}),
        ("no-tensor-cores", "autocast", {"precision": "fp32"}, {"precision": "amp-bf16"}),
        ("no-tensor-cores", "autocast", {"precision": "fp32", "device_key": "v100"}, {"precision": "amp-fp16"}),
        ("input-bound no-workers", "DataLoader(num_workers=6)", {"workers": 0}, {"workers": 6}),
        ("comm-bound", "gradient accumulation under model.no_sync()", {"ranks": 2}, {"accumulate": 4}),
        ("straggler", "look at rank 1", {"ranks": 2, "slow_rank": 1, "slow_device": 2.0}, {"slow_device": 1.0}),
        (
            "host-other checkpoint",
            "write from a thread",
            {"checkpoint_every": 2, "checkpoint_ms": 9.0},
            {"checkpoint_ms": 0.0},
        ),
        ("inefficient-kernels", "torch.compile(model)", {}, {"compiled": True}),
    ],
)
def test_advice_is_taken_as_it_is_said(words, fix, before, changed):
    taken = advised(said(words, fix=[fix]), program(**before))
    assert {name: getattr(taken, name) for name in changed} == changed


def test_a_finding_that_promises_nothing_changes_nothing():
    assert advised(said("sync-bound", None), program(items_per_step=3)) is None


def test_advice_that_the_program_follows_already_is_no_change():
    assert advised(said("copy-bound", fix=["pin_memory=True"]), program()) is None


def test_what_the_simulator_cannot_do_is_not_guessed():
    assert advised(said("small-batch"), program()) is None
