"""Unmodified programs such as users write, in programs/: what is recorded is what they did, by their own count."""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from run_file import ranks  # noqa: E402

PROGRAMS = pathlib.Path(__file__).parent / "programs"
PYTHONS = [sys.executable, *filter(None, os.environ.get("FULLBORE_TEST_PYTHONS", "").split(":")), "/usr/bin/python3"]
ENVIRONMENT = {
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "YOLO_OFFLINE": "true",
    "YOLO_AUTOINSTALL": "false",
    "YOLO_CONFIG_DIR": ".",
}
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


@dataclasses.dataclass
class Program:
    """One of programs/. The last line that it prints has its count: `steps N samples M`, without samples where no
    loader brings them."""

    needs: tuple[str, ...] = ()  # beside torch
    launcher: tuple[str, ...] = ()
    ranks: int = 1
    facts: dict[str, str] = dataclasses.field(default_factory=dict)
    loader: dict[str, Any] = dataclasses.field(default_factory=dict)  # of the one that feeds the training
    loaders: int = 1  # in all
    prints: bool = False  # more than its count: compared with what it prints without us

    def python(self) -> str:
        """The first that has what it needs."""
        modules = ("torch", *self.needs)
        for python in PYTHONS:
            if has(python, modules):
                return python
        return pytest.skip(f"no Python with {', '.join(modules)} here: name one in FULLBORE_TEST_PYTHONS")


@functools.cache
def has(python: str, modules: tuple[str, ...]) -> bool:
    if not os.access(python, os.X_OK):
        return False
    finds = "import importlib.util, sys; sys.exit(any(importlib.util.find_spec(m) is None for m in sys.argv[1:]))"
    return subprocess.run([python, "-c", finds, *modules], capture_output=True).returncode == 0


TABLE = {
    "mnist": Program(facts={"model": "Net", "optimizer": "Adadelta"}, loader={"batch_size": 16}, loaders=2),
    "vae": Program(facts={"model": "VAE"}, loader={"batch_size": 32, "num_workers": 0}),
    "dcgan": Program(loader={"num_workers": 1}),
    "word_language_model": Program(loaders=0),
    "actor_critic": Program(facts={"model": "Policy"}, loaders=0),
    "nano_gpt": Program(facts={"model": "GPT", "optimizer": "AdamW"}, loaders=0),
    "timm_train": Program(loader={"persistent_workers": True}, loaders=2),
    "evaluate": Program(loader={"num_workers": 1}),
    "generate": Program(needs=("transformers",)),
    "run_clm": Program(needs=("transformers", "accelerate"), facts={"model": "GPT2LMHeadModel"}, loaders=3),
    "hf_trainer": Program(
        needs=("transformers", "accelerate"),
        facts={"model": "BertForSequenceClassification"},
        loader={"batch_size": 8, "num_workers": 1, "dataset": "Data"},
        prints=True,
    ),
    "accelerate_loop": Program(needs=("accelerate",), loader={"num_workers": 0}),
    "lightning_fit": Program(
        needs=("lightning",),
        loader={"batch_size": 8, "num_workers": 2, "persistent_workers": True, "dataset": "TensorDataset"},
        loaders=2,
        prints=True,
    ),
    "lightning_gan": Program(needs=("lightning",), loader={"batch_size": 8}),
    "ddp": Program(launcher=TORCHRUN, ranks=2, facts={"world_size": "2"}, loader={"batch_size": 8}),
    "ddp_spawn": Program(ranks=2, facts={"world_size": "2"}, loader={"batch_size": 8}),
    "photos": Program(
        needs=("torchvision",),
        loader={"dataset": "ImageFolder", "num_workers": 2, "batch_size": 8},
    ),
    "infinite_loader": Program(loader={"dataset": "Boxes", "num_workers": 1, "batch_size": 8}, loaders=2),
    "timm_library": Program(
        needs=("timm",),
        facts={"model": "ResNet", "optimizer": "Lamb"},
        loader={"dataset": "ImageDataset", "num_workers": 1, "batch_size": 8},
        loaders=2,
    ),
    "yolo": Program(
        needs=("ultralytics",),
        facts={"model": "DetectionModel", "optimizer": "AdamW"},
        loader={"dataset": "YOLODataset", "num_workers": 0, "batch_size": 8},
        loaders=2,
    ),
}


def without_times(output: bytes) -> bytes:
    """Frameworks print how long things took, and numbers derived from that."""
    return re.sub(rb"[\d.]+(e-?\d+)?", b"N", re.sub(rb"(?m)^\{'train_runtime'.*$", b"", output)).strip()


@pytest.mark.long
@pytest.mark.parametrize("name", TABLE)
def test_a_program_is_recorded_as_it_counts_itself(fullbore, name):
    program = TABLE[name]
    command = [program.python(), *program.launcher, str(PROGRAMS / f"{name}.py")]
    done = fullbore.run(*command, env=ENVIRONMENT)

    assert done.code == 0, done.stderr
    if program.prints:
        environment = fullbore.environment(ENVIRONMENT)
        plain = subprocess.run(command, env=environment, cwd=fullbore.directory, capture_output=True, timeout=180)
        assert without_times(done.stdout) == without_times(plain.stdout), "the output differs from that without us"
    steps, samples = re.search(rb"steps (\d+)(?: samples (\d+))?\s*$", done.stdout).groups()
    recorded = ranks(done.run_file)
    counted = [(n, int(steps), int(samples or 0)) for n in range(program.ranks)]
    assert [(rank["rank"], rank["steps"], rank["samples"]) for rank in recorded] == counted
    assert [rank["rank"] for rank in done.report["ranks"]] == list(range(program.ranks))
    assert done.report["findings"] or not done.report["judgeable"], "a verdict"
    assert done.report["messages"] == []
    for rank in recorded:
        assert {key: str(rank["facts"].get(key)).strip('"') for key in program.facts} == program.facts
        assert len(rank["loaders"]) == program.loaders
        if program.loaders:
            (loader,) = [loader for loader in rank["loaders"] if loader["feeds_training"]]
            assert {key: loader[key] for key in program.loader} == program.loader
