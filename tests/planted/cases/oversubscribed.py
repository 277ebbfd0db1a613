"""
NAME     Four processes with a pool for the whole machine each
PLANTED  four processes train one shared model, and each computes with as many threads as there are cores
EXPECT   thread-oversubscription
FIX      shared
NEEDS    two-cores
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.multiprocessing
from torch import nn
from training import SIZE, Network, StepClock, Trainer, arguments

PROCESSES = 4


def train(number: int, model: nn.Module, args: argparse.Namespace) -> None:
    cores = len(os.sched_getaffinity(0))
    torch.set_num_threads(max(1, cores // PROCESSES) if args.shared else cores)
    clock = StepClock()
    trainer = Trainer(model, clock)
    images, labels = torch.randn(16, 3, SIZE, SIZE), torch.arange(16) % 10
    for _ in range(args.steps // PROCESSES):
        trainer.step(images, labels)
    if number == 0:
        clock.write(args.truth)


def main() -> None:
    args = arguments(lambda parser: parser.add_argument("--shared", action="store_true", help="of the cores"))
    model = Network(width=16)
    model.share_memory()
    torch.multiprocessing.spawn(train, args=(model, args), nprocs=PROCESSES)


if __name__ == "__main__":
    main()
