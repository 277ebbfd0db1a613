"""
NAME     Rollouts of another process that are made too slowly
PLANTED  a process generates 25 ms a batch and hands it over through a queue; the training takes a third of that
EXPECT   input-bound rollout-elsewhere
TRUTH    wait
LINE     rollouts.get
NEEDS    two-cores
"""

import argparse
import time

import torch
import torch.multiprocessing
from torch import nn
from training import StepClock, arguments

SIDE, GENERATION_S = 256, 0.025


def generate(rollouts: torch.multiprocessing.Queue) -> None:
    """As an engine on a device of its own would: this process waits for it, and needs no core."""
    torch.set_num_threads(1)
    while True:
        time.sleep(GENERATION_S)
        rollouts.put(torch.randn(32, SIDE))


def more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--generators", type=int, default=1)


def main() -> None:
    args = arguments(more)
    clock = StepClock()
    rollouts = torch.multiprocessing.Queue(4)
    for _ in range(args.generators):
        torch.multiprocessing.Process(target=generate, args=[rollouts], daemon=True).start()
    policy = nn.Sequential(*[nn.Linear(SIDE, SIDE) for _ in range(24)])
    optimizer = torch.optim.Adam(policy.parameters())
    for _ in range(4 * args.steps):
        with clock.timed("wait"):
            batch = rollouts.get()
        loss = policy(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.step_done()
    clock.write(args.truth)


if __name__ == "__main__":
    main()
